package bytecode

import "fmt"

// Verify checks what whoever walks the instructions relies on: arguments that index the code object's tables stay inside them, jumps and
// handlers lead into the listing, and the stack holds what each instruction takes. CPython's compiler writes nothing else.
func (l *Listing) Verify() error {
	for i, instruction := range l.Instructions {
		if err := l.verifyArgument(instruction); err != nil {
			return err
		}
		if instruction.Opcode != Call {
			continue
		}
		if i == 0 || l.Instructions[i-1].Opcode != Precall || l.Instructions[i-1].Arg != instruction.Arg {
			return fmt.Errorf("CALL of %d arguments without its PRECALL", instruction.Arg)
		}
	}
	assembler, err := newAssembler(l)
	if err != nil {
		return err
	}
	owners, err := assembler.owners()
	if err != nil {
		return err
	}
	walk := stackWalk{assembler: assembler, owners: owners, depths: make([]int, len(assembler.placed))}
	for i := range walk.depths {
		walk.depths[i] = unvisited
	}
	if err := walk.from(0, walk.entryDepth()); err != nil {
		return err
	}
	return walk.verifyDepths()
}

// verifyArgument checks an argument that is an index.
func (l *Listing) verifyArgument(instruction *Instruction) error {
	index, length := instruction.Arg, -1
	switch opcodes[instruction.Opcode].Argument {
	case ArgumentConstant, ArgumentKeywordNames:
		length = len(l.Code.Consts)
	case ArgumentName:
		length = len(l.Code.Names)
	case ArgumentGlobalName:
		index, length = index>>1, len(l.Code.Names)
	case ArgumentLocal, ArgumentVariable:
		length = len(l.Code.LocalsPlusNames)
	case ArgumentComparison:
		length = len(ComparisonOperators())
	case ArgumentOperator:
		length = len(BinaryOperators())
	}
	if length >= 0 && (index < 0 || index >= length) {
		return fmt.Errorf("%s names item %d of %d", instruction.Opcode, index, length)
	}
	return nil
}

// verifyDepths checks instructions whose effect on the depth does not tell how many items they look at.
func (w *stackWalk) verifyDepths() error {
	for i, depth := range w.depths {
		p := &w.placed[i]
		if needed := itemsNeeded(p.op, p.arg); depth != unvisited && (needed > depth || needed < 0) {
			return fmt.Errorf("%s of %d items where the stack has %d", p.op, needed, depth)
		}
	}
	return nil
}

// itemsNeeded is how many items an instruction takes from the stack or looks at: more than its effect where it pushes some as well.
func itemsNeeded(op Opcode, arg int) int {
	switch op {
	case Copy, Swap:
		return max(arg, 1)
	case ListAppend, SetAdd:
		return arg + 1
	case MapAdd:
		return arg + 2
	case BuildMap:
		return 2 * arg
	case BuildTuple, BuildList, BuildSet, BuildString, BuildSlice:
		return arg
	case BuildConstKeyMap:
		return arg + 1
	case Precall:
		return arg + 2
	case BinaryOp, CompareOp, IsOp, ContainsOp, BinarySubscr:
		return 2
	case StoreSubscr:
		return 3
	}
	return 0
}
