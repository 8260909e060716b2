package bytecode

import (
	"fmt"
	"math/bits"
)

// ArgumentKind says what an instruction's argument means.
type ArgumentKind uint8

// The kinds of argument.
const (
	ArgumentNone          ArgumentKind = iota // the argument byte is not used
	ArgumentNumber                            // a count, a flag or a depth
	ArgumentConstant                          // index into Consts
	ArgumentName                              // index into Names
	ArgumentGlobalName                        // twice an index into Names; the low bit asks for a NULL below the value
	ArgumentLocal                             // index into LocalsPlusNames, of a local variable
	ArgumentVariable                          // index into LocalsPlusNames, of a cell or a free variable
	ArgumentJump                              // distance in two-byte entries from the next instruction
	ArgumentComparison                        // index into ComparisonOperators
	ArgumentOperator                          // index into BinaryOperators
	ArgumentConversion                        // FORMAT_VALUE's conversion and format flag
	ArgumentFunctionParts                     // MAKE_FUNCTION's flags
	ArgumentKeywordNames                      // index into Consts of a tuple of keyword names
)

// JumpKind says whether and which way an instruction jumps. All jumps of CPython 3.11 are relative.
type JumpKind uint8

// The kinds of jump.
const (
	NoJump JumpKind = iota
	ForwardJump
	BackwardJump
)

// OpcodeInfo is a row of the opcode table.
type OpcodeInfo struct {
	Name      string
	Caches    int // inline cache entries that follow the instruction
	Argument  ArgumentKind
	Jump      JumpKind
	EndsBlock bool   // control never reaches the next instruction
	Stack     string // what the instruction takes from the stack -- what it leaves, topmost last

	opposite    Opcode        // the same jump in the other direction; Cache where there is none
	effect      int           // stack effect without a jump, for argument zero
	perArgument int           // what each unit of the argument adds to effect
	jumpEffect  int           // stack effect when a jump is taken
	rule        func(int) int // replaces effect and perArgument where they cannot express it
}

// Info returns the opcode's row of the opcode table; Name is empty for a number that CPython 3.11 does not define.
func (o Opcode) Info() OpcodeInfo { return opcodes[o] }

// Defined tells whether CPython 3.11 has the opcode.
func (o Opcode) Defined() bool { return opcodes[o].Name != "" }

// String returns the opcode's name as dis prints it, or its number in angle brackets.
func (o Opcode) String() string {
	if name := opcodes[o].Name; name != "" {
		return name
	}
	return fmt.Sprintf("<%d>", uint8(o))
}

// HasArgument tells whether the opcode uses its argument.
func (o Opcode) HasArgument() bool { return o >= firstWithArgument }

// OpcodeByName returns the opcode of a name as dis prints it.
func OpcodeByName(name string) (Opcode, bool) {
	for number := range opcodes {
		if opcodes[number].Name == name && name != "" {
			return Opcode(number), true
		}
	}
	return 0, false
}

// ComparisonOperators returns the operators of COMPARE_OP by argument (dis.cmp_op).
func ComparisonOperators() []string { return []string{"<", "<=", "==", "!=", ">", ">="} }

// BinaryOperators returns the operators of BINARY_OP by argument (the NB_ constants of CPython's opcode.h); in-place
// operators end in "=".
func BinaryOperators() []string {
	return []string{"+", "&", "//", "<<", "@", "*", "%", "|", "**", ">>", "-", "/", "^",
		"+=", "&=", "//=", "<<=", "@=", "*=", "%=", "|=", "**=", ">>=", "-=", "/=", "^="}
}

// StackEffect returns by how much an instruction changes the depth of the stack, when it jumps or when it does not. It
// agrees with dis.stack_effect(op, arg, jump=jump). For an opcode that cannot jump, jump makes no difference.
func StackEffect(op Opcode, arg int, jump bool) (int, error) {
	info := &opcodes[op]
	switch {
	case info.Name == "":
		return 0, fmt.Errorf("opcode %d does not exist in CPython 3.11", op)
	case jump && info.Jump != NoJump:
		return info.jumpEffect, nil
	case info.rule != nil:
		return info.rule(arg), nil
	}
	return info.effect + info.perArgument*arg, nil
}

func unpackExEffect(arg int) int       { return arg&0xFF + arg>>8 }
func loadGlobalEffect(arg int) int     { return 1 + arg&1 }
func makeFunctionEffect(arg int) int   { return -bits.OnesCount8(uint8(arg & 0xF)) }
func callFunctionExEffect(arg int) int { return -2 - arg&1 }

func buildSliceEffect(arg int) int {
	if arg == 3 {
		return -2
	}
	return -1
}

func formatValueEffect(arg int) int {
	if arg&4 != 0 {
		return -1
	}
	return 0
}
