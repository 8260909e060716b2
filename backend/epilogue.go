package backend

import (
	"slices"

	"fusee/graph"
)

// epilogues hands activations to the library calls they follow, where one call computes both in one kernel: a linear layer with a bias and a relu after it
// is aten::_addmm_activation, which cuBLASLt computes with an epilogue. Its gelu is the one by tanh and so is left alone.
func epilogues(c *compilation) error {
	if c.compiler.options.Unfused {
		return nil
	}
	c.program.operations = slices.DeleteFunc(c.program.operations, func(op *operation) bool {
		call := activated(op)
		if call == nil {
			return false
		}
		c.program.activate(call, op)
		return true
	})
	return nil
}

// activated returns the call of a linear layer on a GPU that a relu alone uses; nil when op is something else.
func activated(op *operation) *operation {
	if op.kind != pointwise || op.barrier || op.node.Target != "aten.relu.default" || op.name != "relu" || len(op.operands) != 1 {
		return nil
	}
	result := op.operands[0].tensor
	if result == nil || result.root != result || result.producer == nil || result.output || len(result.uses) != 1 {
		return nil
	}
	call := result.producer
	if call.kind != library || call.node.Target != "aten.linear.default" || len(call.node.Args) != 3 || call.segment != op.segment || !linearWithBias(call.node) {
		return nil
	}
	return call
}

// linearWithBias reports whether a linear layer is one that cuBLASLt's epilogues take: of rows in floating point on a GPU, with a bias.
func linearWithBias(node *graph.Node) bool {
	output := &node.Outputs[0].Meta
	input, ok := graph.MetaOf(node.Args[0])
	return ok && node.Args[2] != nil && output.Device.Type == "cuda" && output.DType.IsFloat() && output.DType != graph.Float64 && len(input.Sizes) == 2
}

// activate makes a linear layer compute the relu too.
func (p *program) activate(call, relu *operation) {
	input, weight, bias := call.node.Args[0], call.node.Args[1], call.node.Args[2]
	call.node = &graph.Node{
		Index: call.node.Index, Name: call.node.Name, Target: "aten._addmm_activation.default", Args: []graph.Value{bias, input, p.transposed(weight)},
		Outputs: relu.node.Outputs,
	}
	call.name = shortName(call.node.Target)
	call.outputs = relu.outputs
	call.outputs[0].producer = call
}

// transposed makes a value of the program that is a matrix seen from the side.
func (p *program) transposed(matrix graph.Value) graph.Value {
	key, _ := keyOf(matrix)
	view := transposed(p.values[key].tensor)
	node := &graph.Node{Name: view.name + "_t", Target: "aten.t.default", Outputs: []graph.OutputInfo{{Meta: view.meta}}}
	p.values[valueKey{node: node}] = operand{tensor: view}
	return node.Output(0)
}
