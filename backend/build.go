package backend

import (
	"slices"

	"fusee/backend/loop"
	"fusee/graph"
	"github.com/cockroachdb/errors"
)

// build turns an aten-level graph into a program: pointwise operators become formulas, reductions and normalisations their parts, views
// descriptions of memory, and everything else library calls.
func build(c *compilation) error {
	b := &builder{program: &program{graph: c.graph, values: map[valueKey]operand{}}, compilation: c, arranging: newArranging(c)}
	for _, input := range c.graph.Inputs {
		b.input(input)
	}
	for _, node := range c.graph.Nodes {
		if err := b.node(node); err != nil {
			return errors.Wrapf(err, "%s", node.Name)
		}
	}
	for _, value := range c.graph.Outputs {
		result, err := b.output(value)
		if err != nil {
			return err
		}
		b.program.outputs = append(b.program.outputs, result)
	}
	c.program = b.program
	return nil
}

type builder struct {
	program     *program
	compilation *compilation
	segment     int
	arranging   arranging
	raises      bool             // an operation since the last barrier may raise
	overwrites  bool             // one writes memory that was there before
	readers     map[valueKey]int // of values of the graph, once somebody asked
}

func (b *builder) input(input *graph.Input) {
	key, _ := keyOf(input)
	if input.Kind == graph.Tensor {
		t := newTensor(input.Name, input.Meta)
		t.input = input.Index
		b.program.inputs = append(b.program.inputs, t)
		b.program.values[key] = operand{tensor: t}
		return
	}
	typ := loop.I64
	if input.Kind == graph.Float {
		typ = loop.F64
	}
	b.program.inputs = append(b.program.inputs, nil)
	b.program.values[key] = operand{scalar: &scalar{typ: typ, size: input.Size, slot: input.Index}}
}

// output looks a returned value up; only tensors and scalar inputs can be returned by a plan.
func (b *builder) output(value graph.Value) (operand, error) {
	key, ok := keyOf(value)
	if ok && key.node != nil {
		b.turnBack(key.node, []graph.Value{value})
	}
	result, known := b.program.values[key]
	if !ok || !known {
		return operand{}, errors.Newf("a plan cannot return %s", graph.FormatValue(value))
	}
	if result.tensor != nil {
		result.tensor.output = true
		result.tensor.root.output = true
	}
	return result, nil
}

// node appends one aten-level node in the first form that fits it.
func (b *builder) node(node *graph.Node) error {
	if b.fold(node) {
		return nil
	}
	if len(node.Mutates) == 0 && !node.Random {
		for _, form := range []func(*graph.Node) bool{b.alias, b.view, b.pointwise, b.decompose, b.convolution, b.pooling} {
			if form(node) {
				return nil
			}
		}
	}
	if b.updatingNorm(node) || b.inPlace(node) {
		return nil
	}
	return b.library(node)
}

// inPlace handles formulas that are stored to the memory of an argument. They are barriers, as library calls that change memory are, unless supersede
// can say who reads that memory. An operand that shares the memory must be the very same elements, which are read before they are written.
func (b *builder) inPlace(node *graph.Node) bool {
	if len(node.Mutates) != 1 || node.Random || len(node.Outputs) != 1 || node.Outputs[0].Relation.Kind != graph.RelationSame {
		return false
	}
	key, _ := keyOf(node.Mutates[0])
	target := b.program.values[key].tensor
	op, ok := b.formula(node)
	if !ok || target == nil || !sameSizes(target.meta.Sizes, node.Outputs[0].Meta.Sizes) {
		return false
	}
	for _, operand := range op.operands {
		t := operand.tensor
		if t != nil && t.memory() == target.memory() && t.meta.String() != target.meta.String() {
			return false
		}
	}
	result := newTensor(outputName(node, 0), target.meta)
	if b.separate(target) {
		b.supersede(target, op, result)
	} else {
		op.barrier = true
		result.into = target
		b.segment++
		b.append(op, result)
		target.root.uses = append(target.root.uses, op)
		b.segment++
	}
	b.rename(node, 0)
	return true
}

// alias handles operators that returned their argument: the result is another name for it.
func (b *builder) alias(node *graph.Node) bool {
	if slices.ContainsFunc(node.Outputs, func(output graph.OutputInfo) bool { return output.Relation.Kind != graph.RelationSame }) {
		return false
	}
	for index := range node.Outputs {
		b.rename(node, index)
	}
	return len(node.Outputs) > 0
}

// rename makes an output another name of its argument. An operator such as squeeze_ also changes what all names say of the memory.
func (b *builder) rename(node *graph.Node, index int) {
	key, _ := keyOf(node.Outputs[index].Relation.Of)
	known := b.program.values[key]
	if t := known.tensor; t != nil && !sameSizes(t.meta.Sizes, node.Outputs[index].Meta.Sizes) {
		known.tensor = t.under(node.Outputs[index].Meta)
		b.replace(t, known)
	}
	b.program.values[valueKey{node: node, index: index}] = known
}

// replace gives every name of a tensor another value.
func (b *builder) replace(t *tensor, value operand) {
	for key, known := range b.program.values {
		if known.tensor == t {
			b.program.values[key] = value
		}
	}
}

