package bytecode

import (
	"fmt"
	"math"
)

// Assemble turns the listing back into a code object: it lays the instructions out, chooses the forward or the backward
// form of each jump, inserts EXTENDED_ARG and CACHE entries, and writes the location table, the exception table and the
// stack size. Everything else is taken from l.Code, which stays as it is, as do the listing's instructions. A listing
// that was decoded from CPython's code and not edited gives the same bytes.
//
// It reports jumps and handlers to instructions that are not in the listing, jumps that cannot go the way they would have
// to, arguments that do not fit 31 bits, control that runs off the end, and a stack that underflows or whose depth at
// some instruction depends on the way there.
func (l *Listing) Assemble() (*Code, error) {
	assembler, err := newAssembler(l)
	if err != nil {
		return nil, err
	}
	if err := assembler.layOut(); err != nil {
		return nil, err
	}
	owners, err := assembler.owners()
	if err != nil {
		return nil, err
	}
	depth, err := assembler.stackSize(owners)
	if err != nil {
		return nil, err
	}
	code := l.Code.Copy()
	code.StackSize = depth
	code.Code = assembler.code()
	code.LineTable = assembler.locations()
	code.ExceptionTable = assembler.exceptionTable(owners)
	return code, nil
}

// StackSize returns the depth of stack that the listing needs, by the algorithm of CPython's compiler (stackdepth in
// Python/compile.c): the greatest depth along all paths, handlers included. Errors are those of Assemble.
func (l *Listing) StackSize() (int, error) {
	assembler, err := newAssembler(l)
	if err != nil {
		return 0, err
	}
	owners, err := assembler.owners()
	if err != nil {
		return 0, err
	}
	return assembler.stackSize(owners)
}

// placed is an instruction of the listing with what assembly decides about it.
type placed struct {
	*Instruction
	op     Opcode // in the jump's direction
	arg    int
	target int // index of the jump's target
	units  int // size in code units, prefixes and caches included
	start  int // first code unit
}

type assembler struct {
	listing *Listing
	index   map[*Instruction]int
	placed  []placed
}

