package backend

import (
	"slices"

	"fusee/backend/loop"
	"fusee/graph"
	"fusee/internal/slice"
)

// Operators that move elements by position (cat, stack, pad, flip, roll) are formulas over boxes of their result: each point reads the source of the box
// that it lies in. A source that is a formula is computed there instead of being stored, and what reads the result is computed in the same loops.

// interval says where along one dimension of a result a box lies, and what it reads: position i, from low to below high, reads position
// start + (i - low)*step of the source.
type interval struct {
	low, high, start graph.Size
	step             int64
}

// box is a part of a result that is read from one source, with an interval for each dimension.
type box struct {
	source *tensor
	along  []interval
}

// mostBoxes bounds how many places each point of a result may look at; more cost more than the pass over memory that they save.
const mostBoxes = 9

// whole is the interval of a dimension that is taken as it is.
func whole(size graph.Size) interval { return interval{high: size, step: 1} }

// covers reports whether an interval is all of a dimension.
func (i interval) covers(size graph.Size) bool { return isStatic(i.low, 0) && sameSize(i.high, size) }

func (i interval) empty() bool { return sameSize(i.low, i.high) }

// boxes makes one box for each choice of an interval in every dimension.
func boxes(source *tensor, choices [][]interval) []box {
	result := []box{{source: source}}
	for _, intervals := range choices {
		result = slice.FlatMap(result, func(b box) []box {
			return slice.Map(intervals, func(i interval) box { return box{source, append(slices.Clone(b.along), i)} })
		})
	}
	return result
}

// wholes lists for each dimension the interval that is all of it.
func wholes(sizes []graph.Size) [][]interval {
	return slice.Map(sizes, func(size graph.Size) []interval { return []interval{whole(size)} })
}

// elements names what a tensor reads: memory and how it is walked.
type elements struct {
	root   *tensor
	layout string
}

func elementsOf(t *tensor) elements { return elements{t.root, t.meta.String()} }

// assembly writes one operator over boxes.
type assembly struct {
	*recipe
	output *tensor
	as     loop.Type
	// Of the box being written: the condition under which a point lies in it, nil where all do, and what was made of the tensors that its source needs.
	condition *tensor
	made      map[elements]*tensor
	formulas  map[elements]*operation // what movable found so far
}

// assemble gives the recipe's result from boxes, and fill where no box is. It leaves the library call where loops would not be faster.
func (r *recipe) assemble(boxes []box, fill graph.Value) bool {
	boxes = slices.DeleteFunc(boxes, func(b box) bool { return slices.ContainsFunc(b.along, interval.empty) })
	if r.failed || len(r.node.Outputs) != 1 {
		return false
	}
	a := &assembly{recipe: r, output: r.result(0), formulas: map[elements]*operation{}}
	typ, ok := machineType(a.output.meta.DType)
	if !ok || !a.pays(boxes) {
		return false
	}
	a.as = typ
	op := &operation{kind: pointwise, name: shortName(r.node.Target), node: r.node, compute: computeType(typ), result: typ, outputs: []*tensor{a.output}}
	op.body = number(fill)
	for index, b := range slices.Backward(boxes) {
		op.body = a.choose(op, b, op.body, fill == nil && index == len(boxes)-1)
	}
	if !expressible(op.body, op.compute) {
		return false
	}
	r.pending = append(r.pending, op)
	return r.commit(a.output)
}

// choose appends a box's source to the operation, and gives the formula that takes it where a point lies in the box and otherwise elsewhere.
func (a *assembly) choose(op *operation, b box, otherwise *graph.Expression, last bool) *graph.Expression {
	a.condition, a.made = a.inside(b), map[elements]*tensor{}
	source := a.moved(b.source, b)
	source.as = a.as
	value := arg(len(op.operands))
	op.operands = append(op.operands, source)
	if a.condition == nil {
		return value
	}
	a.guard(op, len(op.operands)-1)
	if last {
		return value
	}
	return apply("where", arg(a.conditionOf(op)), value, otherwise)
}

// inside makes the condition that a point lies in a box; nil when all do.
func (a *assembly) inside(b box) *tensor {
	sizes := unitSizes(len(b.along))
	var body *graph.Expression
	var operands []operand
	test := func(name string, dimension int, bound graph.Size) {
		a.failed = a.failed || bound.Expr != nil
		sizes[dimension] = a.output.meta.Sizes[dimension]
		one := apply(name, arg(len(operands)), number(bound.Hint))
		operands = append(operands, operand{scalar: &scalar{typ: loop.I64, slot: -1, counted: dimension + 1}, as: loop.I64})
		if body != nil {
			one = apply("and", body, one)
		}
		body = one
	}
	for dimension, i := range b.along {
		if !isStatic(i.low, 0) {
			test("ge", dimension, i.low)
		}
		if !sameSize(i.high, a.output.meta.Sizes[dimension]) {
			test("lt", dimension, i.high)
		}
	}
	if body == nil {
		return nil
	}
	result := a.fresh(graph.Bool, sizes)
	a.pending = append(a.pending, &operation{
		kind: pointwise, name: "inside", node: a.node, body: body, compute: loop.I64, result: loop.Bool, operands: operands, outputs: []*tensor{result},
	})
	return result
}

