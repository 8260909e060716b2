package backend

import (
	"slices"

	"fusee/graph"
)

// A convolution on a GPU, the batch norm after it with running statistics, an addition and a relu are one call of the library: the norm is a factor for each
// output channel, which goes into the weights, and a number to add.

// folded is such a sequence; norm and addition may be nil.
type folded struct {
	convolution, norm, addition, activation *graph.Node
	inputs                                  []graph.Value // names of what the relu reads, where an in-place relu leaves its result too
	other                                   graph.Value   // what the addition adds
}

// folding lists the sequences of a graph by their last node, and the nodes that only the last one's call stands for.
type folding struct {
	last    map[*graph.Node]*folded
	covered map[*graph.Node]bool
}

// newFolding finds the sequences whose intermediate results nobody else sees.
func newFolding(g *graph.Graph) folding {
	result := folding{last: map[*graph.Node]*folded{}, covered: map[*graph.Node]bool{}}
	f := folder{graph: g, users: map[valueKey][]int{}, covered: result.covered}
	for position, node := range g.Nodes {
		for _, value := range append(tensorArguments(node), node.Mutates...) {
			f.use(value, position)
		}
	}
	for _, value := range g.Outputs {
		f.use(value, len(g.Nodes))
	}
	for position, node := range g.Nodes {
		if !convolves(node) || !foldable(node) {
			continue
		}
		if sequence := f.sequence(position); sequence != nil {
			result.last[sequence.activation] = sequence
			for _, part := range []*graph.Node{node, sequence.norm, sequence.addition} {
				if part != nil {
					result.covered[part] = true
				}
			}
		}
	}
	return result
}

// foldable reports whether the library is known to have fused kernels for a convolution's channels.
func foldable(node *graph.Node) bool {
	result, weight := &node.Outputs[0].Meta, metaOf(bound(node)[1])
	if result.DType == graph.Float32 {
		return result.Sizes[1].Hint%4 == 0 && node.Target != "aten.conv2d.padding"
	}
	return result.Sizes[1].Hint%8 == 0 && weight.Sizes[1].Hint%8 == 0 && node.Target != "aten.conv2d.padding"
}

func metaOf(value graph.Value) *graph.Meta {
	meta, _ := graph.MetaOf(value)
	return meta
}

type folder struct {
	graph   *graph.Graph
	users   map[valueKey][]int // positions of nodes, in order
	covered map[*graph.Node]bool
	values  []graph.Value // names of the value that is followed
	at      int           // the position of the last node that made or changed it
}

func (f *folder) use(value graph.Value, position int) {
	if key, ok := keyOf(value); ok && !slices.Contains(f.users[key], position) {
		f.users[key] = append(f.users[key], position)
	}
}

// sequence follows the results of the convolution at a position; nil where they lead elsewhere.
func (f *folder) sequence(position int) *folded {
	result := &folded{convolution: f.graph.Nodes[position]}
	if len(result.convolution.Outputs) != 1 {
		return nil
	}
	f.values, f.at = []graph.Value{result.convolution.Output(0)}, position
	if node := f.next(); node != nil && f.isFrozenNorm(node) {
		result.norm = node
		f.pass(node)
	}
	if node := f.next(); node != nil && !f.covered[node] {
		if other := f.addend(node); other != nil {
			result.addition, result.other = node, other
			f.pass(node)
		}
	}
	node := f.next()
	if node == nil || baseName(node.Target) != "relu" && baseName(node.Target) != "relu_" {
		return nil
	}
	result.activation, result.inputs = node, f.values
	if f.writesBetween(position, slices.Index(f.graph.Nodes, node), result.addition) {
		return nil
	}
	return result
}

// next returns the one node that uses the value, or that changes it before others use it; nil where there is none.
func (f *folder) next() *graph.Node {
	var users []int
	for _, value := range f.values {
		key, _ := keyOf(value)
		for _, user := range f.users[key] {
			if user > f.at && !slices.Contains(users, user) {
				users = append(users, user)
			}
		}
	}
	if len(users) == 0 || slices.Min(users) == len(f.graph.Nodes) {
		return nil
	}
	node := f.graph.Nodes[slices.Min(users)]
	if len(node.Outputs) != 1 || len(users) > 1 && !f.changes(node) {
		return nil
	}
	return node
}

