package symbolic

import "slices"

// controlModule holds torch's control-flow operators as plain Python, in which capture goes on.
const controlModule = "fusee._control"

const conditionalName = "torch._higher_order_ops.cond.cond"

// conditionalCall is torch.cond. Where a tensor decides, the graph ends there and goes on in the way that is taken; both ways are captured when
// they are taken first. Other predicates than torch takes are left to it.
func (in *Interpreter) conditionalCall(arguments Arguments) (Value, bool, error) {
	predicate := Value(nil)
	if len(arguments.Positional) > 0 {
		predicate = arguments.Positional[0]
	}
	for _, keyword := range arguments.Keywords {
		if keyword.Name == "pred" {
			predicate = keyword.Value
		}
	}
	predicate, err := in.look(orNone(predicate))
	if err != nil {
		return nil, true, err
	}
	tensor, isTensor := predicate.(*Tensor)
	isNumber := slices.Contains([]string{"bool", "int", "float"}, predicate.typeName())
	if !isNumber && !(isTensor && !tensor.wraps()) {
		return nil, false, nil
	}
	function, err := in.namedObject(controlModule + ".cond")
	if err != nil {
		return nil, true, err
	}
	return modelled(in.tailCall(function, arguments))
}
