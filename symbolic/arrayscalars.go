package symbolic

import (
	"cmp"
	"strings"

	"fusee/graph"
)

// arrayScalar is a scalar of NumPy that a program reads from an array: to the graph it is a tensor of no dimension with memory of its own.
// Tensors can be made of it; all else is left to Python.
type arrayScalar struct{ tensor *Tensor }

func (v *arrayScalar) typeName() string { return "numpy." + v.tensor.meta.DType.String() }

// scalarItem is an item of an array, which keeps its value when the array is written to.
func (in *Interpreter) scalarItem(item *Array) (Value, error) {
	tensor, ok, err := as[*Tensor](in.torchCall("Tensor.clone", Arguments{Positional: []Value{item.tensor}}))
	if !ok {
		return nil, cmp.Or(err, unsupported(reasonTensorCall, "an item of a numpy.ndarray"))
	}
	return &arrayScalar{tensor}, nil
}

func (v *arrayScalar) getAttribute(_ *Interpreter, name string) (Value, error) {
	return nil, unsupported(reasonAttribute, "%s.%s", v.typeName(), name)
}

func (v *arrayScalar) getItem(*Interpreter, Value) (Value, error) {
	return nil, unsupported(reasonItem, "%s[...]", v.typeName())
}

func (v *arrayScalar) truth(*Interpreter) (bool, error) {
	return false, unsupported(reasonBranch, "%s", v.typeName())
}

// holdsArray tells arrays and scalars of NumPy, whose comparison with == depends on what they hold.
func holdsArray(value Value) bool {
	switch v := value.(type) {
	case *arrayScalar, *arrayNumber:
		return true
	case *Opaque:
		return strings.HasPrefix(v.kind, "numpy.") && !strings.HasPrefix(v.kind, "numpy.dtype")
	}
	return isArrayValue(value)
}

// legacyTensor is torch.LongTensor and the like of scalars of NumPy of just its dtype, as in torch.LongTensor([a[0], a[1]]).
func (in *Interpreter) legacyTensor(c *Class, arguments Arguments) (Value, bool, error) {
	dtype, known := map[string]graph.DType{"torch.LongTensor": graph.Int64, "torch.IntTensor": graph.Int32, "torch.FloatTensor": graph.Float32,
		"torch.DoubleTensor": graph.Float64}[c.name]
	argument, ok := in.single(arguments)
	if !ok || !known {
		return nil, false, nil
	}
	value, err := in.real(argument)
	if err != nil {
		return nil, true, err
	}
	list, ok := value.(*List)
	if !ok {
		return nil, false, nil
	}
	items, err := list.contents(in)
	if err != nil || len(items) == 0 {
		return nil, err != nil, err
	}
	tensors := make([]Value, len(items))
	for i, item := range items {
		scalar, isScalar := item.(*arrayScalar)
		if !isScalar || scalar.tensor.meta.DType != dtype {
			return nil, false, nil
		}
		tensors[i] = scalar.tensor
	}
	return modelled(in.torchCall("torch.stack", Arguments{Positional: []Value{newList(tensors)}}))
}
