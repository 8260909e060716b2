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

// scanCall is torch's scan by a function: of points, it runs in rounds over all pairs of neighbours, as eager does behind the operator. Of
// anything else, the function is vectorised, which is left to Python as a whole.
func (in *Interpreter) scanCall(name string, arguments Arguments) (Value, bool, error) {
	if name == "associative_scan" {
		generic, err := in.vectorises(arguments)
		if err == nil && generic {
			err = unsupported(reasonHigherOrder, "a scan by a function that is vectorised")
		}
		return nil, err != nil, err
	}
	if name != "AssociativeScanOp.__call__" || len(arguments.Positional) < 3 {
		return nil, false, nil
	}
	function, err := in.namedObject("torch._higher_order_ops.associative_scan.generic_associative_scan")
	if err != nil {
		return nil, true, err
	}
	keywords := arguments.Keywords
	if given := arguments.Positional; len(given) > 3 {
		keywords = append([]KeywordArgument{{"additional_inputs", given[3]}}, keywords...)
	}
	return modelled(in.tailCall(function, Arguments{arguments.Positional[1:3], keywords}))
}

// vectorises says whether a scan is called with the mode that vectorises its function.
func (in *Interpreter) vectorises(arguments Arguments) (bool, error) {
	given := slices.Clone(arguments.Positional)
	for _, keyword := range arguments.Keywords {
		given = append(given, keyword.Value)
	}
	for _, value := range given {
		value, err := in.real(value)
		if mode, _ := stringOf(value); err != nil || mode == "generic" {
			return true, err
		}
	}
	return false, nil
}
