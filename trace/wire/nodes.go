package wire

import (
	"slices"
	"strings"

	"github.com/cockroachdb/errors"

	"fusee/bytecode"
	"fusee/graph"
	"fusee/internal/slice"
	"fusee/trace"
)

// ErrUnsupported marks graphs that are well formed and hold something that no plan runs.
var ErrUnsupported = errors.New("the graph cannot be lowered")

// Nodes reads a list of aten nodes that the host wrote.
type Nodes struct {
	session *trace.Session
	graph   *graph.Graph
	inputs  []graph.Value
	nodes   []*graph.Node
	state   graph.State
}

// NewNodes reads into a graph; inputs are what ("i", k) names, and the session knows the objects that references name. With gradMode the
// results of nodes that autograd would record require gradients.
func NewNodes(session *trace.Session, g *graph.Graph, inputs []graph.Value, gradMode bool) *Nodes {
	return &Nodes{session: session, graph: g, inputs: inputs, state: graph.State{GradMode: gradMode}}
}

// Append adds the nodes of a list to the graph in order, and returns them. The error is ErrUnsupported for operators whose effects are not
// known and for results that are no tensors.
func (r *Nodes) Append(list bytecode.Object) ([]*graph.Node, error) {
	for _, item := range trace.Items(list) {
		node, err := r.node(item)
		if err != nil {
			return nil, err
		}
		r.nodes = append(r.nodes, node)
	}
	return r.nodes, nil
}

func (r *Nodes) node(item bytecode.Object) (*graph.Node, error) {
	fields, ok := item.(bytecode.Tuple)
	if !ok || len(fields) != 6 {
		return nil, errors.New("a node has not six fields")
	}
	target, isText := fields[1].(string)
	if !isText {
		return nil, errors.New("a node's target is no text")
	}
	if target == "aten._unsafe_view.default" { // a view of what nothing else names
		target = "aten.view.default"
	}
	args, err := r.values(trace.Items(fields[2]))
	if err != nil {
		return nil, err
	}
	keywords, err := r.keywords(fields[3])
	if err != nil {
		return nil, err
	}
	outputs, err := r.outputs(fields[4])
	if err != nil {
		return nil, errors.Wrapf(err, "the result of %s", target)
	}
	node, err := r.graph.Call(target, args, keywords, r.state)
	if err == nil {
		return node, adopt(node, outputs)
	}
	if !errors.Is(err, graph.ErrUnknown) {
		return nil, err
	}
	return r.unknown(target, args, keywords, outputs, fields[5])
}

// adopt takes the host's word for the layout of a node's results: other nodes of the list were made for it.
func adopt(node *graph.Node, outputs []graph.OutputInfo) error {
	if len(node.Outputs) != len(outputs) {
		return errors.Wrapf(ErrUnsupported, "%s has %d results, the table says %d", node.Target, len(outputs), len(node.Outputs))
	}
	for i := range outputs {
		mine, theirs := &node.Outputs[i].Meta, &outputs[i].Meta
		if theirs.DType == graph.NoDType {
			continue
		}
		if mine.DType != theirs.DType || !sameHints(mine.Sizes, theirs.Sizes) {
			return errors.Wrapf(ErrUnsupported, "%s gives %s, the table says %s", node.Target, theirs, mine)
		}
		mine.Strides, mine.Offset = theirs.Strides, theirs.Offset
	}
	return nil
}

func sameHints(a, b []graph.Size) bool {
	return slices.EqualFunc(a, b, func(x, y graph.Size) bool { return x.Hint == y.Hint })
}

