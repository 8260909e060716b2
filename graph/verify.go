package graph

import (
	"slices"

	"github.com/cockroachdb/errors"
)

// Verify checks the structure of the graph: every value used is an input or an earlier node's output, outputs are whole
// (strides for every size, no negative sizes), relations and mutations name arguments. A node whose target starts with "aten."
// must also fit its schema when the table knows the operator.
func (g *Graph) Verify() error {
	scope := &scope{graph: g, known: map[*Node]bool{}}
	for i, n := range g.Nodes {
		if n.Index != i {
			return errors.Newf("graph %s: node %s stands at %d and says %d", g.Name, n.Name, i, n.Index)
		}
		if err := scope.checkNode(n); err != nil {
			return errors.Wrapf(err, "graph %s, node %s", g.Name, n.Name)
		}
	}
	for _, v := range g.Outputs {
		if err := scope.checkValue(v); err != nil {
			return errors.Wrapf(err, "graph %s, outputs", g.Name)
		}
	}
	return nil
}

type scope struct {
	graph *Graph
	known map[*Node]bool
}

func (s *scope) checkNode(n *Node) error {
	arguments := n.arguments()
	for _, v := range arguments {
		if err := s.checkValue(v); err != nil {
			return err
		}
	}
	for _, o := range n.Outputs {
		if err := o.check(arguments); err != nil {
			return err
		}
	}
	for _, v := range n.Mutates {
		if !mentions(arguments, v) {
			return errors.Newf("mutates %s, which is no argument", FormatValue(v))
		}
	}
	if isOperator(n.Target) {
		if err := n.checkSchema(); err != nil {
			return err
		}
	}
	s.known[n] = true
	return s.checkExpansion(n)
}

func (s *scope) checkExpansion(n *Node) error {
	inner := &scope{graph: s.graph, known: map[*Node]bool{}}
	for node := range s.known {
		inner.known[node] = node != n
	}
	for _, e := range n.Expansion {
		if err := inner.checkNode(e); err != nil {
			return errors.Wrapf(err, "expansion node %s", e.Name)
		}
	}
	for _, v := range n.ExpansionResults {
		if err := inner.checkValue(v); err != nil {
			return errors.Wrap(err, "expansion results")
		}
	}
	if n.ExpansionResults != nil && len(n.ExpansionResults) != len(n.Outputs) {
		return errors.Newf("%d outputs, %d expansion results", len(n.Outputs), len(n.ExpansionResults))
	}
	return nil
}

func (s *scope) checkValue(v Value) error {
	switch v := v.(type) {
	case nil, bool, int64, float64, complex128, string, DType, Device, Layout, MemoryFormat, Ellipsis, Size:
		return nil
	case *Input:
		if v == nil || v.Index < 0 || v.Index >= len(s.graph.Inputs) || s.graph.Inputs[v.Index] != v {
			return errors.New("uses an input of another graph")
		}
		return nil
	case *Output:
		if v == nil || !s.known[v.Node] || v.Index < 0 || v.Index >= len(v.Node.Outputs) {
			return errors.New("uses a value that no earlier node makes")
		}
		return nil
	case List:
		return s.checkValues(v.Items)
	case Slice:
		return s.checkValues([]Value{v.Start, v.Stop, v.Step})
	}
	return errors.Newf("argument of type %T", v)
}

func (s *scope) checkValues(values []Value) error {
	for _, v := range values {
		if err := s.checkValue(v); err != nil {
			return err
		}
	}
	return nil
}

func (o OutputInfo) check(arguments []Value) error {
	if len(o.Meta.Sizes) != len(o.Meta.Strides) {
		return errors.Newf("output with %d sizes and %d strides", len(o.Meta.Sizes), len(o.Meta.Strides))
	}
	for _, size := range o.Meta.Sizes {
		if size.Hint < 0 {
			return errors.Newf("output with size %d", size.Hint)
		}
	}
	if o.Relation.Kind != RelationNew && !mentions(arguments, o.Relation.Of) {
		return errors.Newf("output related to %s, which is no argument", FormatValue(o.Relation.Of))
	}
	return nil
}

// arguments lists positional arguments, then keyword values.
func (n *Node) arguments() []Value {
	return slices.Concat(n.Args, keywordValues(n), n.Captured)
}

// mentions says whether one of the values is v or a container that holds it.
func mentions(values []Value, v Value) bool {
	return slices.ContainsFunc(values, func(candidate Value) bool {
		list, isList := candidate.(List)
		return SameValue(candidate, v) || isList && mentions(list.Items, v)
	})
}
