package symbolic

import "fusee/graph"

// useDeterministicAlgorithms keeps the change as a node of the graph: the operations behind it run under the new mode.
const useDeterministicAlgorithms = "torch.use_deterministic_algorithms"

// setDeterministic is torch.use_deterministic_algorithms.
func (in *Interpreter) setDeterministic(arguments Arguments) (Value, error) {
	values, ok := bindNamed(arguments, "mode", "warn_only")
	if !ok || values[0] == nil || len(arguments.Positional) > 1 {
		return nil, unsupported(reasonGlobalState, "use_deterministic_algorithms")
	}
	if values[1] == nil {
		values[1] = boolean(false)
	}
	settings := make([]bool, len(values))
	for i, value := range values {
		real, err := in.real(value)
		if err != nil {
			return nil, err
		}
		constant, ok := real.(*Constant)
		if ok {
			settings[i], ok = constant.Value.(bool)
		}
		if !ok {
			return nil, unsupported(reasonGlobalState, "use_deterministic_algorithms")
		}
	}
	in.activity++
	in.pythonOnly = true
	in.deterministic = map[string]Value{
		"_get_deterministic_algorithms":           boolean(settings[0]),
		"_get_deterministic_algorithms_warn_only": boolean(settings[1]),
	}
	node := in.graph.Append(useDeterministicAlgorithms, []graph.Value{settings[0]}, []graph.Keyword{{Name: "warn_only", Value: settings[1]}}, nil, nil)
	node.Result = nil
	return none(), nil
}

// deterministicQuestion reads what was set: by the capture, or before the call, in which case every entry is guarded by it.
func (in *Interpreter) deterministicQuestion(getter string) (Value, error) {
	if value := in.deterministic[getter]; value != nil {
		return value, nil
	}
	outcome, err := in.session.Evaluate(nameWire("torch._C."+getter), nil, nil)
	if err != nil {
		return nil, err
	}
	return in.outcomeValue(outcome)
}
