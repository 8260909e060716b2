package backend

import (
	"fmt"
	"slices"

	"fusee/backend/loop"
	"fusee/graph"
)

// gathering says that an operand's elements are read at computed indices: where the operation's operand number condition is true, at the indices that
// its operands of the given numbers hold. The operand's own strides are 0 along the dimensions that the indices come from.
type gathering struct {
	condition int
	indices   []int
	along     []gatheredDimension
}

// gatheredDimension is a dimension of the tensor that is read at a computed index.
type gatheredDimension struct{ stride, size graph.Size }

func (g *gathering) String() string {
	if g == nil {
		return ""
	}
	return fmt.Sprintf("%d%v%v", g.condition, g.indices, g.along)
}

// gather reads an element from memory at the indices that the member's other operands hold.
func (k *kernelBuilder) gather(op *operation, source operand) value {
	at := reading(k.shapes, source.tensor, op.inputSpace(), op.inputMapping(k.group), len(k.group.space))
	typ, _ := machineType(source.tensor.meta.DType)
	args := []loop.Value{k.convert(k.read(op, source.gather.condition, false), loop.Bool)}
	for _, index := range source.gather.indices {
		args = append(args, k.read(op, index, false))
	}
	key := fmt.Sprintf("%p %v %v %v", source.tensor.root, at, source.gather.along, args)
	number, known := k.loads[key]
	if !known {
		access := k.access(source.tensor.root, typ, loop.Read, at)
		for _, along := range source.gather.along {
			access.Indirect = append(access.Indirect, loop.Indirect{Stride: k.integer(along.stride), Size: k.integer(along.size)})
		}
		number = k.Append(loop.Instruction{Op: loop.OpLoad, Type: typ, Args: args, Access: access})
		k.loads[key] = number
	}
	return value{k.convert(number, computeType(typ)), typ}
}

// picking describes a read of a tensor at computed indices: along the dimensions marked as picked, the indices decide.
type picking struct {
	picked    []int     // dimensions of the source
	indices   []*tensor // int64 or converted to it, broadcast to the result
	condition *tensor   // bool, broadcast to the result; nil: everywhere
	axes      []int     // for each dimension of the source, that of the result which runs along it; −1 where an index decides
	// What formulas give at the indices, by the formula's own result: one that is read twice is computed once.
	made map[*tensor]*tensor
}

// pick appends an operation that reads the source at computed indices. Where the source is a formula, the formula is computed at those indices instead,
// so that it need not be stored.
func (r *recipe) pick(source *tensor, p picking, output *tensor) *tensor {
	if p.made == nil {
		p.made = map[*tensor]*tensor{}
	}
	if formula := r.pickable(source); formula != nil {
		return r.pickFormula(formula, p, output)
	}
	typ, ok := machineType(source.meta.DType)
	result, known := machineType(output.meta.DType)
	if !ok || !known {
		r.failed = true
		return output
	}
	op := &operation{kind: pointwise, name: baseName(r.node.Target), node: r.node, body: arg(0), compute: computeType(typ), result: result, outputs: []*tensor{output}}
	op.operands = []operand{r.pickOperand(source, typ, p, output)}
	r.addIndices(op, p, output)
	r.pending = append(r.pending, op)
	return output
}

// pickOperand is the source laid over the result's dimensions, with what the indices add.
func (r *recipe) pickOperand(source *tensor, typ loop.Type, p picking, output *tensor) operand {
	meta := source.meta
	meta.Sizes = append([]graph.Size(nil), output.meta.Sizes...)
	meta.Strides = make([]graph.Size, len(meta.Sizes))
	for dimension, axis := range p.axes {
		if axis >= 0 {
			meta.Strides[axis] = source.meta.Strides[dimension]
		}
	}
	view := newTensor(source.name, meta)
	view.root = source.root
	result := operand{tensor: view, as: typ, gather: &gathering{}}
	for _, dimension := range p.picked {
		result.gather.along = append(result.gather.along, gatheredDimension{source.meta.Strides[dimension], source.meta.Sizes[dimension]})
	}
	return result
}

