package graph

import (
	"github.com/cockroachdb/errors"

	"fusee/internal/slice"
)

// Lower gives the graph with every torch-level node replaced by the aten operators of its expansion. It fails on nodes that
// have none: calls the tables do not know and the host did not trace.
func (g *Graph) Lower() (*Graph, error) {
	l, err := g.lowering(g.Nodes)
	if err != nil {
		return nil, err
	}
	l.graph.Outputs = l.replaceAll(g.Outputs)
	return l.graph, nil
}

func (g *Graph) lowering(nodes []*Node) (*lowering, error) {
	l := &lowering{graph: &Graph{Name: g.Name, Inputs: g.Inputs, Shapes: g.Shapes}, replaced: map[storageKey]Value{}, casts: map[cachedCast]*Output{}}
	for _, n := range nodes {
		if err := l.lowerNode(n); err != nil {
			return nil, errors.Wrapf(err, "lowering %s of graph %s", n.Name, g.Name)
		}
	}
	return l, nil
}

type lowering struct {
	graph    *Graph
	replaced map[storageKey]Value
	casts    map[cachedCast]*Output
}

// cachedCast is what autocast keeps a cast by: the cache, and the weight with the dtype that it is cast to.
type cachedCast struct {
	cache  int
	weight *Input
	dtype  DType
}

func (l *lowering) lowerNode(n *Node) error {
	if isOperator(n.Target) || n.AsksForGradients() || n.MakesLeaf() || n.Function != nil {
		l.copyNode(n)
		return nil
	}
	if len(n.Expansion) == 0 && n.ExpansionResults == nil {
		return errors.WithHint(errors.Newf("%s has no expansion into aten operators", n.Target),
			"the host traces calls that the function table does not know; keep such a call outside the graph otherwise")
	}
	var last *Node
	for _, e := range n.Expansion {
		if last = l.knownCast(n, e); last != nil {
			continue
		}
		last = l.copyNode(e)
		last.Origin, last.Checkpoint = n.Origin, n.Checkpoint
	}
	return l.bindResults(n, last)
}

// knownCast is the cast that a step of a node's expansion would make again, nil where it has to be made. So the gradients of all uses of a
// weight are added before they are cast back, as autocast's cache has it (cached_cast in aten/src/ATen/autocast_mode.cpp of PyTorch).
func (l *lowering) knownCast(n, e *Node) *Node {
	cast, cached := castOfWeight(n, e)
	if !cached {
		return nil
	}
	known := l.casts[cast]
	if known == nil {
		l.casts[cast] = l.copyNode(e).Output(0)
		l.casts[cast].Node.Checkpoint = n.Checkpoint
		return l.casts[cast].Node
	}
	l.replaced[storageKey{node: e}] = known
	return known.Node
}

// castOfWeight tells casts that autocast keeps: of leaves that require gradients, to a narrower dtype, which are not the result of the
// operation, as those are that the program asks for.
func castOfWeight(n, e *Node) (cast cachedCast, cached bool) {
	if n.CastCache == 0 || n.Unrecorded || e.Target != "aten._to_copy.default" || len(e.Keywords) != 1 || e.Keywords[0].Name != "dtype" {
		return cast, false
	}
	weight, given := e.Args[0].(*Input)
	dtype, named := e.Keywords[0].Value.(DType)
	if !given || !named || mentions(n.ExpansionResults, e.Output(0)) {
		return cast, false
	}
	kept := weight.Meta.RequiresGrad && weight.Meta.DType == Float32 && weight.Meta.Flags&(FlagView|FlagGradFn) == 0
	return cachedCast{n.CastCache, weight, dtype}, kept && (dtype == BFloat16 || dtype == Float16)
}

func (l *lowering) bindResults(n, last *Node) error {
	for k := range n.Outputs {
		switch {
		case n.ExpansionResults != nil && k < len(n.ExpansionResults):
			l.replaced[storageKey{node: n, output: k}] = l.replace(n.ExpansionResults[k])
		case n.ExpansionResults == nil && last != nil && len(last.Outputs) == len(n.Outputs):
			l.replaced[storageKey{node: n, output: k}] = last.Output(k)
		default:
			return errors.New("the expansion does not make all outputs")
		}
	}
	return nil
}

// copyNode appends a copy of an aten node with its values renamed.
func (l *lowering) copyNode(n *Node) *Node {
	node := &Node{Target: n.Target, Args: l.replaceAll(n.Args), Mutates: l.replaceAll(n.Mutates), Random: n.Random,
		MayRaise: n.MayRaise, Unrecorded: n.Unrecorded, Origin: n.Origin, ResultType: n.ResultType, Schema: n.Schema,
		Callee: n.Callee, Function: n.Function, Captured: l.replaceAll(n.Captured), Checkpoint: n.Checkpoint}
	for _, k := range n.Keywords {
		node.Keywords = append(node.Keywords, Keyword{k.Name, l.replace(k.Value)})
	}
	for k, o := range n.Outputs {
		o.Relation.Of = l.replace(o.Relation.Of)
		node.Outputs = append(node.Outputs, o)
		l.replaced[storageKey{node: n, output: k}] = &Output{Node: node, Index: k}
	}
	node.Result = node.defaultResult()
	if n.Function != nil {
		node.Result = l.replace(n.Result)
	}
	l.graph.add(node)
	return node
}

func (l *lowering) replaceAll(values []Value) []Value { return slice.Map(values, l.replace) }

func (l *lowering) replace(v Value) Value {
	return MapValue(v, func(v Value) Value {
		if value, ok := l.replaced[keyOf(v)]; ok {
			return value
		}
		return v
	})
}
