package graph

import (
	"errors"
	"slices"
	"strings"

	"fusee/internal/slice"
)

// ErrUnknown says that the tables have no exact answer for a call: the caller asks the host and uses Append. It is also the
// answer for calls that eager rejects, so that the host gives the true exception.
var ErrUnknown = errors.New("graph: no exact rule for this call")

// unknown is an ErrUnknown that says why, for people who extend the tables.
type unknown string

func (u unknown) Error() string { return "graph: no exact rule: " + string(u) }

// Is makes errors.Is(err, ErrUnknown) hold.
func (u unknown) Is(target error) bool { return target == ErrUnknown }

// caller turns one Python-level call into aten nodes. Handlers emit nodes and return the result as Python sees it.
type caller struct {
	graph      *Graph
	state      State
	target     string
	args       []Value
	keywords   []Keyword
	nodes      []*Node
	resultType string
}

// IsInPlace says whether a function writes its first argument, by the underscore that its name ends with, as in "Tensor.add_". Autocast casts no argument
// of such a function (https://docs.pytorch.org/docs/stable/amp.html).
func IsInPlace(target string) bool {
	return strings.HasSuffix(target, "_") && !strings.HasSuffix(target, "__")
}

// mayCast tells calls that autocast may change: functions that are given no tensor, such as torch.tensor, have nothing to cast.
func mayCast(target string, args []Value, keywords []Keyword) bool {
	given := slices.Concat(args, slice.Map(keywords, func(k Keyword) Value { return k.Value }))
	return !IsInPlace(target) && len(Tensors(given...)) > 0
}

// Call appends a node for a call of a torch-level function ("torch.relu", "Tensor.add_", "operator.add") or of an aten operator
// ("aten.add.Tensor") with the outputs that eager would give, or returns an error that is ErrUnknown and leaves the graph alone.
func (g *Graph) Call(target string, args []Value, keywords []Keyword, state State) (*Node, error) {
	if state.Autocast && mayCast(target, args, keywords) {
		return nil, unknown("autocast")
	}
	state.GradMode = state.GradMode && !state.InferenceMode
	if g.Shapes == nil {
		g.Shapes = NewShapeEnvironment()
	}
	g.Shapes.At(state.Origin)
	c := &caller{graph: g, state: state, target: target, args: args, keywords: keywords}
	if !wellFormed(c.values()) {
		return nil, unknown("arguments that no graph holds")
	}
	if err := c.checkPlain(); err != nil {
		return nil, err
	}
	result, err := c.dispatch()
	if err != nil {
		return nil, err
	}
	node := c.assemble(result)
	g.add(node)
	g.noteMutations(c.nodes)
	return node, nil
}

func (c *caller) values() []Value {
	values := slices.Clone(c.args)
	for _, k := range c.keywords {
		values = append(values, k.Value)
	}
	return values
}

// wellFormed checks that the values are of the types a graph holds and that nothing is a nil pointer.
func wellFormed(values []Value) bool {
	return !slices.ContainsFunc(values, func(v Value) bool {
		switch v := v.(type) {
		case nil, bool, int64, float64, complex128, string, DType, Device, Layout, MemoryFormat, Ellipsis, Size:
			return false
		case *Input:
			return v == nil
		case *Output:
			return v == nil || v.Node == nil || v.Index < 0 || v.Index >= len(v.Node.Outputs)
		case List:
			return !wellFormed(v.Items)
		case Slice:
			return !wellFormed([]Value{v.Start, v.Stop, v.Step})
		}
		return true
	})
}

// checkPlain rejects tensors that are not plain dense ones, and inference tensors where gradients may flow.
func (c *caller) checkPlain() error {
	inference, gradient := false, false
	for _, v := range collectTensors(c.values()) {
		m, _ := MetaOf(v)
		if m.Flags&(FlagConjNeg|FlagNotPlain) != 0 || len(m.Sizes) != len(m.Strides) {
			return unknown("a tensor that is not plain")
		}
		inference = inference || m.Flags&FlagInference != 0
		gradient = gradient || c.graph.RequiresGrad(v)
	}
	if inference && gradient && !c.state.InferenceMode {
		return unknown("an inference tensor where gradients flow")
	}
	return nil
}

// assemble makes the node out of the expansion and the result.
func (c *caller) assemble(result Value) *Node {
	node := &Node{Target: c.target, Args: c.args, Keywords: c.keywords, Origin: c.state.Origin, ResultType: c.resultType,
		Unrecorded: !c.state.GradMode,
		Expansion:  c.nodes, ExpansionResults: []Value{}}
	node.Result = c.collect(node, result)
	for i, n := range c.nodes {
		n.Index = i
		n.Name = nodeName(n.Target) + "_" + string(rune('a'+i%26))
		node.Random = node.Random || n.Random
		node.MayRaise = node.MayRaise || n.MayRaise
		for _, v := range n.Mutates {
			if outer := c.resolve(v); outer.Of != nil && !mentions(node.Mutates, outer.Of) {
				node.Mutates = append(node.Mutates, outer.Of)
			}
		}
	}
	if isOperator(c.target) && len(c.nodes) == 1 {
		node.Expansion, node.ExpansionResults = nil, nil
		node.Args, node.Keywords = c.nodes[0].Args, c.nodes[0].Keywords
	}
	return node
}

