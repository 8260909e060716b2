package symbolic

import (
	"slices"

	"github.com/cockroachdb/errors"

	"fusee/bytecode"
	"fusee/internal/slice"
)

// slot is a local variable of a code object under construction; its index is known when the code is finished.
type slot struct {
	name     string
	kind     byte
	original int // index in the base code's localsplus, -1 for new ones
	used     bool
}

// builder writes one code object: new instructions, and a copy of a base code's own.
type builder struct {
	base       *bytecode.Code
	info       *codeInfo
	consts     []bytecode.Object
	names      []string
	output     []*bytecode.Instruction
	slots      map[*bytecode.Instruction]*slot
	parameters []*slot
	locals     []*slot // of the base code, by localsplus index
	temporary  []*slot
	handlers   []bytecode.Handler
	clones     map[*bytecode.Instruction]*bytecode.Instruction
	position   bytecode.Position
	name       string
	kept       bytecode.CodeFlags // of the base code's flags, those that the new code has too
}

// continuationFile marks code that belongs to no user's file.
const continuationFile = "<fusee>"

func newBuilder(base *bytecode.Code, info *codeInfo) *builder {
	b := &builder{base: base, info: info, slots: map[*bytecode.Instruction]*slot{}, clones: map[*bytecode.Instruction]*bytecode.Instruction{},
		position: bytecode.Position{Line: -1, EndLine: -1, Column: -1, EndColumn: -1}}
	if base == nil {
		b.position.Line, b.position.EndLine = 1, 1 // tracebacks want a line in every frame
		return b
	}
	b.consts = append(b.consts, base.Consts...)
	b.names = append(b.names, base.Names...)
	b.name = base.Name
	for k, name := range base.LocalsPlusNames {
		b.locals = append(b.locals, &slot{name: name, kind: base.LocalsPlusKinds[k], original: k})
	}
	return b
}

// parameter adds a positional parameter.
func (b *builder) parameter(name string) *slot {
	s := &slot{name: name, kind: bytecode.KindLocal, original: -1, used: true}
	b.parameters = append(b.parameters, s)
	return s
}

// adopt makes one of the base code's variables the next parameter.
func (b *builder) adopt(index int) *slot {
	s := b.locals[index]
	s.used = true
	b.parameters = append(b.parameters, s)
	return s
}

func (b *builder) temp() *slot {
	s := &slot{name: "." + integerText(len(b.temporary)), kind: bytecode.KindLocal, original: -1, used: true}
	b.temporary = append(b.temporary, s)
	return s
}

func (b *builder) emit(op bytecode.Opcode, arg int) *bytecode.Instruction {
	i := &bytecode.Instruction{Opcode: op, Arg: arg, Offset: -1, Position: b.position}
	b.output = append(b.output, i)
	return i
}

func (b *builder) emitName(op bytecode.Opcode, name string) {
	index := slices.Index(b.names, name)
	if index < 0 {
		index = len(b.names)
		b.names = append(b.names, name)
	}
	b.emit(op, index)
}

func (b *builder) loadConst(object bytecode.Object) {
	b.consts = append(b.consts, object)
	b.emit(bytecode.LoadConst, len(b.consts)-1)
}

func (b *builder) placeholder(kind string, value bytecode.Object) {
	b.loadConst(bytecode.Tuple{"$fusee", kind, value})
}

func (b *builder) loadSlot(s *slot) {
	s.used = true
	b.slots[b.emit(bytecode.LoadFast, 0)] = s
}

func (b *builder) storeSlot(s *slot) {
	s.used = true
	b.slots[b.emit(bytecode.StoreFast, 0)] = s
}

// restoreVariable sets a variable of the base code from another one, or from itself. Code that looks at its variables by name finds the
// contents of a cell only where some instruction makes it.
func (b *builder) restoreVariable(index int, from *slot) {
	s := b.locals[index]
	makes := s.kind&(bytecode.KindCell|bytecode.KindFree) == bytecode.KindCell && readsAllVariables(b.base)
	if from == s && !makes {
		return
	}
	b.loadSlot(from)
	if makes {
		b.slots[b.emit(bytecode.MakeCell, 0)] = s
	}
	b.storeSlot(s)
}

func (b *builder) deleteSlot(s *slot) {
	b.slots[b.emit(bytecode.DeleteFast, 0)] = s
}

// call emits a call of the callable and arguments on the stack, under which a NULL lies.
func (b *builder) call(arguments int) {
	b.emit(bytecode.Precall, arguments)
	b.emit(bytecode.Call, arguments)
}

