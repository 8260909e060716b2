package symbolic

import (
	"slices"

	"fusee/graph"
)

// largestChosen bounds the ints among which a chosenNumber is chosen, and what it may become: single precision holds them all exactly.
const largestChosen = 1 << 24

// chosenNumber is min or max of tensors of no dimension and ints: the tensor or the int, by values that are not known. The graph holds it as a tensor
// either way. It may be added to and subtracted from others, and taken into tensors, which come out the same; all else tells the two apart, and
// capture breaks where the choice was made.
type chosenNumber struct {
	tensor *Tensor
	bound  int64 // no int that it may be is larger, nor is its negative
	born   int   // the step of the choice
}

func (v *chosenNumber) typeName() string { return "int or torch.Tensor" }

func (v *chosenNumber) toldApart() error {
	return unsupported(reasonBranch, "the value decides whether it is an int or a tensor")
}

func (v *chosenNumber) getAttribute(*Interpreter, string) (Value, error) { return nil, v.toldApart() }

func (v *chosenNumber) getItem(*Interpreter, Value) (Value, error) { return nil, v.toldApart() }

func (v *chosenNumber) truth(*Interpreter) (bool, error) { return false, v.toldApart() }

// isChosenNumber tells whether one of the values is an int or a tensor, nobody knows which.
func isChosenNumber(values ...Value) *chosenNumber {
	for _, value := range values {
		if chosen, ok := value.(*chosenNumber); ok {
			return chosen
		}
	}
	return nil
}

// chosenOperand is a value as the graph chooses and computes with it, with a bound of the ints that it may be; ok is false for others than choices
// know.
func chosenOperand(value Value) (operand Value, bound int64, ok bool) {
	switch v := value.(type) {
	case *chosenNumber:
		return v.tensor, v.bound, true
	case *Constant:
		n, isInt := v.Value.(int64)
		bound = max(n, -n)
		return v, bound, isInt && bound >= 0 && bound <= largestChosen
	case *Tensor:
		return v, 0, choosable(v) && holdsChosen(v) && !v.meta.RequiresGrad
	}
	return nil, 0, false
}

func holdsChosen(t *Tensor) bool {
	return t.meta.DType == graph.Float32 || t.meta.DType == graph.Float64
}

// mixedExtreme is min or max of tensors and ints; nil where they must be compared.
func (in *Interpreter) mixedExtreme(largest bool, items []Value) (Value, error) {
	operands, bound := make([]Value, len(items)), int64(0)
	var tensors []*Tensor
	for i, item := range items {
		value, err := in.look(item)
		if err != nil {
			return nil, err
		}
		operand, most, ok := chosenOperand(value)
		if !ok {
			return nil, nil
		}
		if tensor, isTensor := operand.(*Tensor); isTensor {
			tensors = append(tensors, tensor)
			if !alike(&tensor.meta, &tensors[0].meta) {
				return nil, nil
			}
		}
		operands[i], bound = operand, max(bound, most)
	}
	if len(tensors) == 0 {
		return nil, nil
	}
	best, err := in.chooseExtreme(largest, operands)
	tensor, ok := best.(*Tensor)
	if err != nil || !ok {
		return nil, err
	}
	in.choices = append(in.choices, &chosenTensor{tensor, tensors, in.frame.step})
	return &chosenNumber{tensor, bound, in.frame.step}, nil
}

// chooseExtreme is the first of the largest or least operands, as Python's max and min compare them.
func (in *Interpreter) chooseExtreme(largest bool, operands []Value) (Value, error) {
	row := comparisons[0]
	if largest {
		row = comparisons[4]
	}
	best := operands[0]
	for _, operand := range operands[1:] {
		better, err := in.compare(row, operand, best)
		if err != nil {
			return nil, err
		}
		if known, ok := better.(*Constant); ok {
			if constantTruth(known.Value) {
				best = operand
			}
			continue
		}
		if best, err = in.torchCall("torch.where", Arguments{Positional: []Value{better, operand, best}}); err != nil {
			return nil, err
		}
	}
	return best, nil
}

// chosenBinary is an operator on an int or tensor that was chosen; handled is false where no operand is one.
func (in *Interpreter) chosenBinary(row operatorRow, left, right Value) (Value, bool, error) {
	chosen := isChosenNumber(left, right)
	if chosen == nil {
		return nil, false, nil
	}
	for _, operand := range []Value{left, right} {
		if tensor, ok := operand.(*Tensor); ok {
			if !slices.Contains([]string{"add", "sub", "mul"}, row.function) || !takesChosen(tensor, chosen.tensor) {
				return nil, true, chosen.toldApart()
			}
			return modelled(in.tensorBinary(row, standIn(left), standIn(right)))
		}
	}
	a, boundLeft, okLeft := chosenOperand(left)
	b, boundRight, okRight := chosenOperand(right)
	bound := boundLeft + boundRight
	if row.function != "add" && row.function != "sub" || !okLeft || !okRight || bound > largestChosen {
		return nil, true, chosen.toldApart() // an int has no negative zero, which a product may be
	}
	value, err := in.torchCall("operator."+row.function, Arguments{Positional: []Value{a, b}})
	tensor, ok := value.(*Tensor)
	if err != nil || !ok {
		return nil, true, err
	}
	return &chosenNumber{tensor, bound, chosen.born}, true, nil
}

// takesChosen tells tensors that an int and a tensor of no dimension leave as they are in type, device and shape.
func takesChosen(t, chosen *Tensor) bool {
	plain := t.class == nil && !t.wraps() && !t.array && holdsChosen(t) && t.meta.Device == chosen.meta.Device
	return plain && (len(t.meta.Sizes) > 0 || t.meta.DType == chosen.meta.DType)
}

// standIn is the tensor that the graph holds for a chosen number, and any other value itself.
func standIn(value Value) Value {
	if chosen, ok := value.(*chosenNumber); ok {
		return chosen.tensor
	}
	return value
}
