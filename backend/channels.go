package backend

import (
	"slices"

	"fusee/graph"
)

// On a GPU the library convolves images whose channels lie together in memory without turning them around before and after. Where a graph convolves several
// times in a row, what is between the convolutions is kept so, and turned back where the program, or an operator that is not known to take both, looks at it.

// fewestConvolutions pay for turning what the first one takes and the last one makes.
const fewestConvolutions = 3

// arranging says which images may lie otherwise than the program says.
type arranging struct {
	on       bool
	declared map[*tensor]graph.Meta // what the program sees of a tensor whose channels lie together
	copies   map[copyKey]graph.Value
	folding  folding
}

// copyKey is a tensor at a number of barriers.
type copyKey struct {
	tensor  *tensor
	segment int
}

// newArranging decides for a graph: most of what its convolutions make must stay inside of it.
func newArranging(c *compilation) arranging {
	g, result := c.graph, arranging{declared: map[*tensor]graph.Meta{}, copies: map[copyKey]graph.Value{}}
	if c.compiler.options.Unfused {
		return result
	}
	count, inside, outside := 0, int64(0), int64(0)
	for _, node := range g.Nodes {
		if convolves(node) {
			count++
			inside += product(node.Outputs[0].Meta.Sizes)
		}
	}
	for _, value := range g.Outputs {
		if meta, ok := graph.MetaOf(value); ok && len(meta.Sizes) == 4 {
			outside += product(meta.Sizes)
		}
	}
	result.on = count >= fewestConvolutions && outside <= inside/4
	if result.on && !c.compiler.options.RoundIntermediates {
		result.folding = newFolding(g)
	}
	return result
}

// bound lists the arguments of an aten operator, one for each of its parameters; nil where the tables lack it.
func bound(node *graph.Node) []graph.Value {
	_, arguments := node.Bound()
	return arguments
}

// convolves reports whether a node convolves images on a GPU by kernels that the library has for both layouts.
func convolves(node *graph.Node) bool {
	name := baseName(node.Target)
	if name != "conv2d" && name != "convolution" || len(node.Outputs) != 1 || len(node.Mutates) > 0 {
		return false
	}
	arguments := bound(node)
	if arguments == nil || name == "convolution" && arguments[6] != false || arguments[len(arguments)-1] != int64(1) {
		return false
	}
	result := &node.Outputs[0].Meta
	weight, ok := graph.MetaOf(arguments[1])
	plain := ok && result.Device.Type == "cuda" && result.DType.IsFloat() && result.DType != graph.Float64 && weight.DType == result.DType
	return plain && len(result.Sizes) == 4 && len(weight.Sizes) == 4 && !isStatic(result.Sizes[1], 1) && !isStatic(weight.Sizes[1], 1)
}

// convolution has a convolution take and make images whose channels lie together.
func (b *builder) convolution(node *graph.Node) bool {
	if !b.arranging.on || !convolves(node) || !b.emits(node.Outputs[0].Meta.Device) {
		return false
	}
	arguments := bound(node)
	for index := range 2 {
		turned, ok := b.withChannelsTogether(node, arguments[index])
		if !ok {
			return false
		}
		arguments[index] = turned
	}
	b.callArranged(node, arguments)
	return true
}

// pooling does the same for operators that give back the layout they are given.
func (b *builder) pooling(node *graph.Node) bool {
	if !slices.Contains([]string{"max_pool2d", "avg_pool2d", "adaptive_avg_pool2d"}, baseName(node.Target)) || len(node.Outputs) != 1 {
		return false
	}
	key, _ := keyOf(node.Args[0])
	if _, arranged := b.arranging.declared[b.program.values[key].tensor]; !arranged {
		return false
	}
	b.callArranged(node, bound(node))
	return true
}

// callArranged appends a library call with other arguments, whose result has its channels together.
func (b *builder) callArranged(node *graph.Node, arguments []graph.Value) {
	call := *node
	call.Args, call.Keywords = arguments, nil
	op := &operation{kind: library, node: &call, name: shortName(node.Target)}
	for _, value := range tensorArguments(&call) {
		key, _ := keyOf(value)
		op.operands = append(op.operands, b.program.values[key])
	}
	result := b.arranged(newTensor(outputName(node, 0), node.Outputs[0].Meta))
	call.Outputs = []graph.OutputInfo{{Meta: result.meta}}
	b.append(op, result)
	b.program.values[valueKey{node: node}] = operand{tensor: result}
}

