package symbolic

import (
	"slices"
	"strings"

	"fusee/graph"
)

// reshapedTensor is a tensor whose shape a method changed in place. The graph has a view instead, which has a base, as the tensor itself does not.
type reshapedTensor struct {
	tensor *Tensor
	step   int
	method string
}

// reshapedApart finds a reshaped tensor that leaves the capture: Python reshapes that.
func (in *Interpreter) reshapedApart(given map[*Tensor]*slot) error {
	for _, reshaped := range in.reshaped {
		if given[reshaped.tensor] != nil {
			return &restart{step: reshaped.step, reason: reshapesInPython(reshaped.method)}
		}
	}
	return nil
}

func reshapesInPython(method string) *Unsupported {
	return &Unsupported{reasonMutation, "Tensor." + method + ", which changes the shape of a tensor that is needed after the graph"}
}

// reshapeInPlace is a method such as Tensor.unsqueeze_ on a tensor that the graph made: the tensor becomes what the method without its underscore
// gives, a view of the same memory. Tensors that were there before the call are left to Python, as are those where autograd would know the views
// apart.
func (in *Interpreter) reshapeInPlace(t *Tensor, name string, arguments Arguments) (Value, error) {
	if !in.reshapable(t) || name == "as_strided_" {
		return nil, reshapesInPython(name)
	}
	result, err := in.torchCall("Tensor."+strings.TrimSuffix(name, "_"), arguments)
	if err != nil {
		return nil, err
	}
	reshaped, ok := result.(*Tensor)
	if !ok || reshaped == t {
		return result, nil
	}
	t.value, t.meta, t.view = reshaped.value, reshaped.meta, true
	in.reshaped = append(in.reshaped, &reshapedTensor{t, in.frame.step, name})
	in.activity++
	for k, tensor := range in.tensors {
		if tensor == reshaped {
			in.tensors = append(in.tensors[:k:k], in.tensors[k+1:]...)
			break
		}
	}
	return t, nil
}

// reshapable tells tensors that only the capture knows and that stand for no other.
func (in *Interpreter) reshapable(t *Tensor) bool {
	if _, made := t.value.(*graph.Output); !made || t.id != 0 || t.class != nil || t.array || t.wraps() {
		return false
	}
	if t.meta.RequiresGrad && (t.view || t.meta.Flags&graph.FlagLeaf != 0) {
		return false
	}
	return !slices.ContainsFunc(in.choices, func(choice *chosenTensor) bool { return choice.stands(t) })
}

// stands tells whether a tensor is the result of a choice or one of those that it was made among.
func (c *chosenTensor) stands(t *Tensor) bool {
	return c.result == t || slices.Contains(c.among, t)
}