// view handles operators whose results describe memory of an argument, element type unchanged.
func (b *builder) view(node *graph.Node) bool {
	for index := range node.Outputs {
		if !b.isView(&node.Outputs[index]) {
			return false
		}
	}
	b.turnBack(node, tensorArguments(node))
	for index, output := range node.Outputs {
		key, _ := keyOf(output.Relation.Of)
		t := newTensor(outputName(node, index), output.Meta)
		t.root = b.program.values[key].tensor.root
		if node.Target == "aten.detach.default" || node.Target == "aten._unsafe_view.default" {
			t.untracked = node
		}
		b.program.values[valueKey{node: node, index: index}] = operand{tensor: t}
	}
	return len(node.Outputs) > 0
}

func (b *builder) isView(output *graph.OutputInfo) bool {
	key, ok := keyOf(output.Relation.Of)
	base := b.program.values[key].tensor
	return output.Relation.Kind == graph.RelationView && ok && base != nil &&
		base.meta.DType == output.Meta.DType && (base.meta.Flags|base.root.meta.Flags|output.Meta.Flags)&unusual == 0
}

func outputName(node *graph.Node, index int) string {
	return graph.FormatValue(&graph.Output{Node: node, Index: index})
}

// pointwise handles operators that a formula describes and loops can compute.
func (b *builder) pointwise(node *graph.Node) bool {
	op, ok := b.formula(node)
	if !ok {
		return false
	}
	b.append(op, b.follow(newTensor(outputName(node, 0), node.Outputs[0].Meta), op.operands))
	b.program.values[valueKey{node: node}] = operand{tensor: op.outputs[0]}
	return true
}

// formula makes an operation without outputs of a node that a formula describes.
func (b *builder) formula(node *graph.Node) (*operation, bool) {
	if len(node.Outputs) != 1 || !loopable(&node.Outputs[0].Meta) || !b.emits(node.Outputs[0].Meta.Device) {
		return nil, false
	}
	state := graph.State{}
	if dtype := node.Outputs[0].Meta.DType; dtype.IsFloat() {
		state.DefaultDType = dtype // it matters for integers that become floats only, and then this is what it was
	}
	computation, ok := node.Computation(state)
	if !ok || computation.Result != node.Outputs[0].Meta.DType {
		return nil, false
	}
	result, known := machineType(computation.Result)
	compute, supported := machineType(computation.Compute)
	if !known || !supported || !expressible(computation.Body, computeType(compute)) {
		return nil, false
	}
	op := &operation{kind: pointwise, node: node, name: shortName(node.Target), body: computation.Body, compute: computeType(compute), result: result}
	for index, value := range computation.Operands {
		arg, ok := b.loopOperand(value, computation.Types[index], node.Outputs[0].Meta.Device)
		if !ok {
			return nil, false
		}
		op.operands = append(op.operands, arg)
	}
	return op, true
}

// loopOperand looks up a value that a loop on the device can read.
func (b *builder) loopOperand(value graph.Value, dtype graph.DType, device graph.Device) (operand, bool) {
	typ, ok := machineType(dtype)
	if size, isSize := value.(graph.Size); isSize {
		return operand{scalar: &scalar{typ: loop.I64, size: size, slot: -1}, as: typ}, ok
	}
	key, isValue := keyOf(value)
	result, known := b.program.values[key]
	if !ok || !isValue || !known {
		return operand{}, false
	}
	result.as = typ
	if t := result.tensor; t != nil {
		return result, t.meta.Device == device && loopable(&t.meta)
	}
	return result, true
}

// append adds an operation with fresh outputs to the program.
func (b *builder) append(op *operation, outputs ...*tensor) {
	b.keepErrorsFirst(op)
	op.index = len(b.program.operations)
	op.segment = b.segment
	op.outputs = outputs
	for _, output := range outputs {
		if output != nil {
			output.producer = op
		}
	}
	for _, arg := range op.operands {
		if arg.tensor != nil {
			arg.tensor.root.uses = append(arg.tensor.root.uses, op)
		}
	}
	b.program.operations = append(b.program.operations, op)
}

// library appends a call of the operator itself. A call that changes memory or draws random numbers is a barrier.
func (b *builder) library(node *graph.Node) error {
	b.turnBack(node, tensorArguments(node))
	op := &operation{kind: library, node: node, name: shortName(node.Target)}
	op.barrier = len(node.Mutates) > 0 || node.Random
	for _, value := range tensorArguments(node) {
		key, _ := keyOf(value)
		if arg := b.program.values[key]; arg.tensor != nil {
			op.operands = append(op.operands, arg)
		}
	}
	outputs := make([]*tensor, len(node.Outputs))
	for index, output := range node.Outputs {
		if output.Relation.Kind == graph.RelationSame {
			b.rename(node, index)
			continue
		}
		if output.Meta.DType == graph.NoDType {
			continue // a result that the call does not compute, such as a gradient that nobody asked for
		}
		outputs[index] = newTensor(outputName(node, index), output.Meta)
		b.program.values[valueKey{node: node, index: index}] = operand{tensor: outputs[index]}
	}
	if op.barrier {
		b.segment++
	}
	b.append(op, outputs...)
	if op.barrier {
		b.segment++
	}
	markAliased(op)
	return nil
}

// tensorArguments lists the graph values among a node's arguments, inside lists too.
func tensorArguments(node *graph.Node) []graph.Value {
	var result []graph.Value
	var visit func(value graph.Value)
	visit = func(value graph.Value) {
		switch v := value.(type) {
		case *graph.Input, *graph.Output:
			result = append(result, v)
		case graph.List:
			for _, item := range v.Items {
				visit(item)
			}
		}
	}
	for _, arg := range node.Args {
		visit(arg)
	}
	for _, keyword := range node.Keywords {
		visit(keyword.Value)
	}
	return result
}