// collect registers the tensors of a result as outputs of the node and replaces them by Outputs.
func (c *caller) collect(node *Node, result Value) Value {
	if list, ok := result.(List); ok {
		return List{Items: slice.Map(list.Items, func(item Value) Value { return c.collect(node, item) }), Tuple: list.Tuple}
	}
	meta, ok := MetaOf(result)
	if _, isOutput := result.(*Output); !ok && !isOutput {
		return nil
	}
	info := OutputInfo{} // for a result that is not computed
	if ok {
		info = OutputInfo{Meta: *meta, Relation: c.resolve(result)}
		info.Meta.RequiresGrad = c.graph.RequiresGrad(result)
	}
	if info.Relation.Kind == RelationNew {
		info.Meta.Flags &^= FlagView // a view of memory that nobody else sees
	}
	node.Outputs = append(node.Outputs, info)
	node.ExpansionResults = append(node.ExpansionResults, result)
	return &Output{Node: node, Index: len(node.Outputs) - 1}
}

// resolve expresses how a value relates to the values outside the expansion.
func (c *caller) resolve(v Value) Relation {
	o, ok := v.(*Output)
	if !ok || !slices.Contains(c.nodes, o.Node) {
		return SameAs(v)
	}
	relation := relationOf(v)
	if relation.Kind == RelationNew {
		return New()
	}
	outer := c.resolve(relation.Of)
	if outer.Kind == RelationSame {
		outer.Kind = relation.Kind
	}
	return outer
}

// noteMutations marks memory that differentiable values were written into.
func (g *Graph) noteMutations(nodes []*Node) {
	for _, n := range nodes {
		for _, o := range n.Outputs {
			if o.Relation.Kind == RelationSame && o.Meta.RequiresGrad && mentions(n.Mutates, o.Relation.Of) {
				g.noteMutation(o.Relation.Of)
			}
		}
	}
}

// emit infers one aten operator over bound values, adds it to the expansion and gives its result.
func (c *caller) emit(op *Op, values []Value) (Value, error) {
	inner := &inference{graph: c.graph, shapes: c.graph.Shapes, state: c.state, op: op, values: values}
	if _, ok := inner.device(); !ok && len(inner.tensors()) > 0 {
		return nil, unknown("tensors of several devices")
	}
	if err := inner.run(); err != nil {
		return nil, err
	}
	args, keywords := op.normalForm(values)
	node := &Node{Target: op.Schema.Target(), Args: args, Keywords: keywords, Outputs: inner.outputs, Mutates: inner.mutates,
		Random: inner.random, MayRaise: inner.mayRaise(), Unrecorded: !c.state.GradMode, Origin: c.state.Origin}
	node.Result = node.pythonResult(op)
	c.nodes = append(c.nodes, node)
	return node.Result, nil
}

// overload finds the first overload, in the order of the table, that takes the arguments, and binds them as torch's parser does; nil for none.
func overload(name string, method bool, args []Value, keywords []Keyword) (*Op, []Value) {
	for _, op := range ops().named(name) {
		if values, ok := op.bindPython(args, keywords, method); ok {
			return op, values
		}
	}
	return nil, nil
}

// pythonResult nests the outputs as the schema declares them: one tensor, or a tuple.
func (n *Node) pythonResult(op *Op) Value {
	result := n.defaultResult()
	if _, isList := result.(List); !isList && strings.HasSuffix(op.Schema.Returns, "[]") {
		return List{Items: []Value{result}, Tuple: true}
	}
	return result
}

// call emits an operator by target with positional arguments and returns its result.
func (c *caller) call(target string, args ...Value) (Value, error) {
	op, ok := LookUp(target)
	if !ok {
		return nil, unknown(target)
	}
	return c.emitBound(op, args, nil)
}

// meta is the metadata of a value that the handler knows to be a tensor.
func meta(v Value) *Meta {
	m, ok := MetaOf(v)
	if !ok {
		return &Meta{}
	}
	return m
}

// CallOperator appends an aten operator by its name, "mul", with the first overload that takes the arguments, as torch's parser of arguments
// picks it. The errors are those of Call.
func (g *Graph) CallOperator(name string, args []Value, keywords []Keyword, state State) (*Node, error) {
	op, values := overload(name, false, args, keywords)
	if op == nil {
		return nil, unknown(name + ": no overload fits")
	}
	positional, named := op.normalForm(values)
	return g.Call(op.Schema.Target(), positional, named, state)
}

// emitBound fits arguments to the operator's schema, appends the call and returns its result.
func (c *caller) emitBound(op *Op, args []Value, keywords []Keyword) (Value, error) {
	values, err := op.Bind(args, keywords)
	if err != nil {
		return nil, unknown(err.Error())
	}
	return c.emit(op, values)
}
