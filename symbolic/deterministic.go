package symbolic

import (
	"strings"

	"fusee/graph"
)

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
	return in.askHost(nameWire("torch._C."+getter), nil, nil)
}

// setDefaultDevice is a node of the graph likewise, for torch.set_default_device where new tensors were made on the CPU before and are made
// there afterwards: all that changes is torch's own state. Whatever else is asked for is left to the function itself.
const setDefaultDevice = "torch.set_default_device"

func (in *Interpreter) setDefaultDevice(arguments Arguments) (Value, bool, error) {
	device, err := in.plainDefaultDevice(arguments)
	if err != nil {
		return nil, true, err
	}
	if device == nil && in.defaultDeviceSet {
		return nil, true, unsupported(reasonGlobalState, "set_default_device")
	}
	if device == nil {
		return nil, false, nil
	}
	in.activity++
	in.pythonOnly = true
	in.defaultDeviceSet = true
	value, err := graphConstant(device)
	if err != nil {
		return nil, true, err
	}
	node := in.graph.Append(setDefaultDevice, []graph.Value{value}, nil, nil, nil)
	node.Result = nil
	return none(), true, nil
}

// plainDefaultDevice is the argument where it is "cpu" or None, with no function mode on before; else nil.
func (in *Interpreter) plainDefaultDevice(arguments Arguments) (*Constant, error) {
	values, ok := bindNamed(arguments, "device")
	if !ok || values[0] == nil || in.request.FunctionModes > 0 {
		return nil, nil
	}
	device, err := in.real(values[0])
	if err != nil {
		return nil, err
	}
	if constant, ok := device.(*Constant); ok && (constant.Value == "cpu" || isNone(device)) {
		return constant, nil
	}
	return nil, nil
}

// setsState tells nodes that set a state of the process for what runs behind them.
func setsState(node *graph.Node) bool {
	return node.Target == useDeterministicAlgorithms || node.Target == setDefaultDevice
}

// functionModeQuestion answers from the stack of function modes that the capture began under, which its entry is guarded by.
func (in *Interpreter) functionModeQuestion(name string) (Value, error) {
	if name == "_len_torch_function_stack" && !in.defaultDeviceSet {
		return integer(in.request.FunctionModes), nil
	}
	if in.defaultDeviceSet || in.request.FunctionModes > 0 {
		return nil, unsupported(reasonGlobalState, "%s", name)
	}
	return boolean(false), nil
}

// inTorch tells code of torch itself, where it makes no difference whether a mode that only calls the function is asked.
func (in *Interpreter) inTorch() bool {
	return in.frame != nil && in.frame.function != nil && strings.HasPrefix(in.frame.function.module+".", "torch.")
}
