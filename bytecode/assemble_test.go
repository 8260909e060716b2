package bytecode

import (
	"bytes"
	"slices"
	"testing"
)

// plainCode is a function without names around some code.
func plainCode(code ...byte) *Code {
	return &Code{Flags: FlagOptimized | FlagNewLocals, Consts: []Object{None, int64(1)}, Names: []string{"name"},
		LocalsPlusNames: []string{"x"}, LocalsPlusKinds: []byte{KindLocal}, Name: "f", QualName: "f", FileName: "f.py", FirstLine: 1,
		Code: code}
}

func TestDecodeRefusesBadCode(t *testing.T) {
	returnNone := []byte{byte(LoadConst), 0, byte(ReturnValue), 0}
	withTables := func(lines, exceptions []byte) *Code {
		code := plainCode(returnNone...)
		code.LineTable, code.ExceptionTable = lines, exceptions
		return code
	}
	cases := map[string]*Code{
		"odd length":                   plainCode(byte(Nop)),
		"unknown opcode":               plainCode(3, 0),
		"cache in the open":            plainCode(byte(Cache), 0),
		"missing caches":               plainCode(byte(BinaryOp), 0),
		"prefix at the end":            plainCode(byte(ExtendedArg), 1),
		"argument of 32 bits":          plainCode(byte(ExtendedArg), 255, byte(ExtendedArg), 255, byte(ExtendedArg), 255, byte(LoadConst), 255),
		"jump past the end":            plainCode(byte(JumpForward), 5, byte(Nop), 0),
		"jump to the end":              plainCode(byte(JumpForward), 1, byte(Nop), 0),
		"jump before the start":        plainCode(byte(JumpBackward), 2),
		"jump into a cache":            plainCode(byte(JumpForward), 1, byte(BinaryOp), 0, 0, 0),
		"jump behind a prefix":         plainCode(byte(JumpForward), 1, byte(ExtendedArg), 1, byte(LoadConst), 0),
		"location without column":      withTables([]byte{0x80}, nil),
		"location without mark":        withTables([]byte{0x78}, nil),
		"endless location":             withTables(slices.Concat([]byte{0xE8}, bytes.Repeat([]byte{0x7F}, 20)), nil),
		"handler cut short":            withTables(nil, []byte{0x80, 1}),
		"handler beyond the end":       withTables(nil, []byte{0x80, 3, 0, 0}),
		"handler's target is nowhere":  withTables(nil, []byte{0x80, 1, 2, 0}),
		"handler of no instructions":   withTables(nil, []byte{0x80, 0, 0, 0}),
		"handlers in the wrong order":  withTables(nil, []byte{0x81, 1, 0, 0, 0x80, 1, 0, 0}),
		"handler with endless numbers": withTables(nil, bytes.Repeat([]byte{0xFF}, 20)),
	}
	for name, code := range cases {
		if listing, err := Decode(code); err == nil {
			t.Errorf("%s: decoded as %v", name, listing.Instructions)
		}
	}
}

func TestAssembleRefusesBadListings(t *testing.T) {
	none := NoPosition()
	load, give := NewInstruction(LoadConst, 0, none), NewInstruction(ReturnValue, 0, none)
	elsewhere := NewInstruction(Nop, 0, none)
	cases := map[string]*Listing{
		"no instructions":       {},
		"nil instruction":       {Instructions: []*Instruction{nil}},
		"instruction twice":     {Instructions: []*Instruction{load, load, give}},
		"prefix":                {Instructions: []*Instruction{NewInstruction(ExtendedArg, 1, none), load, give}},
		"cache":                 {Instructions: []*Instruction{NewInstruction(Cache, 0, none), load, give}},
		"unknown opcode":        {Instructions: []*Instruction{NewInstruction(3, 0, none), load, give}},
		"negative argument":     {Instructions: []*Instruction{NewInstruction(LoadConst, -1, none), give}},
		"argument of 32 bits":   {Instructions: []*Instruction{NewInstruction(LoadConst, 1<<31, none), give}},
		"jump to nothing":       {Instructions: []*Instruction{NewInstruction(JumpForward, 0, none), load, give}},
		"jump out":              {Instructions: []*Instruction{NewJump(JumpForward, elsewhere, none), load, give}},
		"target of no jump":     {Instructions: []*Instruction{NewJump(Nop, load, none), load, give}},
		"loop that goes back":   {Instructions: []*Instruction{load, NewJump(ForIter, load, none), give}},
		"end without return":    {Instructions: []*Instruction{load}},
		"underflow":             {Instructions: []*Instruction{NewInstruction(PopTop, 0, none), load, give}},
		"return of nothing":     {Instructions: []*Instruction{give}},
		"depth depends on path": {Instructions: []*Instruction{load, NewJump(JumpBackward, load, none)}},
		"handler of elsewhere":  {Instructions: []*Instruction{load, give}, Handlers: []Handler{{Start: elsewhere, Target: load}}},
		"handler to elsewhere":  {Instructions: []*Instruction{load, give}, Handlers: []Handler{{Start: load, Target: elsewhere}}},
		"handler until elsewhere": {Instructions: []*Instruction{load, give},
			Handlers: []Handler{{Start: load, End: elsewhere, Target: load}}},
		"handler below the stack": {Instructions: []*Instruction{load, give}, Handlers: []Handler{{Start: load, Target: load, Depth: -1}}},
		"handler above the stack": {Instructions: []*Instruction{load, give}, Handlers: []Handler{{Start: load, Target: load, Depth: 1}}},
	}
	for name, listing := range cases {
		listing.Code = plainCode()
		if code, err := listing.Assemble(); err == nil {
			t.Errorf("%s: assembled as %x", name, code.Code)
		}
	}
}

