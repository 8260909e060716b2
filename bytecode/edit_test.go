package bytecode

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// recode applies an edit to a code object and to all code objects among its constants.
func recode(code *Code, edit func(*Listing) error) (*Code, error) {
	code = code.Copy()
	code.Consts = slices.Clone(code.Consts)
	for i, constant := range code.Consts {
		if inner, ok := constant.(*Code); ok {
			edited, err := recode(inner, edit)
			if err != nil {
				return nil, err
			}
			code.Consts[i] = edited
		}
	}
	listing, err := Decode(code)
	if err != nil {
		return nil, err
	}
	if err := edit(listing); err != nil {
		return nil, err
	}
	assembled, err := listing.Assemble()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", code.QualName, err)
	}
	return assembled, nil
}

// mustFollow tells where CPython relies on an instruction following another directly: CALL its PRECALL, and RESUME the
// YIELD_VALUE of a delegating generator.
func mustFollow(instruction *Instruction) bool {
	return instruction.Opcode == Call || instruction.Opcode == Resume
}

// padWith puts count NOPs before every instruction, so that jumps grow.
func padWith(count int) func(*Listing) error {
	return func(l *Listing) error {
		var padded []*Instruction
		for i, instruction := range l.Instructions {
			if i > 0 && !mustFollow(instruction) {
				for range count {
					padded = append(padded, NewInstruction(Nop, 0, instruction.Position))
				}
			}
			padded = append(padded, instruction)
		}
		l.Instructions = padded
		return nil
	}
}

// crowdConstants puts constants before those of the code, so that their indices need more bytes.
func crowdConstants(count int) func(*Listing) error {
	return func(l *Listing) error {
		l.Code = l.Code.Copy()
		l.Code.Consts = append(make([]Object, count), l.Code.Consts...)
		for i := range count {
			l.Code.Consts[i] = None
		}
		for _, instruction := range l.Instructions {
			if kind := instruction.Opcode.Info().Argument; kind == ArgumentConstant || kind == ArgumentKeywordNames {
				instruction.Arg += count
			}
		}
		return nil
	}
}

// removeNops takes NOPs out and leads what named them to the instruction after.
func removeNops(l *Listing) error {
	kept := make([]*Instruction, 0, len(l.Instructions))
	successor := map[*Instruction]*Instruction{}
	var next *Instruction
	for _, instruction := range slices.Backward(l.Instructions) {
		if instruction.Opcode != Nop {
			next = instruction
			kept = append(kept, instruction)
		}
		successor[instruction] = next
	}
	slices.Reverse(kept)
	l.Instructions = kept
	for _, instruction := range kept {
		if instruction.Jump != nil {
			instruction.Jump = successor[instruction.Jump]
		}
	}
	l.Handlers = slices.DeleteFunc(l.Handlers, func(h Handler) bool { return successor[h.Start] == successor[h.End] })
	for i := range l.Handlers {
		h := &l.Handlers[i]
		h.Start, h.End, h.Target = successor[h.Start], successor[h.End], successor[h.Target]
	}
	return nil
}

// shuffleBlocks moves stretches of code that control does not run out of, with their handlers, so that jumps change their
// direction. Orders in which an instruction would have to jump a way that it cannot are tried again. It counts the code
// objects that came out in a new order.
func shuffleBlocks(random *rand.Rand, moved *int) func(*Listing) error {
	return func(l *Listing) error {
		blocks, handlers := cutBlocks(l)
		for range 20 {
			random.Shuffle(len(blocks)-1, func(i, j int) { blocks[i+1], blocks[j+1] = blocks[j+1], blocks[i+1] })
			shuffled := &Listing{Code: l.Code, Instructions: slices.Concat(blocks...)}
			shuffled.Handlers = cutHandlers(shuffled.Instructions, handlers)
			if _, err := shuffled.Assemble(); err == nil {
				if !slices.Equal(l.Instructions, shuffled.Instructions) {
					*moved++
				}
				*l = *shuffled
				return nil
			}
		}
		return nil
	}
}

// cutBlocks returns the stretches and the handler of each instruction.
func cutBlocks(l *Listing) ([][]*Instruction, map[*Instruction]*Handler) {
	var blocks [][]*Instruction
	handlers := map[*Instruction]*Handler{}
	first := 0
	var current *Handler
	for i, instruction := range l.Instructions {
		if current != nil && current.End == instruction {
			current = nil
		}
		for h := range l.Handlers {
			if l.Handlers[h].Start == instruction {
				current = &l.Handlers[h]
			}
		}
		handlers[instruction] = current
		if instruction.Opcode.Info().EndsBlock {
			blocks = append(blocks, l.Instructions[first:i+1])
			first = i + 1
		}
	}
	return blocks, handlers
}

// cutHandlers returns a handler for each run of instructions that has the same one.
func cutHandlers(instructions []*Instruction, handlers map[*Instruction]*Handler) []Handler {
	var cut []Handler
	for i, instruction := range instructions {
		handler := handlers[instruction]
		if i > 0 && handler == handlers[instructions[i-1]] {
			continue
		}
		if i > 0 && handlers[instructions[i-1]] != nil {
			cut[len(cut)-1].End = instruction
		}
		if handler != nil {
			cut = append(cut, Handler{Start: instruction, Target: handler.Target, Depth: handler.Depth, PushLasti: handler.PushLasti})
		}
	}
	return cut
}

// nestHandlers lists for each handler a second one over the same range that would go wrong, and must not be used.
func nestHandlers(l *Listing) error {
	for _, handler := range slices.Clone(l.Handlers) {
		l.Handlers = append(l.Handlers, Handler{Start: handler.Start, End: handler.End, Target: handler.Target})
	}
	return nil
}

// TestEditedCodeRunsTheSame lets CPython run a program whose every function was edited without changing what it means.
func TestEditedCodeRunsTheSame(t *testing.T) {
	t.Parallel()
	original, err := Unmarshal(fromHex(t, runPython(t, "", "testdata/run_code.py", "testdata/programs.py")))
	if err != nil {
		t.Fatal(err)
	}
	edits := map[string]func(*Listing) error{
		"unchanged":                func(*Listing) error { return nil },
		"a NOP everywhere":         padWith(1),
		"jumps of two bytes":       padWith(60),
		"jumps of three bytes":     padWith(1200),
		"constants of two bytes":   crowdConstants(300),
		"constants of three bytes": crowdConstants(1 << 16),
		"no NOPs":                  removeNops,
		"overlapping handlers":     nestHandlers,
	}
	moved := 0
	for seed := range uint64(6) {
		edits[fmt.Sprintf("shuffled with seed %d", seed)] = shuffleBlocks(rand.New(rand.NewPCG(seed, 0)), &moved)
	}
	wanted := runPython(t, hex.EncodeToString(marshalled(t, original)), "testdata/run_code.py")
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			edited, err := recode(original.(*Code), edit)
			if err != nil {
				t.Fatal(err)
			}
			got := runPython(t, hex.EncodeToString(marshalled(t, edited)), "testdata/run_code.py")
			if got != wanted {
				t.Errorf("prints\n%s\nand not\n%s", got, wanted)
			}
		})
	}
	if moved < 60 || strings.Count(wanted, "\n") < 20 {
		t.Errorf("%d code objects were shuffled, of a program that prints %q", moved, wanted)
	}
}

func marshalled(t *testing.T, object Object) []byte {
	t.Helper()
	data, err := Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