// changes reports whether a node changes the value in place, and nothing else.
func (f *folder) changes(node *graph.Node) bool {
	return len(node.Mutates) == 1 && f.isValue(node.Mutates[0]) && node.Outputs[0].Relation.Kind == graph.RelationSame
}

func (f *folder) isValue(value graph.Value) bool {
	return slices.ContainsFunc(f.values, func(known graph.Value) bool { return sameValue(known, value) })
}

// pass goes on with the result of a node.
func (f *folder) pass(node *graph.Node) {
	if !f.changes(node) {
		f.values = nil
	}
	f.values, f.at = append(f.values, node.Output(0)), slices.Index(f.graph.Nodes, node)
}

// writesBetween reports whether what the convolution reads may change before the sequence ends, other than by the addition.
func (f *folder) writesBetween(from, to int, addition *graph.Node) bool {
	return slices.ContainsFunc(f.graph.Nodes[from+1:to], func(node *graph.Node) bool { return len(node.Mutates) > 0 && node != addition })
}

func sameValue(a, b graph.Value) bool {
	first, ok := keyOf(a)
	second, known := keyOf(b)
	return ok && known && first == second
}

// isFrozenNorm reports whether a node normalises the value by running statistics. Weights in less than single precision would lose by the factor, and
// in the same way at each place of an image.
func (f *folder) isFrozenNorm(node *graph.Node) bool {
	arguments := bound(node)
	return len(node.Outputs) == 1 && node.Outputs[0].Meta.DType == graph.Float32 && node.Target == "aten.batch_norm.default" && arguments != nil && arguments[5] == false && f.isValue(arguments[0]) &&
		arguments[3] != nil && arguments[4] != nil
}

// addend returns the image that a node adds to the value; nil when it does something else.
func (f *folder) addend(node *graph.Node) graph.Value {
	name := baseName(node.Target)
	if name != "add" && name != "add_" || len(node.Args) != 2 || len(node.Keywords) > 0 || len(node.Mutates) > 0 && !f.changes(node) {
		return nil
	}
	own, other := node.Args[0], node.Args[1]
	if !f.isValue(own) && len(node.Mutates) == 0 {
		own, other = other, own
	}
	first, ok := graph.MetaOf(own)
	second, known := graph.MetaOf(other)
	alike := ok && known && first.DType == second.DType && first.Device == second.Device && sameSizes(first.Sizes, second.Sizes)
	if !alike || !f.isValue(own) || f.isValue(other) {
		return nil
	}
	return other
}

// fold appends the one call for a sequence at its last node, and nothing for the others.
func (b *builder) fold(node *graph.Node) bool {
	if b.arranging.folding.covered[node] {
		return true
	}
	sequence := b.arranging.folding.last[node]
	if sequence == nil {
		return false
	}
	call := *node
	call.Outputs = []graph.OutputInfo{{Meta: sequence.convolution.Outputs[0].Meta}}
	call.Mutates, call.Schema = nil, nil
	r := &recipe{b: b, node: &call, device: call.Outputs[0].Meta.Device}
	arguments := bound(sequence.convolution)
	input, _ := b.withChannelsTogether(&call, arguments[0])
	weight, bias := r.foldedWeights(sequence)
	numbers := []graph.Value{pair(arguments, 3, 1), pair(arguments, 4, 0), pair(arguments, 5, 1), int64(1)}
	call.Target, call.Args = "aten.cudnn_convolution_relu.default", append([]graph.Value{input, weight, bias}, numbers...)
	if sequence.addition != nil {
		other, _ := b.withChannelsTogether(&call, sequence.other)
		call.Target, call.Args = "aten.cudnn_convolution_add_relu.default", append([]graph.Value{input, weight, other, nil, bias}, numbers...)
	}
	b.callArranged(&call, call.Args)
	result := b.program.values[valueKey{node: &call}]
	b.program.values[valueKey{node: node}] = result
	for _, value := range sequence.inputs {
		key, _ := keyOf(value)
		b.program.values[key] = result
	}
	return true
}

