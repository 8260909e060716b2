package symbolic

import (
	"slices"

	"fusee/graph"
)

// retainedTensor is a tensor that the graph made and whose gradient backward keeps in .grad, and the step that asked for it.
type retainedTensor struct {
	tensor *Tensor
	step   int
}

// retainGradient is Tensor.retain_grad: leaves have their gradients anyway.
func (in *Interpreter) retainGradient(t *Tensor, arguments Arguments) (Value, error) {
	if len(arguments.Positional) > 0 || len(arguments.Keywords) > 0 || t.class != nil || t.wraps() || in.request.Options.AllNodes {
		return nil, unsupported(reasonAutograd, "Tensor.retain_grad")
	}
	if in.isLeaf(t) {
		return none(), nil
	}
	_, made := t.value.(*graph.Output)
	if t.id != 0 || !made || !in.graph.RequiresGrad(t.value) || t.meta.Flags&graph.FlagGradFn == 0 || t.attributes["grad"] != nil {
		return nil, unsupported(reasonAutograd, "Tensor.retain_grad of a tensor that the graph does not make, or that requires none")
	}
	if !in.retains(t) {
		in.retained = append(in.retained, retainedTensor{t, in.frame.step})
		in.activity++
	}
	return none(), nil
}

// retains tells tensors whose gradients backward keeps.
func (in *Interpreter) retains(t *Tensor) bool {
	return slices.ContainsFunc(in.retained, func(r retainedTensor) bool { return r.tensor == t })
}

// findRetained has backward keep the gradients of the tensors on its way that ask for it.
func (in *Interpreter) findRetained(request *gradientRequest) error {
	if len(in.retained) == 0 {
		return nil
	}
	history, err := in.historyOf(request)
	if err != nil {
		return err
	}
	for _, r := range in.retained {
		if history.Wants(r.tensor.value) {
			request.inputs = append(request.inputs, r.tensor)
		}
	}
	return nil
}

// checkRetained leaves to Python the tensors whose gradients only a capture knows, where they outlive it.
func (in *Interpreter) checkRetained(t *Tensor) error {
	for _, r := range in.retained {
		if r.tensor == t {
			return &cannotRebuild{r.step, "a tensor that keeps its gradient"}
		}
	}
	return nil
}