// arranged lays a new tensor out with its channels together.
func (b *builder) arranged(t *tensor) *tensor {
	b.arranging.declared[t] = t.meta
	t.meta = b.channelsTogether(t.meta)
	return t
}

// channelsTogether are PyTorch's channels-last strides.
func (b *builder) channelsTogether(meta graph.Meta) graph.Meta {
	shapes, sizes := b.program.graph.Shapes, meta.Sizes
	row := shapes.Multiply(sizes[1], sizes[3])
	meta.Strides = []graph.Size{shapes.Multiply(sizes[2], row), graph.Static(1), row, sizes[1]}
	meta.Offset = graph.Static(0)
	return meta
}

// follow lays out the result of a formula as the images that it reads lie, if they have its sizes.
func (b *builder) follow(result *tensor, operands []operand) *tensor {
	for _, operand := range operands {
		if _, arranged := b.arranging.declared[operand.tensor]; arranged && operand.gather == nil && sameSizes(operand.tensor.meta.Sizes, result.meta.Sizes) {
			return b.arranged(result)
		}
	}
	return result
}

// withChannelsTogether returns an argument, or a copy of it, whose channels lie together.
func (b *builder) withChannelsTogether(node *graph.Node, value graph.Value) (graph.Value, bool) {
	key, ok := keyOf(value)
	t := b.program.values[key].tensor
	if !ok || t == nil || !loopable(&t.meta) || len(t.meta.Sizes) != 4 {
		return nil, false
	}
	wanted := b.channelsTogether(t.meta)
	wanted.Offset = t.meta.Offset
	if slices.EqualFunc(t.meta.Strides, wanted.Strides, sameSize) {
		return value, true
	}
	for dimension, stride := range wanted.Strides {
		if !sameSize(t.meta.Strides[dimension], stride) && !isStatic(t.meta.Sizes[dimension], 1) {
			return b.turned(node, t), true
		}
	}
	return b.named(t.under(wanted)), true
}

// turned is a copy of a tensor with its channels together; one for all who ask before memory changes.
func (b *builder) turned(node *graph.Node, t *tensor) graph.Value {
	key := copyKey{t, b.segment}
	if b.arranging.copies[key] == nil {
		b.arranging.copies[key] = b.copied(node, t, b.arranged)
	}
	return b.arranging.copies[key]
}

// named makes a tensor a value of the program.
func (b *builder) named(t *tensor) graph.Value {
	node := &graph.Node{Name: t.name, Target: "aten.alias.default", Outputs: []graph.OutputInfo{{Meta: t.meta}}}
	b.program.values[valueKey{node: node}] = operand{tensor: t}
	return node.Output(0)
}

// copied appends a copy of a tensor in the layout that a function gives it, and returns it as a value of the program.
func (b *builder) copied(node *graph.Node, t *tensor, layout func(*tensor) *tensor) graph.Value {
	typ, _ := machineType(t.meta.DType)
	meta := t.meta
	meta.Strides, meta.Offset = contiguousStrides(b.program.graph.Shapes, meta.Sizes), graph.Static(0)
	copied := layout(newTensor(t.name+".turned", meta))
	b.append(&operation{kind: pointwise, name: "turn", node: node, body: arg(0), compute: computeType(typ), result: typ, operands: []operand{{tensor: t, as: typ}}}, copied)
	return b.named(copied)
}

// turnBack gives values their declared layout again, for those who look at memory rather than at elements.
func (b *builder) turnBack(node *graph.Node, values []graph.Value) {
	for _, value := range values {
		key, _ := keyOf(value)
		t := b.program.values[key].tensor
		declared, arranged := b.arranging.declared[t]
		if !arranged {
			continue
		}
		copiedKey, _ := keyOf(b.copied(node, t, func(result *tensor) *tensor {
			result.meta = declared
			return result
		}))
		b.replace(t, b.program.values[copiedKey]) // every name of it, so that what is written by one is read by all
	}
}