// addIndices appends the condition and the indices to the operands of an operation and tells its gathered operands where they are.
func (r *recipe) addIndices(op *operation, p picking, output *tensor) {
	condition := p.condition
	if condition == nil {
		condition = r.formula("true", r.fresh(graph.Bool, unitSizes(len(output.meta.Sizes))), number(true))
	}
	first := len(op.operands)
	op.operands = append(op.operands, operand{tensor: condition, as: loop.Bool})
	var indices []int
	for number, index := range p.indices {
		op.operands = append(op.operands, operand{tensor: index, as: loop.I64})
		indices = append(indices, first+1+number)
	}
	for position := range op.operands[:first] {
		if gather := op.operands[position].gather; gather != nil {
			gather.condition, gather.indices = first, indices
		}
	}
}

func unitSizes(rank int) []graph.Size {
	sizes := make([]graph.Size, rank)
	for dimension := range sizes {
		sizes[dimension] = graph.Static(1)
	}
	return sizes
}

// pickable returns the formula that makes a tensor when it can be computed at single indices: nothing that it reads may have changed since.
func (r *recipe) pickable(source *tensor) *operation {
	op := source.producer
	if op == nil || source.root != source || op.kind != pointwise || op.segment != r.b.segment || op.outputs[0].into != nil || op.readsOverwritten() {
		return nil
	}
	if slices.ContainsFunc(op.operands, func(operand operand) bool { return !operand.whole() }) {
		return nil
	}
	return op
}

// pickFormula appends the formula of a tensor over its operands at computed indices.
func (r *recipe) pickFormula(formula *operation, p picking, output *tensor) *tensor {
	source := formula.outputs[0]
	op := &operation{
		kind: pointwise, name: formula.name, node: formula.node, body: formula.body, compute: formula.compute, result: formula.result, outputs: []*tensor{output},
	}
	for _, known := range formula.operands {
		from := expanded(known.tensor, source.meta.Sizes)
		if p.made[from] == nil {
			p.made[from] = r.pick(from, p, r.fresh(known.tensor.meta.DType, output.meta.Sizes))
		}
		op.operands = append(op.operands, operand{tensor: p.made[from], as: known.as})
	}
	r.pending = append(r.pending, op)
	return output
}

// expanded is a tensor broadcast to sizes.
func expanded(t *tensor, sizes []graph.Size) *tensor {
	if sameSizes(t.meta.Sizes, sizes) {
		return t
	}
	meta := t.meta
	meta.Sizes, meta.Strides = sizes, make([]graph.Size, len(sizes))
	shift := len(sizes) - len(t.meta.Sizes)
	for dimension := range t.meta.Sizes {
		if !isStatic(t.meta.Sizes[dimension], 1) {
			meta.Strides[dimension+shift] = t.meta.Strides[dimension]
		}
	}
	view := newTensor(t.name, meta)
	view.root = t.root
	return view
}

// counting gives start, start + step, and so on, of integers.
func (r *recipe) counting() bool {
	start, step := r.integer("start", -1, 0), r.integer("step", -1, 1)
	output := r.result(0)
	if r.failed || !integers(output) {
		return false
	}
	body := apply("add", apply("mul", arg(0), number(step)), number(start))
	result := r.formulaIn("arange", graph.Int64, output, body)
	made := r.pending[len(r.pending)-1]
	made.operands = []operand{{scalar: &scalar{typ: loop.I64, slot: -1, counted: 1}, as: loop.I64}}
	return r.commit(result)
}

// integers reports whether a tensor holds indices; bool tensors are masks, whose results have a size that depends on them.
func integers(t *tensor) bool { return t.meta.DType.IsIntegral() }

// embedding reads a row of the weight for each index.
func (r *recipe) embedding() bool {
	weight, indices := r.tensor("weight", 0), r.tensor("indices", 1)
	if r.failed || len(weight.meta.Sizes) != 2 || !integers(indices) {
		return false
	}
	rank := len(indices.meta.Sizes)
	p := picking{picked: []int{0}, indices: []*tensor{spread(indices, 0, rank+1)}, axes: []int{-1, rank}}
	return r.commit(r.pick(weight, p, r.result(0)))
}