// TestJumpDirections checks that assembly turns each jump the way its target lies.
func TestJumpDirections(t *testing.T) {
	none := NoPosition()
	for number := range opcodes {
		info := &opcodes[number]
		if info.opposite == Cache {
			continue
		}
		for _, op := range []Opcode{Opcode(number), info.opposite} {
			target := NewInstruction(Nop, 0, none)
			condition, end := NewInstruction(LoadConst, 0, none), NewInstruction(RaiseVarargs, 0, none)
			forward := []*Instruction{condition, NewJump(op, target, none), target, end}
			back := []*Instruction{target, condition, NewJump(op, target, none), end}
			if info.effect == 0 {
				forward, back = forward[1:], slices.Delete(back, 1, 2)
			}
			checkDirection(t, op, forward, ForwardJump)
			checkDirection(t, op, back, BackwardJump)
		}
	}
}

func checkDirection(t *testing.T, op Opcode, instructions []*Instruction, wanted JumpKind) {
	t.Helper()
	code, err := (&Listing{Code: plainCode(), Instructions: instructions}).Assemble()
	if err != nil {
		t.Errorf("%s: %v", op, err)
		return
	}
	listing, err := Decode(code)
	if err != nil {
		t.Errorf("%s: %v", op, err)
		return
	}
	for i, instruction := range listing.Instructions {
		if instruction.Jump != nil && instruction.Opcode.Info().Jump != wanted {
			t.Errorf("%s became %s at %d", op, instruction.Opcode, i)
		}
	}
}

// TestPositionsSurvive writes positions of every form and reads them back.
func TestPositionsSurvive(t *testing.T) {
	positions := []Position{
		{1, 1, 0, 5}, {1, 1, 79, 94}, {1, 1, 80, 81}, {2, 2, 127, 127}, {4, 4, 0, 127}, {3, 3, 5, 9}, {3, 9, 1, 2}, {3, 3, 128, 200},
		{1000, 1000, 0, 1}, {7, 7, -1, -1}, {7, 8, -1, -1}, {-1, -1, -1, -1}, {7, 7, 3, 3}, {7, 7, 20, 70}, {1, 100000, 4000, 2}, {5, 5, 9, 3},
	}
	listing := &Listing{Code: plainCode()}
	for i, position := range positions {
		op := []Opcode{Nop, LoadConst, JumpForward}[min(i%7, 1)]
		listing.Instructions = append(listing.Instructions, NewInstruction(op, i%5<<8, position))
	}
	listing.Instructions = append(listing.Instructions, NewInstruction(LoadMethod, 0, positions[3]), NewInstruction(ReturnValue, 0, NoPosition()))
	code, err := listing.Assemble()
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := Decode(code)
	if err != nil {
		t.Fatal(err)
	}
	for i, instruction := range decoded.Instructions {
		want := listing.Instructions[i].Position
		if instruction.Position != want {
			t.Errorf("position %d is %v, want %v", i, instruction.Position, want)
		}
		if found, ok := code.PositionAt(instruction.Offset); !ok || found != want {
			t.Errorf("position at %d is %v, want %v", instruction.Offset, found, want)
		}
	}
	if _, ok := code.PositionAt(len(code.Code)); ok {
		t.Error("there is a position past the end")
	}
}

// TestChainOfGrowingJumps assembles jumps that are as long as one byte allows, of which each must grow because one that it
// skips grows: shortest jumps would take a round of layout for each.
func TestChainOfGrowingJumps(t *testing.T) {
	const count = 100_000
	instructions := make([]*Instruction, count+300)
	for i := range instructions {
		instructions[i] = NewInstruction(Nop, 0, NoPosition())
	}
	for i := range count {
		instructions[i].Opcode, instructions[i].Jump = JumpForward, instructions[i+256]
	}
	instructions[count+10].Opcode, instructions[count+10].Arg = LoadConst, 256
	instructions[count+11].Opcode = ReturnValue
	instructions[count+299].Opcode = RaiseVarargs
	code, err := (&Listing{Code: plainCode(), Instructions: instructions}).Assemble()
	if err != nil {
		t.Fatal(err)
	}
	listing, err := Decode(code)
	if err != nil {
		t.Fatal(err)
	}
	for i := range count {
		if listing.Instructions[i].Jump != listing.Instructions[i+256] {
			t.Fatalf("jump %d leads elsewhere", i)
		}
	}
	if prefixed := len(code.Code)/2 - len(instructions); prefixed < count {
		t.Errorf("only %d prefixes: the jumps did not grow", prefixed)
	}
}