// unknown appends an operator that the table does not hold: its schema tells the order of its arguments, and what it changes and aliases.
func (r *Nodes) unknown(target string, args []graph.Value, keywords []graph.Keyword, outputs []graph.OutputInfo, signature bytecode.Object) (*graph.Node, error) {
	text, random, ok := readSignature(signature)
	if !ok {
		return nil, errors.Newf("the schema of %s is malformed", target)
	}
	schema, err := graph.ParseSchema(text)
	if err != nil {
		return nil, errors.Wrapf(ErrUnsupported, "%s: %v", target, err)
	}
	if schema.Name == "as_strided" {
		return nil, errors.Wrap(ErrUnsupported, "a view at a place that depends on where the argument begins")
	}
	if strings.HasPrefix(target, "aten.") && schema.Target() != target {
		return nil, errors.Newf("%s has the schema of %s", target, schema.Target())
	}
	values, err := (&graph.Op{Schema: schema, Kind: graph.KindLibrary}).Bind(args, keywords)
	if err != nil {
		return nil, errors.Wrapf(ErrUnsupported, "%s: %v", target, err)
	}
	mutated, viewed, err := effects(schema, values)
	if err != nil {
		return nil, err
	}
	relation := graph.New()
	switch {
	case len(mutated) > 0 && strings.Contains(schema.Returns, "!"):
		relation = graph.SameAs(mutated[0])
	case viewed != nil && strings.Contains(schema.Returns, "(a"):
		relation = graph.ViewOf(viewed)
	}
	recorded := r.state.GradMode && slices.ContainsFunc(graph.Tensors(values...), r.graph.RequiresGrad)
	for i := range outputs {
		outputs[i].Relation = relation
		outputs[i].Meta.RequiresGrad = recorded && outputs[i].Meta.DType.IsDifferentiable()
	}
	positional, named := split(schema, values)
	node := r.graph.Append(target, positional, named, outputs, nil)
	node.Mutates, node.Random, node.Schema, node.Unrecorded = mutated, random && !dropsNothing(schema, values), schema, !r.state.GradMode
	return node, nil
}

// dropsNothing tells operators, such as attention, that draw random numbers for their dropout only, where that is off.
func dropsNothing(schema *graph.Schema, values []graph.Value) bool {
	position := schema.Position("dropout_p")
	return position >= 0 && values[position] == graph.Value(0.0)
}

// split gives every argument in the way that its parameter takes it.
func split(schema *graph.Schema, values []graph.Value) ([]graph.Value, []graph.Keyword) {
	var keywords []graph.Keyword
	for i, parameter := range schema.Parameters {
		if parameter.KeywordOnly {
			keywords = append(keywords, graph.Keyword{Name: parameter.Name, Value: values[i]})
		}
	}
	return values[:len(values)-len(keywords)], keywords
}

func readSignature(object bytecode.Object) (text string, random, ok bool) {
	pair, isTuple := object.(bytecode.Tuple)
	if !isTuple || len(pair) != 2 {
		return "", false, false
	}
	text, isText := pair[0].(string)
	random, isBool := pair[1].(bool)
	return strings.TrimPrefix(text, "aten::"), random, isText && isBool
}

// effects reads the alias annotations of a schema: what is written to, and the one argument that results may share memory with.
func effects(schema *graph.Schema, values []graph.Value) (mutated []graph.Value, viewed graph.Value, err error) {
	returnsNoOther := schema.Returns == "()" || schema.Returns == "Tensor(a!)" // the first one that is written
	for i, parameter := range schema.Parameters {
		switch {
		case values[i] == nil || !parameter.Mutated && !parameter.Aliased:
		case parameter.Mutated && returnsNoOther: // such as the step of an optimizer, over lists of tensors
			mutated = append(mutated, graph.Tensors(values[i])...)
		case parameter.List || parameter.Aliased && viewed != nil || parameter.Mutated && len(mutated) > 0:
			return nil, nil, errors.Wrapf(ErrUnsupported, "%s changes or shares several tensors", schema.Target())
		case parameter.Mutated:
			mutated = append(mutated, values[i])
		default:
			viewed = values[i]
		}
	}
	return mutated, viewed, nil
}

// outputs reads the metadata of a node's results.
func (r *Nodes) outputs(list bytecode.Object) ([]graph.OutputInfo, error) {
	return slice.TryMap(trace.Items(list), r.readOutput)
}

// readOutput reads the metadata of a result, or None, which stands for one that is not computed.
func (r *Nodes) readOutput(object bytecode.Object) (graph.OutputInfo, error) {
	if object == bytecode.Object(bytecode.None) {
		return graph.OutputInfo{}, nil
	}
	meta, err := ParseShapedMeta(object, r.graph.Shapes)
	if err != nil {
		return graph.OutputInfo{}, errors.Wrapf(ErrUnsupported, "%v", err)
	}
	if meta.Flags&(graph.FlagNotPlain|graph.FlagConjNeg) != 0 {
		return graph.OutputInfo{}, errors.Wrap(ErrUnsupported, "a tensor that is not plain")
	}
	return graph.OutputInfo{Meta: WithoutGradient(meta)}, nil
}

