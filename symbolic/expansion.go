package symbolic

import (
	"slices"
	"strings"

	"github.com/cockroachdb/errors"

	"fusee/bytecode"
	"fusee/graph"
	"fusee/trace"
	"fusee/trace/wire"
)

// hostedCall is an operation that the host knows: of a canonical name, or of a live object that is called.
type hostedCall struct {
	target   string
	callee   trace.ObjectID // 0 where the target names it
	args     []graph.Value
	keywords []graph.Keyword
}

// wireTarget is what the host shall call.
func (c *hostedCall) wireTarget() bytecode.Object {
	if c.callee != 0 {
		return int64(c.callee)
	}
	return c.target
}

// isImpure tells functions that read Python data, for which the aten operators that ran on fake tensors are not the whole truth.
func isImpure(target string) bool {
	return slices.Contains([]string{"torch.tensor", "torch.as_tensor", "torch.asarray", "torch.from_numpy", "torch.frombuffer", "Tensor.new_tensor",
		"fusee._arrays.function.array", "fusee._arrays.function.asarray", "fusee._arrays.function.asanyarray"}, target)
}

// expand attaches the aten operators that the host saw a call run to its node. It reports false where they do not account for every output:
// only Python can run the node then.
func (in *Interpreter) expand(node *graph.Node, outcome *trace.Outcome) (bool, error) {
	if outcome.Expansion == nil || outcome.Expansion == bytecode.Object(bytecode.None) || isImpure(node.Target) || len(in.wrappers(node.Args, node.Keywords)) > 0 {
		return false, nil
	}
	var inputs []graph.Value
	for _, item := range trace.Items(trace.Field(outcome.Expansion, "inputs")) {
		number, ok := item.(int64)
		value := in.wiredTensor(number)
		if !ok || value == nil {
			return false, errors.New("an expansion names a tensor that is not an argument")
		}
		inputs = append(inputs, value)
	}
	scratch := graph.NewGraph("expansion")
	scratch.Shapes = in.graph.Shapes
	nodes := wire.NewNodes(in.session, scratch, inputs, in.state.GradMode)
	expansion, err := nodes.Append(trace.Field(outcome.Expansion, "nodes"))
	if errors.Is(err, wire.ErrUnsupported) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	results, complete := expansionResults(nodes, outcome.Structure, trace.Field(outcome.Expansion, "output"))
	if !complete || len(results) != len(node.Outputs) {
		return false, nil
	}
	node.Expansion, node.ExpansionResults = expansion, append([]graph.Value{}, results...) // not nil: a call may run no operator
	node.Mutates = nil
	for _, inner := range expansion {
		for i := range inner.Outputs {
			in.beginLike(&inner.Outputs[i])
		}
		inner.MayRaise = true // as the call itself
		node.Random = node.Random || inner.Random
		for _, value := range inner.Mutates {
			if outer := outermost(value, expansion); outer != nil && !containsValue(node.Mutates, outer) {
				node.Mutates = append(node.Mutates, outer)
			}
		}
	}
	return true, nil
}

// mutatedArguments are the arguments that a call which only Python can run may write: its first one where it is named for that, those
// given as out=, and every tensor where one of the operators that it ran writes any.
func mutatedArguments(node *graph.Node, outcome *trace.Outcome) []graph.Value {
	var mutated []graph.Value
	if graph.IsInPlace(node.Target) && len(node.Args) > 0 {
		mutated = node.Args[:1:1] // what is appended must not end up among the arguments
	}
	writes := false
	for _, item := range trace.Items(trace.Field(outcome.Expansion, "nodes")) {
		fields, ok := item.(bytecode.Tuple)
		signature, isTuple := fields[len(fields)-1].(bytecode.Tuple)
		if ok && isTuple && len(signature) > 0 {
			text, _ := signature[0].(string)
			writes = writes || strings.Contains(text, "!)")
		}
	}
	for _, keyword := range node.Keywords {
		if writes || keyword.Name == "out" {
			mutated = append(mutated, graph.Tensors(keyword.Value)...)
		}
	}
	if writes {
		mutated = append(mutated, graph.Tensors(node.Args...)...)
	}
	return mutated
}

// expansionResults pairs the tensors of a result's structure with the values of the expansion that they are, leaving out returned arguments
// as readTensor does.
func expansionResults(nodes *wire.Nodes, structure, output bytecode.Object) ([]graph.Value, bool) {
	fields, ok := structure.(bytecode.Tuple)
	if !ok || len(fields) < 2 {
		return nil, true // a constant
	}
	if fields[0] == "T" {
		if relation, related := fields[2].(bytecode.Tuple); related && len(relation) == 2 && relation[0] == "same" {
			return nil, true
		}
		value, err := nodes.Value(output)
		return []graph.Value{value}, err == nil
	}
	written, ok := output.(bytecode.Tuple)
	if !ok || len(written) != 2 || written[0] != "tuple" && written[0] != "list" {
		return nil, false
	}
	parts, values := trace.Items(fields[len(fields)-1]), trace.Items(written[1])
	if len(parts) != len(values) {
		return nil, false
	}
	var results []graph.Value
	for i, part := range parts {
		inner, complete := expansionResults(nodes, part, values[i])
		if !complete {
			return nil, false
		}
		results = append(results, inner...)
	}
	return results, true
}

// outermost follows a value of an expansion through views to the outer tensor whose memory it is; nil for memory of its own.
func outermost(value graph.Value, expansion []*graph.Node) graph.Value {
	for {
		output, ok := value.(*graph.Output)
		if !ok || !slices.Contains(expansion, output.Node) {
			return value
		}
		relation := output.Node.Outputs[output.Index].Relation
		if relation.Kind == graph.RelationNew {
			return nil
		}
		value = relation.Of
	}
}

func containsValue(values []graph.Value, wanted graph.Value) bool {
	return slices.ContainsFunc(values, func(v graph.Value) bool { return graph.SameValue(v, wanted) })
}
