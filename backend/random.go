package backend

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"fusee/backend/loop"
	"fusee/bytecode"
	"fusee/graph"
)

// drawing says which random number each element of an operation is.
type drawing struct {
	strides []graph.Size // which number an element has, in the order of memory of the tensor that eager would fill
	number  int64        // of the tensor, among those of one seed
	// lanes is 0 for one stream of numbers; else numbers are dealt to threads as eager does, of which each takes as many neighbours at once, or as
	// many as the state says where it is negative. The operation's operands are then seed, first counter, threads, and binary logarithm of lanes.
	lanes int64
}

// uniform gives uniform numbers that follow from a seed.
func (r *recipe) uniform() bool {
	state, output := r.stateTensor(), r.result(0)
	strides, known := graph.SizesOf(r.argument("stride", 4))
	number, _ := r.argument("number", 1).(int64)
	lanes, _ := r.argument("lanes", 2).(int64)
	if state == nil || !known || output.meta.DType != graph.Float32 && output.meta.DType != graph.Float64 {
		return false
	}
	result := r.formula("uniform", output, number0)
	made := r.pending[len(r.pending)-1]
	made.draws = &drawing{strides: strides, number: number, lanes: lanes}
	if lanes == 0 {
		if state.meta.Device != r.device {
			return false
		}
		made.operands = []operand{{tensor: firstOf(state), as: loop.I64}}
		return r.commit(result)
	}
	for column := range int64(stateColumns) {
		made.operands = append(made.operands, operand{scalar: &scalar{typ: loop.I64, slot: -1, state: state, item: number*stateColumns + column}, as: loop.I64})
	}
	return r.commit(result)
}

// firstOf is the first element of a tensor.
func firstOf(t *tensor) *tensor {
	meta := t.meta
	meta.Sizes, meta.Strides = nil, nil
	return t.under(meta)
}

// stateColumns is how many numbers a state has for each tensor.
const stateColumns = 4

// number0 stands for the formula of numbers that are drawn.
var number0 = number(int64(0))

func (r *recipe) stateTensor() *tensor {
	key, _ := keyOf(r.argument("state", 0))
	return r.b.program.values[key].tensor
}

// item is an element of a tensor of the CPU that kernels are passed as a number.
type item struct {
	state  *tensor
	number int64
}

// items lists those of a program; their symbols count them.
type items []item

const itemPrefix = "item "

// symbol names an element.
func (i *items) symbol(state *tensor, number int64) string {
	for index, known := range *i {
		if known.state == state && known.number == number {
			return itemPrefix + strconv.Itoa(index)
		}
	}
	*i = append(*i, item{state, number})
	return itemPrefix + strconv.Itoa(len(*i)-1)
}

func (i *items) named(name string) (item, bool) {
	text, ok := strings.CutPrefix(name, itemPrefix)
	index, err := strconv.Atoi(text)
	if !ok || err != nil || index >= len(*i) {
		return item{}, false
	}
	return (*i)[index], true
}

// of gives the element that a number is, if it is one.
func (i *items) of(size graph.Size) (item, bool) {
	if size.Expr == nil || size.Expr.Op != graph.ExprSymbol {
		return item{}, false
	}
	return i.named(size.Expr.Name)
}

// readGenerator appends the step that reads the state of a GPU's generator.
func (p *plan) readGenerator(op *operation) error {
	given, draws := &bytecode.List{}, &bytecode.List{}
	c := &caller{plan: p}
	tensors, _ := op.node.Argument("given")
	for _, value := range tensors.(graph.List).Items {
		slot, err := c.tensor(value)
		if err != nil {
			return err
		}
		given.Items = append(given.Items, int64(slot))
	}
	numbers, _ := op.node.Argument("draws")
	for _, value := range numbers.(graph.List).Items {
		draws.Items = append(draws.Items, value)
	}
	device, _ := op.node.Argument("device")
	_, index := deviceNumber(device.(graph.Device))
	p.compilation.result.ReadsGenerator = true
	slot := p.newSlot(op.outputs[0])
	p.add(fmt.Sprintf("slot %d = state of the generator of cuda:%d", slot, index), append([]int{slot}, c.slots...), "generator", int64(slot), index, draws, given)
	return nil
}

// ordinal is the number of an element in the order of memory, as a sum over the group's dimensions of positions times strides.
type ordinal struct {
	at        strided
	positions []loop.Value // by dimension of the group; −1 where the position does not count
	factors   []loop.Value
}

// walks lists how the kernel goes over memory, and over numbers of elements.
func (k *kernelBuilder) walks() []strided {
	var result []strided
	for _, place := range k.places {
		result = append(result, place.at)
	}
	for _, ordinal := range k.ordinal {
		result = append(result, ordinal.at)
	}
	return result
}

