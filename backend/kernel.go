package backend

import (
	"fmt"
	"slices"

	"fusee/backend/loop"
	"fusee/graph"
)

// kernel is a loop kernel with what the plan needs to launch it.
type kernel struct {
	loop       *loop.Kernel
	arguments  []*tensor // one for each buffer: roots whose memory it points to
	integers   []graph.Size
	work       graph.Size
	operations []string // names of what was fused, in program order
}

// place is where an access is before the kernel's dimensions are final.
type place struct {
	access *loop.Access
	at     strided
}

// kernelBuilder writes a group as a loop kernel. Accesses are kept over the group's dimensions until all are known; then dimensions are ordered and
// merged, and the accesses filled in.
type kernelBuilder struct {
	*loop.Builder
	shapes  *graph.ShapeEnvironment
	items   *items
	group   *group
	options *Options
	result  *kernel
	places  []place
	buffers map[*tensor]int
	levels  map[*operation]int
	rows    map[*operation]value // computed once per outer point
	points  map[*operation]value // computed in the open stage
	loads   map[string]loop.Value
	counted map[loop.Value]int        // positions, and the group's dimension that they are along
	ordinal []ordinal                 // of elements that random numbers are drawn for
	inners  []int                     // numbers of the stages with inner loops
	spills  map[*operation]*operation // members that wait in an output's memory between stages
	spilled map[*operation]bool
}

// value is a member's result in compute type. Its stored type is narrower when rounding is still to come.
type value struct {
	number loop.Value
	stored loop.Type
}

func buildKernel(c *compilation, g *group) *kernel {
	k := &kernelBuilder{
		Builder: loop.NewBuilder("kernel"), shapes: c.graph.Shapes, items: &c.program.items, group: g, options: &c.compiler.options, result: &kernel{},
		buffers: map[*tensor]int{}, levels: map[*operation]int{}, rows: map[*operation]value{}, counted: map[loop.Value]int{},
	}
	k.result.loop = k.Kernel
	members := slices.Clone(g.members)
	slices.Reverse(members)
	for _, op := range members {
		k.levels[op] = k.level(op)
		k.result.operations = append(k.result.operations, op.name)
	}
	if g.hasInner() {
		k.planSpills(members)
		k.rowKernel(members)
	} else {
		k.open(false)
		k.stores(members, func(*operation) bool { return true })
	}
	k.finish()
	return k.result
}

// level counts the reductions that must be complete before the operation can be computed.
func (k *kernelBuilder) level(op *operation) int {
	level := 0
	for _, operand := range op.operands {
		producer := k.member(operand.tensor)
		if producer == nil {
			continue
		}
		before := k.levels[producer]
		if producer.kind == reduction {
			before++
		}
		level = max(level, before)
	}
	return level
}

// member returns the operation of this group that makes the tensor's root, or nil when it is read from memory.
func (k *kernelBuilder) member(t *tensor) *operation {
	if t == nil || t.root.producer == nil || t.root.producer.group != k.group {
		return nil
	}
	return t.root.producer
}

// perRow reports whether a pointwise member has one value per outer point.
func (k *kernelBuilder) perRow(op *operation) bool {
	return op.kind != reduction && !slices.ContainsFunc(k.group.mappings[op], func(dimension int) bool { return dimension >= 0 && k.group.inner[dimension] })
}

// rowKernel alternates stages that compute one value per outer point with stages that loop over the inner dimensions.
func (k *kernelBuilder) rowKernel(members []*operation) {
	last := 0
	for _, op := range members {
		last = max(last, k.levels[op]+1)
	}
	for level := range last + 1 {
		k.rowStage(members, level)
		k.innerStage(members, level)
	}
}

// rowStage computes members with one value per outer point, and stores them and the reductions just completed.
func (k *kernelBuilder) rowStage(members []*operation, level int) {
	var here []*operation
	for _, op := range members {
		reduced := op.kind == reduction && k.levels[op] == level-1 && k.group.stored[op.outputs[0]]
		if reduced || k.perRow(op) && k.levels[op] == level {
			here = append(here, op)
		}
	}
	if len(here) == 0 {
		return
	}
	k.open(false)
	for _, op := range here {
		if op.kind == pointwise {
			k.rows[op] = k.compute(op)
		}
	}
	k.stores(here, func(*operation) bool { return true })
}

// innerStage runs the reductions of one level and stores the members of full extent that are complete by now.
func (k *kernelBuilder) innerStage(members []*operation, level int) {
	here := func(op *operation) bool {
		return k.levels[op] == level && (op.kind == reduction || k.group.stored[op.outputs[0]] && !k.perRow(op))
	}
	if !slices.ContainsFunc(members, here) {
		return
	}
	k.open(true)
	for _, op := range members {
		if here(op) && op.kind == reduction {
			k.rows[op] = k.reduction(op)
		}
	}
	k.spill(members)
	k.stores(members, func(op *operation) bool { return here(op) && op.kind == pointwise })
}