// conditionOf is the number of the operand that is the present condition, which it appends where the operation has none.
func (a *assembly) conditionOf(op *operation) int {
	index := slices.IndexFunc(op.operands, func(o operand) bool { return o.tensor == a.condition })
	if index < 0 {
		index = len(op.operands)
		op.operands = append(op.operands, operand{tensor: a.condition, as: loop.Bool})
	}
	return index
}

// guard has an operand that is read from memory read only where the condition holds.
func (a *assembly) guard(op *operation, index int) {
	if op.operands[index].gather != nil {
		op.operands[index].gather = &gathering{condition: a.conditionOf(op)}
	}
}

// moved gives what a point of the box reads for a tensor of the source's shape: the tensor's memory, or its formula at that place. An operand that may
// only be read inside the box has a gathering, which guard completes.
func (a *assembly) moved(t *tensor, b box) operand {
	formula := a.movable(t)
	if formula == nil {
		return a.view(t, b)
	}
	if made, ok := a.made[elementsOf(t)]; ok {
		return operand{tensor: made}
	}
	output := a.fresh(t.meta.DType, a.output.meta.Sizes)
	op := &operation{
		kind: pointwise, name: formula.name, node: formula.node, body: formula.body, compute: formula.compute, result: formula.result, outputs: []*tensor{output},
	}
	order, _ := a.order(t)
	for _, known := range formula.operands {
		read := known
		if known.tensor != nil {
			read = a.moved(permuted(expanded(known.tensor, t.root.meta.Sizes), order, t.meta.Sizes), b)
			read.as = known.as
		}
		op.operands = append(op.operands, read)
	}
	for index := range formula.operands {
		a.guard(op, index)
	}
	a.pending = append(a.pending, op)
	a.made[elementsOf(t)] = output
	return operand{tensor: output}
}

// order says which of a tensor's dimensions each dimension of its root is; false where the tensor is not all of its root.
func (a *assembly) order(t *tensor) (mapping, bool) {
	rank := len(t.meta.Sizes)
	return invert(&t.root.meta, reading(a.b.program.graph.Shapes, t, t.meta.Sizes, identity(t.meta.Sizes), rank), t.meta.Sizes)
}

// permuted is a tensor with its dimensions in another place among those of the given sizes.
func permuted(t *tensor, order mapping, sizes []graph.Size) *tensor {
	if sameSizes(t.meta.Sizes, sizes) && order.equal(identity(sizes)) {
		return t
	}
	meta := t.meta
	meta.Sizes, meta.Strides = sizes, make([]graph.Size, len(sizes))
	for dimension, place := range order {
		if place >= 0 {
			meta.Strides[place] = t.meta.Strides[dimension]
		}
	}
	view := newTensor(t.name, meta)
	view.root = t.root
	return view
}

// view reads a tensor's memory at the places of the box.
func (a *assembly) view(t *tensor, b box) operand {
	shapes := a.b.program.graph.Shapes
	meta := t.meta
	meta.Sizes, meta.Strides = a.output.meta.Sizes, make([]graph.Size, len(b.along))
	leaves := false
	for dimension, i := range b.along {
		stride := t.meta.Strides[dimension]
		if isStatic(t.meta.Sizes[dimension], 1) {
			stride = graph.Static(0)
		}
		meta.Strides[dimension] = shapes.Multiply(stride, graph.Static(i.step))
		from := shapes.Subtract(i.start, shapes.Multiply(i.low, graph.Static(i.step)))
		meta.Offset = shapes.Add(meta.Offset, shapes.Multiply(from, stride))
		leaves = leaves || !isStatic(stride, 0) && !i.covers(a.output.meta.Sizes[dimension])
	}
	moved := newTensor(t.name, meta)
	moved.root = t.root
	result := operand{tensor: moved}
	if leaves && a.condition != nil {
		result.gather = &gathering{}
	}
	return result
}

// movable returns the formula that makes a tensor when computing it at other places saves storing it: nothing else reads it, nothing that it reads has
// changed since, and that lies in memory or is such a formula itself.
func (a *assembly) movable(t *tensor) *operation {
	formula, known := a.formulas[elementsOf(t)]
	if !known {
		formula = a.findMovable(t)
		a.formulas[elementsOf(t)] = formula
	}
	return formula
}

func (a *assembly) findMovable(t *tensor) *operation {
	op := t.root.producer
	if !a.mayMove(t) || slices.ContainsFunc(op.operands, func(o operand) bool { return !a.staysInMemory(o) }) {
		return nil
	}
	return op
}

// mayMove reports whether a tensor is the result of a formula that can be computed anywhere and that nothing else reads.
func (a *assembly) mayMove(t *tensor) bool {
	op := t.root.producer
	if op == nil || t.root.into != nil || !a.computable(op) || !a.b.readOnce(t.root) {
		return false
	}
	_, ok := a.order(t)
	return ok
}