// pair reads an argument of two numbers, which may be given as one, or not at all.
func pair(arguments []graph.Value, position int, otherwise int64) graph.Value {
	if position >= len(arguments) {
		return graph.List{Items: []graph.Value{otherwise, otherwise}}
	}
	list, ok := arguments[position].(graph.List)
	if !ok {
		return graph.List{Items: []graph.Value{arguments[position], arguments[position]}}
	}
	if len(list.Items) == 1 {
		return graph.List{Items: []graph.Value{list.Items[0], list.Items[0]}}
	}
	return list
}

// foldedWeights are the convolution's weights and bias, with the norm's factors in them.
func (r *recipe) foldedWeights(sequence *folded) (weight, bias graph.Value) {
	arguments := bound(sequence.convolution)
	bias = arguments[2]
	if sequence.norm == nil {
		weight, _ = r.b.withChannelsTogether(r.node, arguments[1])
		return weight, bias
	}
	norm := &recipe{b: r.b, node: sequence.norm, device: r.device}
	kernel := r.b.valueOf(arguments[1])
	wide := r.wide(kernel.meta.DType)
	scale := apply("rsqrt", apply("add", arg(1), number(norm.number("eps", 7, 1e-5))))
	perOutput := []*tensor{kernel, norm.optional("running_var", 4).perOutput(kernel)}
	factor := norm.optional("weight", 1)
	if factor != nil {
		scale = apply("mul", scale, arg(2))
		perOutput = append(perOutput, factor.perOutput(kernel))
	}
	folded := newTensor(kernel.name+".folded", kernel.meta)
	folded.meta.Offset, folded.meta.Strides = graph.Static(0), r.b.channelsTogether(kernel.meta).Strides
	r.formulaIn("fold", wide, folded, apply("mul", arg(0), scale), perOutput...)
	weight = r.b.named(folded)
	shift := r.foldedBias(norm, bias, scale, folded.meta.Sizes[0])
	for _, op := range r.pending {
		r.b.append(op, op.outputs...)
	}
	return weight, shift
}

// foldedBias is what is added to each output channel: (bias − mean) · scale + shift. Operand 0 of the scale stands for nothing.
func (r *recipe) foldedBias(norm *recipe, bias graph.Value, scale *graph.Expression, channels graph.Size) graph.Value {
	mean, variance := norm.optional("running_mean", 3), norm.optional("running_var", 4)
	operands := []*tensor{mean, variance}
	if factor := norm.optional("weight", 1); factor != nil {
		operands = append(operands, factor)
	}
	body := apply("neg", arg(0))
	add := func(value *tensor) *graph.Expression {
		operands = append(operands, value)
		return arg(len(operands) - 1)
	}
	if bias != nil {
		body = apply("sub", add(r.b.valueOf(bias)), arg(0))
	}
	body = apply("mul", body, scale)
	if shift := norm.optional("bias", 2); shift != nil {
		body = apply("add", body, add(shift))
	}
	dtype := r.node.Outputs[0].Meta.DType
	return r.b.named(r.formulaIn("fold", r.wide(dtype), r.fresh(dtype, []graph.Size{channels}), body, operands...))
}

func (b *builder) valueOf(value graph.Value) *tensor {
	key, _ := keyOf(value)
	return b.program.values[key].tensor
}

// perOutput views a vector so that it broadcasts along the output channels of a convolution's weights.
func (t *tensor) perOutput(weights *tensor) *tensor {
	meta := t.meta
	meta.Sizes = []graph.Size{weights.meta.Sizes[0], graph.Static(1), graph.Static(1), graph.Static(1)}
	meta.Strides = []graph.Size{t.meta.Strides[0], graph.Static(0), graph.Static(0), graph.Static(0)}
	return t.under(meta)
}
