package bytecode

import "math/bits"

// CodeFlags is a code object's co_flags.
type CodeFlags uint32

// Bits of CodeFlags, named as in CPython's code.h without the CO_ prefix.
const (
	FlagOptimized         CodeFlags = 0x1
	FlagNewLocals         CodeFlags = 0x2
	FlagVarArgs           CodeFlags = 0x4
	FlagVarKeywords       CodeFlags = 0x8
	FlagNested            CodeFlags = 0x10
	FlagGenerator         CodeFlags = 0x20
	FlagCoroutine         CodeFlags = 0x80
	FlagIterableCoroutine CodeFlags = 0x100
	FlagAsyncGenerator    CodeFlags = 0x200
)

// Bits of a byte of Code.LocalsPlusKinds, as in CPython's pycore_code.h.
const (
	KindLocal byte = 0x20 // CO_FAST_LOCAL: an argument or a local variable
	KindCell  byte = 0x40 // CO_FAST_CELL: a variable that inner functions capture
	KindFree  byte = 0x80 // CO_FAST_FREE: a variable captured from an outer function
)

// Code is a CPython 3.11 code object. Fields carry the names of the attributes of code objects without the co_ prefix.
type Code struct {
	ArgCount, PosOnlyArgCount, KwOnlyArgCount int
	StackSize                                 int
	Flags                                     CodeFlags
	Code                                      []byte // two bytes an entry; inline caches are zero
	Consts                                    []Object
	Names                                     []string
	LocalsPlusNames                           []string // locals, then cells that are not locals, then free variables
	LocalsPlusKinds                           []byte   // one byte of Kind bits per name of LocalsPlusNames
	FileName, Name, QualName                  string
	FirstLine                                 int
	LineTable, ExceptionTable                 []byte
}

// VarNames returns co_varnames: arguments and local variables, captured ones included.
func (c *Code) VarNames() []string { return c.namesOfKind(KindLocal) }

// CellVars returns co_cellvars: the variables that inner functions capture.
func (c *Code) CellVars() []string { return c.namesOfKind(KindCell) }

// FreeVars returns co_freevars: the variables captured from outer functions.
func (c *Code) FreeVars() []string { return c.namesOfKind(KindFree) }

// NLocals returns co_nlocals, the number of arguments and local variables.
func (c *Code) NLocals() int {
	count := 0
	for _, kind := range c.LocalsPlusKinds {
		if kind&KindLocal != 0 {
			count++
		}
	}
	return count
}

// NArgs returns the number of locals that hold arguments: positional, keyword-only, *args and **kwargs.
func (c *Code) NArgs() int {
	return c.ArgCount + c.KwOnlyArgCount + bits.OnesCount32(uint32(c.Flags&(FlagVarArgs|FlagVarKeywords)))
}

// IsGenerator tells whether calling the code makes a generator, a coroutine or an asynchronous generator.
func (c *Code) IsGenerator() bool {
	return c.Flags&(FlagGenerator|FlagCoroutine|FlagAsyncGenerator) != 0
}

// Copy returns a code object with the same fields. Slices are shared: replace them, do not write into them.
func (c *Code) Copy() *Code {
	duplicate := *c
	return &duplicate
}

func (c *Code) namesOfKind(kind byte) []string {
	var names []string
	for i, name := range c.LocalsPlusNames {
		if c.LocalsPlusKinds[i]&kind != 0 {
			names = append(names, name)
		}
	}
	return names
}
