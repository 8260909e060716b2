package symbolic

import (
	"cmp"
	"slices"
)

// vectorised is torch.func.vmap of an operator written in C: a call of it is one operation of the graph. Python functions are transformed by
// Python, which runs them on tensors that only it knows.
type vectorised struct{ function, inDims, outDims Value }

func (v *vectorised) typeName() string { return "function" }

const vmapName = "torch._functorch.apis.vmap"

// transform is a call of one of torch.func's transforms; handled is false for those that Python makes.
func (in *Interpreter) transform(f *Function, arguments Arguments) (Value, bool, error) {
	if f.name != vmapName || len(arguments.Positional) == 0 || len(arguments.Positional) > 3 {
		return nil, false, nil
	}
	values := slices.Clone(arguments.Positional)
	values = append(values, integer(0), integer(0))[:max(3, len(values))]
	for _, keyword := range arguments.Keywords {
		at := slices.Index([]string{"func", "in_dims", "out_dims"}, keyword.Name)
		if at < len(arguments.Positional) {
			return nil, false, nil
		}
		values[at] = keyword.Value
	}
	values, err := in.realAll(values)
	if err != nil {
		return nil, true, err
	}
	builtin, ok := values[0].(*Builtin)
	if !ok || builtin.self != nil || !isTorchName(builtin.name) {
		return nil, false, nil
	}
	return &vectorised{builtin, values[1], values[2]}, true, nil
}

// call of a vectorised operator; the host says what it gives, which takes the same way.
func (v *vectorised) call(in *Interpreter, arguments Arguments) (Value, error) {
	found, err := in.overloadedArguments(arguments)
	if err != nil || len(found.classes) > 0 {
		return nil, cmp.Or(err, unsupported(reasonTransform, "%s, of tensors with a __torch_function__", v.function.(*Builtin).name))
	}
	operator := text(v.function.(*Builtin).name)
	arguments.Positional = append([]Value{operator, v.inDims, v.outDims}, arguments.Positional...)
	return in.torchCall("fusee._transforms.vmap", arguments)
}
