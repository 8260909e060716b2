package symbolic

import (
	"slices"

	"fusee/bytecode"
	"fusee/graph"
	"fusee/internal/slice"
)

// knownScalar is the number that a tensor was made of during capture, as in torch.tensor(2); nil where its value is not known, or memory was
// written since.
func (in *Interpreter) knownScalar(t *Tensor) *Constant {
	output, ok := t.value.(*graph.Output)
	if !ok || t.class != nil || output.Node.Target != "torch.tensor" && output.Node.Target != "torch.as_tensor" {
		return nil
	}
	for _, keyword := range output.Node.Keywords {
		if keyword.Name == "dtype" {
			return nil // a conversion may change the number
		}
	}
	if len(output.Node.Args) != 1 || in.writesBehind(output.Node) {
		return nil
	}
	switch number := output.Node.Args[0].(type) {
	case bool, int64:
		return &Constant{number}
	case float64:
		if t.meta.DType == graph.Float32 {
			return &Constant{float64(float32(number))}
		}
	}
	return nil
}

// writesBehind tells whether the graph writes memory behind a node.
func (in *Interpreter) writesBehind(node *graph.Node) bool {
	nodes := in.graph.Nodes
	for k := len(nodes) - 1; k >= 0 && nodes[k] != node; k-- {
		if len(nodes[k].Mutates) > 0 {
			return true
		}
	}
	return false
}

// scalarRead answers the methods of a tensor that read its one number, where that is known.
func (in *Interpreter) scalarRead(t *Tensor, name string) (Value, bool, error) {
	known := in.knownScalar(t)
	if known == nil {
		return nil, false, nil
	}
	switch name {
	case "item", "tolist":
		return known, true, nil
	case "__bool__":
		return boolean(constantTruth(known.Value)), true, nil
	case "__int__", "__float__", "__complex__":
		return in.constructNumber(in.builtinClass(name[2:len(name)-2]), Arguments{Positional: []Value{known}})
	case "__index__":
		if _, isInt := known.Value.(int64); isInt {
			return known, true, nil
		}
	}
	return nil, false, nil
}

// chosenTensor is the result of min or max over tensors, which stands for one of them without being it.
type chosenTensor struct {
	result *Tensor
	among  []*Tensor
	step   int
}

// tensorExtreme is min or max of numbers that the graph computes, chosen without asking for their values; nil where they must be compared.
// It is another tensor than the one that Python would give: chosenApart sees to it that nothing can tell.
func (in *Interpreter) tensorExtreme(largest bool, items []Value) (Value, error) {
	tensors := make([]*Tensor, len(items))
	for i, item := range items {
		value, err := in.look(item)
		if err != nil {
			return nil, err
		}
		tensor, ok := value.(*Tensor)
		if !ok || !choosable(tensor) || i > 0 && !alike(&tensor.meta, &tensors[0].meta) {
			return nil, nil
		}
		tensors[i] = tensor
	}
	if len(tensors) < 2 || !in.request.Options.FullGraph && !in.leadToTheSame(tensors) {
		return nil, nil
	}
	operands := make([]Value, len(tensors))
	for i, tensor := range tensors {
		operands[i] = tensor
	}
	best, err := in.chooseExtreme(largest, operands)
	if err != nil {
		return nil, err
	}
	result, ok := best.(*Tensor)
	if !ok {
		return nil, unsupported(reasonBranch, "")
	}
	in.choices = append(in.choices, &chosenTensor{result, tensors, in.frame.step})
	return result, nil
}

// choosable tells tensors of no dimension that the graph makes and that carry nothing but their value.
func choosable(t *Tensor) bool {
	_, made := t.value.(*graph.Output)
	return made && t.id == 0 && t.class == nil && !t.view && !t.array && len(t.meta.Sizes) == 0 && len(t.attributes) == 0
}

func alike(a, b *graph.Meta) bool {
	return a.DType == b.DType && a.Device == b.Device && a.RequiresGrad == b.RequiresGrad
}

// leadToTheSame says whether gradients flow from each of some tensors to the same inputs: those of what was not chosen would be zero, where there are none.
func (in *Interpreter) leadToTheSame(tensors []*Tensor) bool {
	histories := slice.Map(tensors, func(t *Tensor) *graph.History { return in.graph.HistoryOf([]graph.Value{t.value}, in.graph.Nodes) })
	return !slices.ContainsFunc(histories, func(h *graph.History) bool {
		return !slices.Equal(h.Inputs, histories[0].Inputs) || !slices.Equal(h.Leaves, histories[0].Leaves)
	})
}

// chosenApart finds a choice among tensors whose result could be told from the tensor that it stands for, as memory is written behind it or
// both leave the capture: Python chooses then.
func (in *Interpreter) chosenApart(given map[*Tensor]*slot) error {
	for _, choice := range in.choices {
		apart := !in.writesBehind(choice.result.value.(*graph.Output).Node)
		for _, tensor := range choice.among {
			apart = apart && (given[tensor] == nil || given[choice.result] == nil)
		}
		if !apart {
			return &restart{step: choice.step, reason: &Unsupported{reasonBranch, ""}}
		}
	}
	return nil
}

// isChosen tells whether the identity of two tensors depends on a choice by value.
func (in *Interpreter) isChosen(left, right Value) bool {
	return slices.ContainsFunc(in.choices, func(choice *chosenTensor) bool {
		return slices.ContainsFunc(choice.among, func(tensor *Tensor) bool {
			return left == Value(choice.result) && right == Value(tensor) || right == Value(choice.result) && left == Value(tensor)
		})
	})
}

// scalarIndex is the int that a tensor made of one stands for as an index.
func (in *Interpreter) scalarIndex(t *Tensor) (Value, error) {
	if known := in.knownScalar(t); known != nil {
		if _, isInt := known.Value.(int64); isInt {
			return &Constant{bytecode.Object(known.Value)}, nil
		}
	}
	return nil, unsupported(reasonTensorValue, "index")
}
