package bytecode

import "fmt"

// Instruction is one instruction of a Listing. Two instructions are the same exactly if they are the same pointer.
type Instruction struct {
	Opcode   Opcode
	Arg      int          // with prefixes folded in; ignored where Jump is set
	Jump     *Instruction // target of a jump, nil for instructions that do not jump
	Offset   int          // byte offset in the decoded code, after any EXTENDED_ARG; -1 for new instructions
	Position Position
}

// Handler says where control goes when an instruction of a range raises: the stack is cut to Depth, the offset of the
// raising instruction is pushed if PushLasti, then the exception is pushed, and Target runs.
type Handler struct {
	Start, End *Instruction // End is exclusive; nil stands for the end of the code
	Target     *Instruction
	Depth      int
	PushLasti  bool
}

// Listing is code taken apart so that it can be edited: EXTENDED_ARG and CACHE entries are implied, and jumps and
// exception handlers name instructions rather than offsets.
type Listing struct {
	Code         *Code // where the code came from; Assemble takes everything else from it
	Instructions []*Instruction
	Handlers     []Handler // where ranges overlap, the handler listed first is in force
}

// NewInstruction makes an instruction that does not jump and has no place in earlier code.
func NewInstruction(op Opcode, arg int, position Position) *Instruction {
	return &Instruction{Opcode: op, Arg: arg, Offset: -1, Position: position}
}

// NewJump makes a jump instruction to a target.
func NewJump(op Opcode, target *Instruction, position Position) *Instruction {
	return &Instruction{Opcode: op, Jump: target, Offset: -1, Position: position}
}

// Decode takes a code object apart. It reports code that CPython's compiler cannot have written: unknown opcodes, jumps
// and handlers that lead outside the code or into the middle of an instruction, truncated instructions and tables.
func Decode(code *Code) (*Listing, error) {
	decoder := decoder{code: code, starts: make([]*Instruction, len(code.Code)/2+1)}
	if err := decoder.instructions(); err != nil {
		return nil, err
	}
	if err := decoder.jumps(); err != nil {
		return nil, err
	}
	if err := decoder.positions(); err != nil {
		return nil, err
	}
	handlers, err := decoder.handlers()
	if err != nil {
		return nil, err
	}
	return &Listing{Code: code, Instructions: decoder.list, Handlers: handlers}, nil
}

type decoder struct {
	code   *Code
	list   []*Instruction
	starts []*Instruction // by code unit: the instruction whose first unit, prefixes included, is there
}

// rawInstruction is an instruction or a prefix where it stands in the code.
type rawInstruction struct {
	op     Opcode
	arg    int // with the prefixes before it
	offset int
}

// scanCode calls visit for each instruction and EXTENDED_ARG prefix, but not for inline caches.
func scanCode(code []byte, visit func(rawInstruction) error) error {
	if len(code)%2 != 0 {
		return fmt.Errorf("code of %d bytes is not a sequence of two-byte entries", len(code))
	}
	extended := 0
	for offset := 0; offset < len(code); {
		op := Opcode(code[offset])
		info := &opcodes[op]
		if info.Name == "" || op == Cache {
			return fmt.Errorf("opcode %d at offset %d is not an instruction of CPython 3.11", op, offset)
		}
		arg := extended | int(code[offset+1])
		extended = 0
		if op == ExtendedArg {
			extended = int(int32(uint32(arg) << 8))
		}
		if err := visit(rawInstruction{op, arg, offset}); err != nil {
			return err
		}
		offset += 2 + 2*info.Caches
		if offset > len(code) {
			return fmt.Errorf("code ends inside the inline cache of %s", op)
		}
	}
	return nil
}

func (d *decoder) instructions() error {
	pool := make([]Instruction, 0, len(d.code.Code)/2) // never grows, so pointers into it stay valid
	first := -1
	err := scanCode(d.code.Code, func(raw rawInstruction) error {
		if first < 0 {
			first = raw.offset
		}
		if raw.op == ExtendedArg {
			return nil
		}
		if raw.arg < 0 {
			return fmt.Errorf("argument of %s at offset %d exceeds 31 bits", raw.op, raw.offset)
		}
		pool = append(pool, Instruction{Opcode: raw.op, Arg: raw.arg, Offset: raw.offset, Position: NoPosition()})
		d.list = append(d.list, &pool[len(pool)-1])
		d.starts[first/2] = &pool[len(pool)-1]
		first = -1
		return nil
	})
	if err == nil && first >= 0 {
		return fmt.Errorf("code ends with %s", ExtendedArg)
	}
	return err
}

// at returns the instruction that starts at a byte offset.
func (d *decoder) at(offset int) *Instruction {
	if offset < 0 || offset/2 >= len(d.starts) {
		return nil
	}
	return d.starts[offset/2]
}

func (d *decoder) jumps() error {
	for _, instruction := range d.list {
		info := &opcodes[instruction.Opcode]
		if info.Jump == NoJump {
			continue
		}
		target := jumpTarget(info, instruction.Offset, instruction.Arg)
		instruction.Jump = d.at(target)
		if instruction.Jump == nil {
			return fmt.Errorf("%s at offset %d jumps to %d, where no instruction starts", instruction.Opcode, instruction.Offset, target)
		}
	}
	return nil
}

// jumpTarget returns the byte offset that a jump at an offset leads to. Jumps count from the end of the instruction and
// its caches; no jump of CPython 3.11 has caches.
func jumpTarget(info *OpcodeInfo, offset, arg int) int {
	next := offset + 2 + 2*info.Caches
	if info.Jump == BackwardJump {
		return next - 2*arg
	}
	return next + 2*arg
}

// positions gives each instruction the position of its last prefix-free unit.
func (d *decoder) positions() error {
	runs, err := parseLocations(d.code.LineTable, d.code.FirstLine)
	if err != nil {
		return err
	}
	end, next := 0, 0 // code units covered by runs[:next]
	for _, instruction := range d.list {
		for end <= instruction.Offset/2 && next < len(runs) {
			end += runs[next].units
			next++
		}
		if end > instruction.Offset/2 {
			instruction.Position = runs[next-1].position
		}
	}
	return nil
}

func (d *decoder) handlers() ([]Handler, error) {
	entries, err := parseExceptionTable(d.code.ExceptionTable)
	if err != nil {
		return nil, err
	}
	handlers := make([]Handler, 0, len(entries))
	previousEnd := 0
	for _, entry := range entries {
		handler := Handler{
			Start: d.at(entry.start), End: d.at(entry.end), Target: d.at(entry.target),
			Depth: entry.depth, PushLasti: entry.pushLasti,
		}
		endKnown := handler.End != nil || entry.end == len(d.code.Code)
		if handler.Start == nil || handler.Target == nil || !endKnown || entry.start >= entry.end || entry.start < previousEnd {
			return nil, fmt.Errorf("exception table entry %d to %d -> %d does not fit the code", entry.start, entry.end, entry.target)
		}
		previousEnd = entry.end
		handlers = append(handlers, handler)
	}
	return handlers, nil
}