// open starts a stage; its sizes are filled in at the end.
func (k *kernelBuilder) open(inner bool) {
	k.Stage()
	if inner {
		k.inners = append(k.inners, len(k.Kernel.Stages)-1)
	}
	k.points = map[*operation]value{}
	k.loads = map[string]loop.Value{}
}

// stores writes the chosen members that somebody outside needs.
func (k *kernelBuilder) stores(members []*operation, chosen func(*operation) bool) {
	for _, op := range members {
		if chosen(op) && k.group.overwrites() && k.group.stored[op.outputs[0]] {
			k.evaluate(op) // what reads memory comes before what stores to it
		}
	}
	for _, op := range members {
		output := op.outputs[0]
		if !chosen(op) || !k.group.stored[output] {
			continue
		}
		result := k.evaluate(op)
		number := k.convert(result.number, op.result)
		if output.into != nil {
			output = output.into
		}
		at := reading(k.shapes, output, output.meta.Sizes, k.group.mappings[op], len(k.group.space))
		access := k.access(output.root, op.result, loop.Write, at)
		k.Append(loop.Instruction{Op: loop.OpStore, Type: op.result, Args: []loop.Value{number}, Access: access})
	}
}

func (k *kernelBuilder) convert(number loop.Value, typ loop.Type) loop.Value {
	if k.Kernel.Instruction(number).Type == typ {
		return number
	}
	return k.Cast(typ, number)
}

// evaluate returns a member's value, computing it where it is not known yet.
func (k *kernelBuilder) evaluate(op *operation) value {
	if known, ok := k.rows[op]; ok {
		return known
	}
	if _, known := k.points[op]; !known {
		k.points[op] = k.atPoint(op)
	}
	return k.points[op]
}

// atPoint computes an operation at the point, or reads it back from where it was spilled.
func (k *kernelBuilder) atPoint(op *operation) value {
	if k.spilled[op] {
		return k.unspill(op)
	}
	return k.compute(op)
}

// compute appends a pointwise member's formula.
func (k *kernelBuilder) compute(op *operation) value {
	if op.draws != nil {
		return value{k.draw(op), op.result}
	}
	x := &expressionBuilder{Builder: k.Builder, compute: op.compute, short: k.mayBeShort(op)}
	x.operand = func(index int, rounded bool) loop.Value { return k.read(op, index, rounded) }
	want := resultOf(op.body, op.compute)
	discrete := op.result.Is(loop.ClassBits) && want.Is(loop.ClassFloat) // casts of floats to integers and bool jump
	number := x.convert(x.build(op.body, want, discrete), want)
	number = k.convert(number, computeType(op.result))
	// A cast that the program asks for rounds, whatever is fused around it; a wider value that only happens to be stored narrowly need not.
	asked := op.node != nil && op.node.Target == "aten._to_copy.default"
	return k.rounded(value{number, op.result}, asked || k.options.RoundIntermediates)
}

// mayBeShort reports whether functions may be computed with fewer instructions, which is where those and not memory may be what takes time: in a formula whose
// result eager rounds to bfloat16.
func (k *kernelBuilder) mayBeShort(op *operation) bool {
	return (op.result == loop.BF16 || op.rounded) && op.compute == loop.F32 && !k.options.RoundIntermediates
}

// rounded brings a value to what storing and loading it would give, if asked to.
func (k *kernelBuilder) rounded(v value, asked bool) value {
	if asked && v.stored != computeType(v.stored) {
		v.number = k.Cast(computeType(v.stored), k.Cast(v.stored, v.number))
	}
	return v
}

// read returns an operand of a member, converted to the type the member's formula computes in.
func (k *kernelBuilder) read(op *operation, index int, rounded bool) loop.Value {
	operand := op.operands[index]
	if operand.scalar != nil && operand.scalar.counted > 0 {
		return k.convert(k.position(op, operand.scalar.counted-1), computeType(operand.as))
	}
	if operand.scalar != nil {
		return k.convert(k.scalar(operand.scalar), computeType(operand.as))
	}
	var v value
	if operand.gather != nil {
		v = k.gather(op, operand)
	} else if producer := k.member(operand.tensor); producer != nil {
		// A reduction's result is not visible in its own stage, so that it can be converted only where it is read.
		v = k.evaluate(producer)
		v.number = k.convert(v.number, computeType(v.stored))
		v = k.rounded(v, rounded || k.options.RoundIntermediates && producer.kind == reduction)
	} else {
		v = k.load(op, operand.tensor)
	}
	return k.adapt(v, operand.as)
}