// WithoutGradient drops what only autograd cares about: lowered graphs run below it.
func WithoutGradient(meta graph.Meta) graph.Meta {
	meta.RequiresGrad = false
	meta.Flags &^= graph.FlagParameter | graph.FlagLeaf | graph.FlagGradFn
	return meta
}

func (r *Nodes) keywords(object bytecode.Object) ([]graph.Keyword, error) {
	dict, ok := object.(*bytecode.Dict)
	if !ok {
		return nil, errors.New("a node's keyword arguments are no dict")
	}
	var keywords []graph.Keyword
	for i, key := range dict.Keys {
		name, isText := key.(string)
		value, err := r.Value(dict.Values[i])
		if err != nil {
			return nil, err
		}
		if !isText {
			return nil, errors.New("a keyword is no text")
		}
		keywords = append(keywords, graph.Keyword{Name: name, Value: value})
	}
	return keywords, nil
}

func (r *Nodes) values(items []bytecode.Object) ([]graph.Value, error) {
	return slice.TryMap(items, r.Value)
}

// Value reads an argument: a place in the graph, a container, or a reference to a constant.
func (r *Nodes) Value(object bytecode.Object) (graph.Value, error) {
	fields, ok := object.(bytecode.Tuple)
	if ok && len(fields) > 1 {
		switch fields[0] {
		case "i":
			return r.input(fields)
		case "n":
			return r.output(fields)
		case "tuple", "list":
			items, err := r.values(trace.Items(fields[1]))
			return graph.List{Items: items, Tuple: fields[0] == "tuple"}, err
		case "size":
			return r.size(fields[1])
		}
		return nil, errors.Newf("%v is no argument of a node", fields[0])
	}
	reference, err := trace.ParseReference(object)
	if err != nil {
		return nil, err
	}
	if constant, isConstant := reference.(trace.Constant); isConstant {
		return constantValue(constant.Value)
	}
	return r.object(reference.(trace.ObjectID))
}

func (r *Nodes) size(object bytecode.Object) (graph.Value, error) {
	size, ok := ParseSize(object, r.graph.Shapes)
	if !ok {
		return nil, errors.Newf("%v is no size", object)
	}
	return graph.SizeValue(size), nil
}

func (r *Nodes) input(fields bytecode.Tuple) (graph.Value, error) {
	k, ok := fields[1].(int64)
	if !ok || len(fields) != 2 || k < 0 || k >= int64(len(r.inputs)) {
		return nil, errors.Newf("%v names no input", fields[1])
	}
	return r.inputs[k], nil
}

func (r *Nodes) output(fields bytecode.Tuple) (graph.Value, error) {
	number, ok := fields[1].(int64)
	index, indexed := int64(0), true
	if len(fields) == 3 {
		index, indexed = fields[2].(int64)
	}
	if !ok || !indexed || len(fields) > 3 || number < 0 || number >= int64(len(r.nodes)) {
		return nil, errors.Newf("%v names no earlier node", fields[1])
	}
	node := r.nodes[number]
	if index < 0 || index >= int64(len(node.Outputs)) {
		return nil, errors.Newf("node %s has no result %d", node.Name, index)
	}
	return node.Output(int(index)), nil
}

func constantValue(object bytecode.Object) (graph.Value, error) {
	switch value := object.(type) {
	case bytecode.NoneType:
		return nil, nil
	case bool, int64, float64, complex128, string:
		return value, nil
	}
	return nil, errors.Wrapf(ErrUnsupported, "an argument of type %T", object)
}

// object reads a reference to one of torch's own constants.
func (r *Nodes) object(id trace.ObjectID) (graph.Value, error) {
	description, err := r.session.Object(id)
	if err != nil {
		return nil, err
	}
	text, _ := description.Payload.(string)
	switch description.Kind {
	case "dtype":
		if dtype, ok := graph.ParseDType(text); ok {
			return dtype, nil
		}
	case "device":
		return ParseDevice(text)
	case "layout":
		return graph.Layout(text), nil
	case "memory_format":
		return graph.MemoryFormat(text), nil
	case "size":
		return readSize(description.Payload)
	}
	return nil, errors.Wrapf(ErrUnsupported, "an argument of kind %s", description.Kind)
}

func readSize(payload bytecode.Object) (graph.Value, error) {
	sizes, ok := parseSizes(payload, nil)
	if !ok {
		return nil, errors.New("a size is malformed")
	}
	return graph.List{Items: slice.Map(sizes, func(size graph.Size) graph.Value { return size.Hint })}, nil
}