// usesLocal tells opcodes whose argument is a localsplus index.
func usesLocal(op bytecode.Opcode) bool {
	switch op {
	case bytecode.LoadFast, bytecode.StoreFast, bytecode.DeleteFast, bytecode.LoadClosure, bytecode.MakeCell, bytecode.LoadDeref, bytecode.StoreDeref,
		bytecode.DeleteDeref, bytecode.LoadClassderef:
		return true
	}
	return false
}

// cloneBase appends a copy of the base code. replace may write something else in the place of an instruction; the code before it
// keeps its handlers.
func (b *builder) cloneBase(replace func(original *bytecode.Instruction) bool) {
	for _, original := range b.info.listing.Instructions {
		before := len(b.output)
		b.position = original.Position
		if !replace(original) {
			b.cloneOne(original)
		}
		if len(b.output) == before {
			b.emit(bytecode.Nop, 0)
		}
		b.clones[original] = b.output[before]
	}
	for original, clone := range b.clones {
		if original.Jump != nil && clone.Opcode == original.Opcode {
			clone.Jump = b.clones[original.Jump]
		}
	}
	for _, handler := range b.info.listing.Handlers {
		copied := bytecode.Handler{Start: b.clones[handler.Start], Target: b.clones[handler.Target], Depth: handler.Depth, PushLasti: handler.PushLasti}
		if handler.End != nil {
			copied.End = b.clones[handler.End]
		}
		b.handlers = append(b.handlers, copied)
	}
}

func (b *builder) cloneOne(original *bytecode.Instruction) *bytecode.Instruction {
	if original.Opcode == bytecode.CopyFreeVars || original.Opcode == bytecode.Resume && original.Arg == 0 {
		return b.emit(bytecode.Nop, 0) // the prologue has done this; other RESUMEs tell what a generator yields from
	}
	clone := b.emit(original.Opcode, original.Arg)
	if usesLocal(original.Opcode) {
		b.slots[clone] = b.locals[original.Arg]
		b.locals[original.Arg].used = true
	}
	return clone
}

// finish lays out the variables and assembles the code object.
func (b *builder) finish() (*bytecode.Code, error) {
	b.prune()
	b.compact()
	order, kinds := b.layout()
	b.fillFreeVariables(order)
	index := map[*slot]int{}
	names := make([]string, len(order))
	for k, s := range order {
		index[s] = k
		names[k] = s.name
	}
	for _, i := range b.output {
		if s := b.slots[i]; s != nil {
			i.Arg = index[s]
		}
	}
	code := &bytecode.Code{ArgCount: len(b.parameters), Flags: bytecode.FlagOptimized | bytecode.FlagNewLocals, Consts: b.consts, Names: b.names,
		LocalsPlusNames: names, LocalsPlusKinds: kinds, FileName: continuationFile, Name: b.name, QualName: b.name, FirstLine: 1}
	if b.base != nil {
		code.FileName, code.Name, code.QualName, code.FirstLine = b.base.FileName, b.base.Name, b.base.QualName, b.base.FirstLine
		code.Flags |= b.base.Flags & (bytecode.FlagNested | b.kept)
	}
	listing := &bytecode.Listing{Code: code, Instructions: b.output, Handlers: b.handlers}
	assembled, err := listing.Assemble()
	return assembled, errors.Wrapf(err, "rewriting %s", code.QualName)
}

// loadSlots pushes variables in their order.
func (b *builder) loadSlots(slots []*slot) {
	for _, s := range slots {
		b.loadSlot(s)
	}
}

// fillFreeVariables gives code that no closure comes with an empty cell in the place of each free variable, before anything else: whoever
// looks at a frame's variables takes for granted that there is one.
func (b *builder) fillFreeVariables(order []*slot) {
	if b.output[0].Opcode == bytecode.CopyFreeVars {
		return
	}
	var cells []*bytecode.Instruction
	for k, s := range order {
		if s.kind&bytecode.KindFree != 0 {
			cells = append(cells, &bytecode.Instruction{Opcode: bytecode.MakeCell, Arg: k, Offset: -1, Position: b.output[0].Position})
		}
	}
	b.output = append(cells, b.output...)
}

// layout orders variables as CPython does: parameters, locals, cells, free variables.
func (b *builder) layout() ([]*slot, []byte) {
	placed := map[*slot]bool{}
	var order []*slot
	add := func(s *slot) {
		if !placed[s] {
			placed[s] = true
			order = append(order, s)
		}
	}
	for _, s := range b.parameters {
		add(s)
	}
	needed := b.neededSlots()
	for _, kind := range []byte{bytecode.KindLocal, 0, bytecode.KindCell, bytecode.KindFree} {
		if kind == 0 {
			for _, s := range b.temporary {
				if needed[s] {
					s.name = "." + integerText(len(order))
					add(s)
				}
			}
			continue
		}
		for _, s := range b.locals {
			if s.kind&kind != 0 && needed[s] {
				add(s)
			}
		}
	}
	kinds := make([]byte, len(order))
	for k, s := range order {
		kinds[k] = s.kind
	}
	return order, kinds
}