// number appends the sum; what it is made of is filled in when the kernel's dimensions are known.
func (k *kernelBuilder) number(op *operation) loop.Value {
	o := ordinal{at: strided{strides: make([]graph.Size, len(k.group.space))}}
	for dimension, along := range k.group.mappings[op] {
		if along >= 0 && !isStatic(k.group.space[along], 1) {
			o.at.strides[along] = k.shapes.Add(o.at.strides[along], op.draws.strides[dimension])
		}
	}
	sum := k.Constant(loop.I64, 0)
	for dimension, stride := range o.at.strides {
		o.positions, o.factors = append(o.positions, -1), append(o.factors, -1)
		counter := k.group.split && dimension == len(k.group.space)-1
		if isStatic(stride, 0) && !counter {
			continue
		}
		o.positions[dimension] = k.Append(loop.Instruction{Op: loop.OpIndex, Type: loop.I64})
		o.factors[dimension] = k.Constant(loop.I64, 0)
		sum = k.Do(loop.OpAdd, loop.I64, sum, k.Do(loop.OpMultiply, loop.I64, o.positions[dimension], o.factors[dimension]))
	}
	k.ordinal = append(k.ordinal, o)
	return sum
}

// fillOrdinals puts in the kernel's dimensions and the strides along them. A dimension that went into another one counts there.
func (k *kernelBuilder) fillOrdinals(dimensions []merged) {
	for _, o := range k.ordinal {
		for dimension, position := range o.positions {
			if position < 0 {
				continue
			}
			found := -1
			for index, m := range dimensions {
				if m.dimension == dimension+1 {
					found = index
				}
			}
			factor := k.Kernel.Instruction(o.factors[dimension])
			if stride, static := k.integer(o.at.strides[dimension]).Static(); static {
				factor.Bits = loop.IntBits(stride)
			} else {
				factor.Op = loop.OpArgument
				factor.Index, _ = k.integer(o.at.strides[dimension]).Argument()
			}
			if found < 0 {
				*k.Kernel.Instruction(position) = loop.Instruction{Op: loop.OpConstant, Type: loop.I64}
				continue
			}
			k.Kernel.Instruction(position).Index = found
		}
	}
}

// draw appends the uniform number of an element.
func (k *kernelBuilder) draw(op *operation) loop.Value {
	p := loop.Philox{Builder: k.Builder}
	number := p.Convert(loop.U64, k.number(op))
	atOnce := uint64(4)
	if op.compute == loop.F64 {
		atOnce = 2
	}
	var words [4]loop.Value
	var chosen loop.Value
	if op.draws.lanes == 0 {
		seed := p.Convert(loop.U64, k.load(op, op.operands[0].tensor).number)
		call, which := p.Divide(number, atOnce)
		words, chosen = p.Words(seed, call, p.Literal(loop.U64, uint64(op.draws.number))), which
	} else {
		words, chosen = k.dealt(p, op, number, atOnce)
	}
	if atOnce == 2 {
		return p.Double(words, chosen)
	}
	return p.Single(words, chosen)
}

// dealt finds the number that eager gives an element: threads take turns, of one element or of several neighbours, and each uses up what it draws at
// once before it draws again; of neighbours, it draws for every turn.
func (k *kernelBuilder) dealt(p loop.Philox, op *operation, number loop.Value, atOnce uint64) (words [4]loop.Value, chosen loop.Value) {
	state := make([]loop.Value, stateColumns)
	for column, operand := range op.operands {
		state[column] = p.Convert(loop.U64, k.scalar(operand.scalar))
	}
	u32 := func(value loop.Value) loop.Value { return p.Convert(loop.U32, value) }
	one := p.Literal(loop.U32, 1)
	shift := u32(state[3])
	if op.draws.lanes > 0 {
		shift = p.Literal(loop.U32, uint64(bits.TrailingZeros64(uint64(op.draws.lanes))))
	}
	element, threads := u32(number), u32(state[2])
	group := p.Do(loop.OpShiftRight, loop.U32, element, shift)
	lane := p.Do(loop.OpSubtract, loop.U32, element, p.Do(loop.OpShiftLeft, loop.U32, group, shift))
	turn := p.Do(loop.OpDivideTruncate, loop.U32, group, threads)
	thread := p.Do(loop.OpSubtract, loop.U32, group, p.Do(loop.OpMultiply, loop.U32, turn, threads))
	alone := p.Do(loop.OpEqual, loop.Bool, shift, p.Literal(loop.U32, 0))
	aloneCall, aloneWhich := p.Divide(turn, atOnce)
	many := p.Do(loop.OpGreater, loop.Bool, shift, p.Literal(loop.U32, 2))
	manyTurns := p.Do(loop.OpShiftLeft, loop.U32, turn, one)
	laneCall, laneWhich := p.Divide(lane, 4)
	call := p.Do(loop.OpAdd, loop.U32, p.Do(loop.OpSelect, loop.U32, many, manyTurns, turn), laneCall)
	call = p.Do(loop.OpSelect, loop.U32, alone, aloneCall, call)
	chosen = p.Do(loop.OpSelect, loop.U32, alone, aloneWhich, laneWhich)
	counter := p.Do(loop.OpAdd, loop.U64, state[1], p.Convert(loop.U64, call))
	return p.Words(state[0], counter, p.Convert(loop.U64, thread)), p.Convert(loop.U64, chosen)
}
