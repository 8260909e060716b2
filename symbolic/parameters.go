package symbolic

import (
	"fusee/bytecode"
	"fusee/graph"
)

const parameterClass = "torch.nn.parameter.Parameter"

// makeSubclass is Tensor._make_subclass(class, data, require_grad=False), by which nn.Parameter makes its instances: a tensor of that class on
// the memory of data, apart from its gradients. Other classes, and parameters that are to get gradients, which Python must hold, are left to it.
func (in *Interpreter) makeSubclass(arguments Arguments) (Value, error) {
	values, ok := bindNamed(arguments, "cls", "data", "require_grad")
	if !ok || values[0] == nil || values[1] == nil {
		return nil, unsupported(reasonTensorSub, "_make_subclass with these arguments")
	}
	if values[2] == nil {
		values[2] = boolean(false)
	}
	reals, err := in.realAll(values)
	if err != nil {
		return nil, err
	}
	class, isClass := reals[0].(*Class)
	data, isTensor := reals[1].(*Tensor)
	if !isClass || !isTensor || class.name != parameterClass || data.class != nil || data.wraps() {
		return nil, unsupported(reasonTensorSub, "_make_subclass of %s", reals[1].typeName())
	}
	if needed, known := reals[2].(*Constant); !known || needed.Value != false {
		return nil, unsupported(reasonTensorSub, "a parameter with gradients, made in the program")
	}
	made, err := in.detached(data)
	if err != nil {
		return nil, err
	}
	made.meta.Flags |= graph.FlagParameter
	return made, nil
}

// madeParameter tells parameters that the program makes during capture.
func (t *Tensor) madeParameter() bool {
	return t.id == 0 && t.class == nil && t.meta.Flags&graph.FlagParameter != 0
}

// buildParameter makes a parameter of the tensor that the graph gives for it.
func (cg *generator) buildParameter(t *Tensor) error {
	if t.meta.RequiresGrad {
		return &cannotRebuild{0, "a parameter that got gradients"}
	}
	cg.emit(bytecode.PushNull, 0)
	cg.placeholder("name", "torch.Tensor._make_subclass")
	cg.placeholder("name", parameterClass)
	cg.loadSlot(cg.output(t))
	cg.call(2)
	return nil
}