// neededSlots are the variables that instructions name, and those that CPython finds by other means: free variables that are copied from
// a closure, and every variable of code that looks at its variables by name.
func (b *builder) neededSlots() map[*slot]bool {
	needed := map[*slot]bool{}
	closure := false
	for _, i := range b.output {
		needed[b.slots[i]] = true
		closure = closure || i.Opcode == bytecode.CopyFreeVars
	}
	all := b.base != nil && readsAllVariables(b.base)
	for _, s := range b.locals {
		if all && !ownName(s.name) || closure && s.kind&bytecode.KindFree != 0 {
			needed[s] = true
		}
	}
	return needed
}

// compact drops constants and names that no instruction uses any more, so that the same break reached again, in a loop, is the same code
// and shares its entries.
func (b *builder) compact() {
	consts, names := newCompactor(), newCompactor()
	first := firstEqual(b.consts)
	for _, i := range b.output {
		switch i.Opcode.Info().Argument {
		case bytecode.ArgumentConstant, bytecode.ArgumentKeywordNames:
			i.Arg = consts.place(first[i.Arg])
		case bytecode.ArgumentName:
			i.Arg = names.place(i.Arg)
		case bytecode.ArgumentGlobalName:
			i.Arg = names.place(i.Arg>>1)<<1 | i.Arg&1
		}
	}
	b.consts = slice.Map(consts.order, func(old int) bytecode.Object { return b.consts[old] })
	b.names = slice.Map(names.order, func(old int) string { return b.names[old] })
}

// firstEqual gives for each constant the first one that is an equal int or text: as in code that CPython compiles they are one object.
func firstEqual(consts []bytecode.Object) []int {
	known := map[bytecode.Object]int{}
	first := make([]int, len(consts))
	for k, constant := range consts {
		first[k] = k
		switch constant.(type) {
		case int64, string:
			if equal, is := known[constant]; is {
				first[k] = equal
			} else {
				known[constant] = k
			}
		}
	}
	return first
}

// compactor renumbers indices in order of first use.
type compactor struct {
	order  []int
	placed map[int]int
}

func newCompactor() *compactor { return &compactor{placed: map[int]int{}} }

func (c *compactor) place(old int) int {
	if k, known := c.placed[old]; known {
		return k
	}
	c.placed[old] = len(c.order)
	c.order = append(c.order, old)
	return c.placed[old]
}

// prune drops instructions that nothing reaches, so that code rewritten at the same place is the same code.
func (b *builder) prune() {
	position := map[*bytecode.Instruction]int{}
	for k, i := range b.output {
		position[i] = k
	}
	reached := make([]bool, len(b.output))
	work := []int{0}
	visit := func(k int) {
		if k < len(reached) && !reached[k] {
			reached[k] = true
			work = append(work, k)
		}
	}
	reached[0] = true
	for len(work) > 0 {
		k := work[len(work)-1]
		work = work[:len(work)-1]
		i := b.output[k]
		if i.Jump != nil {
			visit(position[i.Jump])
		}
		if !endsFlow(i.Opcode) {
			visit(k + 1)
		}
		for _, handler := range b.handlers {
			if k >= position[handler.Start] && (handler.End == nil || k < position[handler.End]) {
				visit(position[handler.Target])
			}
		}
	}
	b.keep(reached, position)
}

func endsFlow(op bytecode.Opcode) bool {
	switch op {
	case bytecode.JumpForward, bytecode.JumpBackward, bytecode.JumpBackwardNoInterrupt, bytecode.ReturnValue, bytecode.RaiseVarargs, bytecode.Reraise:
		return true
	}
	return false
}

func (b *builder) keep(reached []bool, position map[*bytecode.Instruction]int) {
	following := make([]*bytecode.Instruction, len(b.output)+1)
	var kept []*bytecode.Instruction
	for k := len(b.output) - 1; k >= 0; k-- {
		following[k] = following[k+1]
		if reached[k] {
			following[k] = b.output[k]
		}
	}
	for k, i := range b.output {
		if reached[k] {
			kept = append(kept, i)
		}
	}
	var handlers []bytecode.Handler
	for _, handler := range b.handlers {
		start := following[position[handler.Start]]
		end := following[len(b.output)]
		if handler.End != nil {
			end = following[position[handler.End]]
		}
		if start == nil || start == end || !reached[position[handler.Target]] {
			continue
		}
		handlers = append(handlers, bytecode.Handler{Start: start, End: end, Target: handler.Target, Depth: handler.Depth, PushLasti: handler.PushLasti})
	}
	b.output, b.handlers = kept, handlers
}