func newAssembler(l *Listing) (*assembler, error) {
	a := &assembler{listing: l, index: make(map[*Instruction]int, len(l.Instructions)), placed: make([]placed, len(l.Instructions))}
	for i, instruction := range l.Instructions {
		if instruction == nil {
			return nil, fmt.Errorf("instruction %d of the listing is nil", i)
		}
		if earlier, twice := a.index[instruction]; twice {
			return nil, fmt.Errorf("%s stands in the listing twice, at %d and %d", instruction.Opcode, earlier, i)
		}
		a.index[instruction] = i
	}
	for i, instruction := range l.Instructions {
		if err := a.place(i, instruction); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// place resolves one instruction's opcode and argument, jump distances excepted.
func (a *assembler) place(i int, instruction *Instruction) error {
	p := placed{Instruction: instruction, op: instruction.Opcode, arg: instruction.Arg}
	info := &opcodes[p.op]
	switch {
	case info.Name == "" || p.op == Cache || p.op == ExtendedArg:
		return fmt.Errorf("opcode %d cannot stand in a listing", p.op)
	case info.Jump != NoJump:
		if err := a.placeJump(i, &p); err != nil {
			return err
		}
	case instruction.Jump != nil:
		return fmt.Errorf("%s has a jump target but does not jump", p.op)
	case p.arg < 0 || p.arg > math.MaxInt32:
		return fmt.Errorf("argument %d of %s does not fit 31 bits", p.arg, p.op)
	}
	p.units = prefixes(p.arg) + 1 + info.Caches
	a.placed[i] = p
	return nil
}

func (a *assembler) placeJump(i int, p *placed) error {
	target, ok := a.index[p.Jump]
	if !ok {
		return fmt.Errorf("%s jumps to an instruction that is not in the listing", p.op)
	}
	wanted := BackwardJump
	if target > i {
		wanted = ForwardJump
	}
	if info := &opcodes[p.op]; info.Jump != wanted {
		if info.opposite == Cache {
			return fmt.Errorf("%s jumps from instruction %d to %d, which it cannot", p.op, i, target)
		}
		p.op = info.opposite
	}
	p.target, p.arg = target, 0
	return nil
}

// prefixes returns how many EXTENDED_ARG an argument needs.
func prefixes(arg int) int {
	switch {
	case arg > 0xFFFFFF:
		return 3
	case arg > 0xFFFF:
		return 2
	case arg > 0xFF:
		return 1
	}
	return 0
}

// maxRounds bounds the search for the shortest jumps. CPython's code needs a handful of rounds; code could be made in which
// every round lengthens a single jump, and there jumps that have to grow get all the prefixes they could ever need.
const maxRounds = 100

// layOut assigns offsets. Instructions only ever grow from one round to the next, so the rounds end.
func (a *assembler) layOut() error {
	grown := true
	for round := 0; grown; round++ {
		total := 0
		for i := range a.placed {
			a.placed[i].start = total
			total += a.placed[i].units
		}
		if total > math.MaxInt32/2 {
			return fmt.Errorf("code of %d entries is too long", total)
		}
		grown = a.measureJumps(round >= maxRounds)
	}
	return nil
}

// measureJumps computes jump distances and tells whether any instruction outgrew its place.
func (a *assembler) measureJumps(generous bool) bool {
	grown := false
	for i := range a.placed {
		p := &a.placed[i]
		info := &opcodes[p.op]
		if info.Jump == NoJump {
			continue
		}
		p.arg = a.placed[p.target].start - (p.start + p.units)
		if info.Jump == BackwardJump {
			p.arg = -p.arg
		}
		if units := prefixes(p.arg) + 1 + info.Caches; units > p.units {
			p.units = units
			grown = true
		}
		if generous {
			p.units = prefixes(math.MaxInt32) + 1 + info.Caches
		}
	}
	return grown
}

func (a *assembler) code() []byte {
	last := len(a.placed) - 1
	if last < 0 {
		return nil
	}
	out := make([]byte, 0, 2*(a.placed[last].start+a.placed[last].units))
	for i := range a.placed {
		p := &a.placed[i]
		caches := opcodes[p.op].Caches
		for prefix := p.units - 1 - caches; prefix > 0; prefix-- {
			out = append(out, byte(ExtendedArg), byte(p.arg>>(8*prefix)))
		}
		out = append(out, byte(p.op), byte(p.arg))
		for range caches {
			out = append(out, byte(Cache), 0)
		}
	}
	return out
}

func (a *assembler) locations() []byte {
	writer := locationWriter{line: a.listing.Code.FirstLine, table: make([]byte, 0, 3*len(a.placed))}
	for i := range a.placed {
		writer.add(a.placed[i].Position, a.placed[i].units)
	}
	return writer.table
}

// noHandler is the owner of an instruction that no handler protects.
const noHandler = -1

// owners returns for each instruction the index of the handler in force. It paints handlers in order and skips what is
// painted already (next is a disjoint-set forest over instructions), so many overlapping handlers cost little.
func (a *assembler) owners() ([]int, error) {
	count := len(a.placed)
	owners, next := make([]int, count), make([]int, count+1)
	for i := range next {
		next[i] = i
	}
	for i := range owners {
		owners[i] = noHandler
	}
	for number, handler := range a.listing.Handlers {
		start, end, err := a.handlerRange(handler)
		if err != nil {
			return nil, err
		}
		for i := findUnpainted(next, start); i < end; i = findUnpainted(next, i) {
			owners[i] = number
			next[i] = i + 1
		}
	}
	return owners, nil
}

func findUnpainted(next []int, i int) int {
	for next[i] != i {
		next[i] = next[next[i]]
		i = next[i]
	}
	return i
}

func (a *assembler) handlerRange(handler Handler) (start, end int, err error) {
	start, hasStart := a.index[handler.Start]
	_, hasTarget := a.index[handler.Target]
	end, hasEnd := a.index[handler.End]
	if handler.End == nil {
		end, hasEnd = len(a.placed), true
	}
	if !hasStart || !hasTarget || !hasEnd {
		return 0, 0, fmt.Errorf("handler names an instruction that is not in the listing")
	}
	if handler.Depth < 0 {
		return 0, 0, fmt.Errorf("handler has stack depth %d", handler.Depth)
	}
	return start, end, nil
}

// exceptionTable joins neighbours that have the same handler into one entry.
func (a *assembler) exceptionTable(owners []int) []byte {
	var table []byte
	for first := 0; first < len(owners); {
		last := first
		for last+1 < len(owners) && owners[last+1] == owners[first] {
			last++
		}
		if owners[first] != noHandler {
			handler := a.listing.Handlers[owners[first]]
			table = appendExceptionEntry(table, exceptionEntry{
				start: 2 * a.placed[first].start, end: 2 * (a.placed[last].start + a.placed[last].units),
				target: 2 * a.placed[a.index[handler.Target]].start, depth: handler.Depth, pushLasti: handler.PushLasti,
			})
		}
		first = last + 1
	}
	return table
}