// adapt converts a value to the compute type of typ; to a narrow type that it does not have yet, by way of that type.
func (k *kernelBuilder) adapt(v value, typ loop.Type) loop.Value {
	number := v.number
	if typ != computeType(typ) && v.stored != typ {
		number = k.convert(number, typ)
	}
	return k.convert(number, computeType(typ))
}

// load reads a tensor from memory at the member's index.
func (k *kernelBuilder) load(op *operation, t *tensor) value {
	at := reading(k.shapes, t, op.inputSpace(), op.inputMapping(k.group), len(k.group.space))
	typ, _ := machineType(t.meta.DType)
	key := fmt.Sprintf("%p %v", t.root, at)
	number, known := k.loads[key]
	if !known {
		access := k.access(t.root, typ, loop.Read, at)
		number = k.Append(loop.Instruction{Op: loop.OpLoad, Type: typ, Access: access})
		k.loads[key] = number
	}
	return value{k.convert(number, computeType(typ)), typ}
}

// access registers a place in a buffer.
func (k *kernelBuilder) access(root *tensor, typ loop.Type, mode loop.Mode, at strided) *loop.Access {
	root = root.memory()
	buffer, known := k.buffers[root]
	if !known {
		name := fmt.Sprintf("%s%d", map[loop.Mode]string{loop.Read: "in", loop.Write: "out"}[mode], len(k.buffers))
		buffer = k.Buffer(name, typ, mode)
		k.Kernel.Buffers[buffer].Alignment = alignment(root, typ)
		k.buffers[root] = buffer
		k.result.arguments = append(k.result.arguments, root)
	}
	if k.Kernel.Buffers[buffer].Mode != mode {
		k.Kernel.Buffers[buffer].Mode = loop.ReadWrite
	}
	access := &loop.Access{Buffer: buffer}
	k.places = append(k.places, place{access, at})
	return access
}

// alignment returns how a tensor's first element is aligned for certain: torch's allocators align to 64 bytes at least, but an input may begin
// anywhere in its storage, and somewhere else at the next call.
func alignment(root *tensor, typ loop.Type) int {
	const allocated = 16
	if root.producer != nil && root.producer.kind != library {
		return allocated
	}
	return typ.Bytes()
}

// position is the index along a dimension of a member's result. Which of the kernel's dimensions that is shows when all accesses are known.
func (k *kernelBuilder) position(op *operation, dimension int) loop.Value {
	along := k.group.mappings[op][dimension]
	if along < 0 || isStatic(k.group.space[along], 1) {
		return k.Append(loop.Instruction{Op: loop.OpConstant, Type: loop.I64, Bits: loop.IntBits(0)})
	}
	number := k.Append(loop.Instruction{Op: loop.OpIndex, Type: loop.I64})
	k.counted[number] = along
	return number
}

// scalar reads a number that the launch passes.
func (k *kernelBuilder) scalar(s *scalar) loop.Value {
	size := s.size
	if s.state != nil {
		size = graph.Size{Expr: &graph.Expr{Op: graph.ExprSymbol, Name: k.items.symbol(s.state, s.item)}}
	}
	if size.Expr == nil {
		size = graph.Size{Expr: &graph.Expr{Op: graph.ExprSymbol, Name: inputSymbol(s.slot)}}
	}
	index, _ := k.integer(size).Argument()
	return k.Append(loop.Instruction{Op: loop.OpArgument, Type: s.typ, Index: index})
}

// integer makes a size available to the kernel: as a constant, or as a scalar argument shared by equal sizes.
func (k *kernelBuilder) integer(size graph.Size) loop.Int {
	if size.Expr == nil {
		return loop.Static(size.Hint)
	}
	for index, known := range k.result.integers {
		if sameSize(known, size) {
			return loop.Argument(index)
		}
	}
	k.result.integers = append(k.result.integers, size)
	return loop.Argument(k.Scalar())
}

// reduction appends a reduction over the inner dimensions.
func (k *kernelBuilder) reduction(op *operation) value {
	number := k.read(op, 0, op.reduce.Positional())
	accumulate := k.accumulator(op, k.Kernel.Instruction(number).Type)
	result := accumulate
	if op.reduce.Positional() {
		result = loop.I64
	}
	return value{k.Builder.Reduce(op.reduce, result, k.convert(number, accumulate)), op.result}
}

// accumulator chooses the type values are combined in: sums and products of floats take double on the CPU, where it costs little beside the memory traffic.
func (k *kernelBuilder) accumulator(op *operation, typ loop.Type) loop.Type {
	adds := op.reduce == loop.Sum || op.reduce == loop.Product
	if typ == loop.F32 && adds && k.group.device.Type != "cuda" {
		return loop.F64
	}
	return typ
}