// spread places a tensor's dimensions from number first on among rank ones, the others of one element.
func spread(t *tensor, first, rank int) *tensor {
	meta := t.meta
	meta.Sizes, meta.Strides = unitSizes(rank), make([]graph.Size, rank)
	copy(meta.Sizes[first:], t.meta.Sizes)
	copy(meta.Strides[first:], t.meta.Strides)
	view := newTensor(t.name, meta)
	view.root = t.root
	return view
}

// dimension reads a dim argument that names one dimension.
func (r *recipe) dimension(rank, position int) int {
	for dimension, chosen := range r.dimensions(rank, r.argument("dim", position)) {
		if chosen {
			return dimension
		}
	}
	r.failed = true
	return 0
}

// indexSelect reads slices along one dimension.
func (r *recipe) indexSelect() bool {
	self, index := r.tensor("self", 0), r.tensor("index", 2)
	if len(index.meta.Sizes) != 1 {
		return false
	}
	return r.pickAlong(self, func(dimension int) *tensor { return spread(index, dimension, len(self.meta.Sizes)) })
}

// gatherAlong is torch.gather: an index for each element of the result.
func (r *recipe) gatherAlong() bool {
	self, index := r.tensor("self", 0), r.tensor("index", 2)
	if len(index.meta.Sizes) != len(self.meta.Sizes) {
		return false
	}
	return r.pickAlong(self, func(int) *tensor { return index })
}

// pickAlong reads a tensor along the node's dimension at indices that depend on which one that is.
func (r *recipe) pickAlong(self *tensor, indices func(dimension int) *tensor) bool {
	rank := len(self.meta.Sizes)
	if r.failed || rank == 0 || r.argument("dim", 1) == nil {
		return false
	}
	dimension := r.dimension(rank, 1)
	p := picking{picked: []int{dimension}, indices: []*tensor{indices(dimension)}, axes: make([]int, rank)}
	for axis := range p.axes {
		p.axes[axis] = axis
	}
	p.axes[dimension] = -1
	return r.commit(r.pick(self, p, r.result(0)))
}

// indexTensors is indexing by tensors of integers that stand side by side, as in x[:, i, j]. One of uint8 is a mask.
func (r *recipe) indexTensors() bool {
	self := r.tensor("self", 0)
	list, ok := r.argument("indices", 1).(graph.List)
	if r.failed || !ok {
		return false
	}
	p := picking{axes: make([]int, len(self.meta.Sizes))}
	var found []*tensor
	for dimension, item := range list.Items {
		if item == nil {
			continue
		}
		key, _ := keyOf(item)
		index := r.b.program.values[key].tensor
		apart := len(p.picked) > 0 && p.picked[len(p.picked)-1] != dimension-1
		if index == nil || apart || index.meta.Device != r.device || !loopable(&index.meta) || !integers(index) || index.meta.DType == graph.Uint8 {
			return false
		}
		p.picked, found = append(p.picked, dimension), append(found, index)
	}
	if len(p.picked) == 0 {
		return false
	}
	return r.indexAt(self, p, found)
}

// indexAt lays the indices over the dimensions of the result that take the place of those picked.
func (r *recipe) indexAt(self *tensor, p picking, found []*tensor) bool {
	rank := len(r.node.Outputs[0].Meta.Sizes)
	width := rank - len(self.meta.Sizes) + len(p.picked)
	first := p.picked[0]
	for dimension := range p.axes {
		switch {
		case dimension < first:
			p.axes[dimension] = dimension
		case dimension < first+len(p.picked):
			p.axes[dimension] = -1
		default:
			p.axes[dimension] = dimension - len(p.picked) + width
		}
	}
	for number, index := range found {
		size := self.meta.Sizes[p.picked[number]]
		if size.Expr != nil || len(index.meta.Sizes) > width {
			return false
		}
		placed := spread(index, first+width-len(index.meta.Sizes), rank)
		p.indices = append(p.indices, r.wrapped(placed, size.Hint))
	}
	return r.commit(r.pick(self, p, r.result(0)))
}

// wrapped counts negative indices from the end.
func (r *recipe) wrapped(index *tensor, size int64) *tensor {
	body := apply("where", apply("lt", arg(0), number(int64(0))), apply("add", arg(0), number(size)), arg(0))
	return r.formulaIn("wrap", graph.Int64, r.fresh(graph.Int64, index.meta.Sizes), body, index)
}