// computable reports whether an operation is a formula that gives now, at any place, what it gave where it stands.
func (a *assembly) computable(op *operation) bool {
	if a.b.compilation.compiler.options.Unfused || op.kind != pointwise || op.segment != a.b.segment {
		return false
	}
	return len(op.operands) > 0 && !op.readsOverwritten() && !op.counts()
}

// staysInMemory reports whether an operand can be read anywhere without being stored for it.
func (a *assembly) staysInMemory(o operand) bool {
	if o.tensor == nil {
		return true
	}
	producer := o.tensor.root.producer
	return o.gather == nil && (producer == nil || producer.kind != pointwise || a.movable(o.tensor) != nil || o.tensor.root != o.tensor)
}

// readOnce reports whether a tensor, and each view of it, has one reader: an operation so far, or a node of the graph where it is a node's result.
func (b *builder) readOnce(root *tensor) bool {
	if b.readers == nil {
		b.countReaders()
	}
	named := false
	for key, value := range b.program.values {
		if value.tensor == nil || value.tensor.root != root {
			continue
		}
		named = true
		if b.readers[key] > 1 {
			return false
		}
	}
	return named || len(root.uses) <= 1
}

// countReaders counts the nodes that read each value of the graph, and the graph's outputs.
func (b *builder) countReaders() {
	b.readers = map[valueKey]int{}
	count := func(values []graph.Value) {
		seen := map[valueKey]bool{}
		for _, value := range values {
			if key, _ := keyOf(value); !seen[key] {
				seen[key] = true
				b.readers[key]++
			}
		}
	}
	for _, node := range b.compilation.graph.Nodes {
		count(tensorArguments(node))
	}
	for _, value := range b.compilation.graph.Outputs {
		count([]graph.Value{value})
	}
}

// pays reports whether loops are no slower than the library call: they save a pass over memory, because a source need not be stored or because what
// reads the result can be computed with it, and the boxes are few and, on a CPU, long.
func (a *assembly) pays(boxes []box) bool {
	if a.b.compilation.compiler.options.Unfused {
		return len(boxes) <= mostBoxes
	}
	if len(boxes) > mostBoxes || a.device.Type == "cpu" && a.choppy(boxes) {
		return false
	}
	result := a.node.Output(0)
	return a.saves(boxes) || a.b.readBy(result, computedByLoops) && (a.device.Type == "cpu" || !a.storedAnyway(result))
}

// storedAnyway reports whether the library reads the result, or the caller. Loops on a GPU, which read single elements where sources join, would
// then store it slower than the library does and save no pass.
func (a *assembly) storedAnyway(result *graph.Output) bool {
	key, _ := keyOf(result)
	handedOut := slices.ContainsFunc(a.b.compilation.graph.Outputs, func(value graph.Value) bool {
		output, ok := keyOf(value)
		return ok && output == key
	})
	return handedOut || a.b.readBy(result, func(op *graph.Op, known bool) bool { return !computedByLoops(op, known) })
}

// saves reports whether a source need not be stored.
func (a *assembly) saves(boxes []box) bool {
	return slices.ContainsFunc(boxes, func(b box) bool { return a.movable(b.source) != nil })
}

// choppy reports whether the boxes cut neighbours in memory into runs that are short for the vectors of a CPU.
func (a *assembly) choppy(boxes []box) bool {
	const shortest, shortestRow, fewElements = 8, 32, 256
	if product(a.output.meta.Sizes) <= fewElements {
		return false // calling the library takes longer than one element after another
	}
	for dimension, size := range a.output.meta.Sizes {
		if !isStatic(a.output.meta.Strides[dimension], 1) || size.Expr == nil && size.Hint <= widestWoven {
			continue
		}
		cuts := map[int64]bool{}
		for _, b := range boxes {
			cuts[b.along[dimension].low.Hint], cuts[b.along[dimension].high.Hint] = true, true
		}
		if runs := int64(len(cuts) - 1); runs > 1 && (size.Hint < shortestRow || size.Hint/runs < shortest) {
			return true
		}
	}
	return false
}

// readBy reports whether a node of a kind reads a value, or a view of it.
func (b *builder) readBy(value *graph.Output, kind func(op *graph.Op, known bool) bool) bool {
	wanted, _ := keyOf(value)
	return slices.ContainsFunc(b.compilation.graph.Nodes, func(node *graph.Node) bool {
		reads := slices.ContainsFunc(tensorArguments(node), func(read graph.Value) bool {
			key, ok := keyOf(read)
			return ok && key == wanted
		})
		if !reads || len(node.Outputs) == 0 {
			return false
		}
		op, known := graph.LookUp(node.Target)
		if known && op.Kind == graph.KindView {
			return b.readBy(node.Output(0), kind)
		}
		return kind(op, known)
	})
}

func computedByLoops(op *graph.Op, known bool) bool {
	kinds := []graph.Kind{graph.KindPointwise, graph.KindCopy, graph.KindReduction, graph.KindNormalise, graph.KindShape}
	return known && slices.Contains(kinds, op.Kind)
}
