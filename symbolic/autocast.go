package symbolic

import (
	"strings"

	"fusee/bytecode"
	"fusee/graph"
	"fusee/internal/slice"
)

// Autocast is the state of torch.autocast on a thread.
type Autocast struct {
	Devices []AutocastDevice
	Cache   bool
	Nesting int64 // blocks that were entered and not left

	clears int // how often the capture has emptied the cache
}

// AutocastDevice is the state for one type of device, such as "cpu"; DType is the name of a dtype, such as "bfloat16".
type AutocastDevice struct {
	Type    string
	Enabled bool
	DType   string
}

// clone copies the state, so that the capture can change its own.
func (a Autocast) clone() Autocast {
	a.Devices = append([]AutocastDevice(nil), a.Devices...)
	return a
}

func (a *Autocast) device(name string) *AutocastDevice {
	for i := range a.Devices {
		if a.Devices[i].Type == name {
			return &a.Devices[i]
		}
	}
	return nil
}

func (a *Autocast) enabled() bool {
	for _, device := range a.Devices {
		if device.Enabled {
			return true
		}
	}
	return false
}

// castCache is the number of the cache that operations keep casts in; 0 where they keep none.
func (a *Autocast) castCache() int {
	if !a.Cache || !a.enabled() {
		return 0
	}
	return a.clears + 1
}

// wire writes the state for a question about an operation; nil where nothing is cast.
func (a *Autocast) wire() bytecode.Object {
	if !a.enabled() {
		return nil
	}
	return bytecode.Tuple(slice.Map(a.Devices, func(device AutocastDevice) bytecode.Object {
		return bytecode.Tuple{device.Type, device.Enabled, device.DType}
	}))
}

// autocastCall models the functions that torch.autocast is made of. Those that change the state are nodes of the graph as well, for where
// Python runs it, under torch's own; in a plan the casts are operations.
func (in *Interpreter) autocastCall(name string, arguments Arguments) (Value, bool, error) {
	values, err := in.realAll(arguments.Positional)
	if err != nil || len(arguments.Keywords) > 0 {
		return nil, false, err
	}
	switch name {
	case "is_autocast_cache_enabled":
		return boolean(in.autocast.Cache), true, nil
	case "is_any_autocast_enabled":
		return boolean(in.autocast.enabled()), true, nil
	case "autocast_increment_nesting":
		return in.nestAutocast(1), true, nil
	case "autocast_decrement_nesting":
		return in.nestAutocast(-1), true, nil
	case "clear_autocast_cache":
		in.autocast.clears++
		return none(), true, in.changeAutocast(name, nil)
	case "set_autocast_cache_enabled":
		if enabled, ok := truthOf(values); ok {
			in.autocast.Cache = enabled
			return none(), true, in.changeAutocast(name, []graph.Value{enabled})
		}
	case "is_autocast_enabled", "is_autocast_cpu_enabled", "get_autocast_dtype", "get_autocast_cpu_dtype", "get_autocast_gpu_dtype":
		return in.autocastQuestion(name, values)
	case "set_autocast_enabled", "set_autocast_dtype":
		return in.setAutocast(name, values)
	}
	return nil, true, unsupported(reasonGlobalState, "%s", name)
}

// isAutocastFunction tells the functions of torch that read or change the state of autocast.
func isAutocastFunction(name string) bool {
	return strings.Contains(name, "autocast") && name != "_is_autocast_available"
}

func (in *Interpreter) nestAutocast(by int64) Value {
	in.activity++
	in.autocast.Nesting += by
	return integer(in.autocast.Nesting)
}

func truthOf(values []Value) (truth, ok bool) {
	if len(values) != 1 {
		return false, false
	}
	return constantAs[bool](values[0])
}

// autocastQuestion answers whether and to what autocast casts on a device: the one that is given, or the one that the function stands for.
func (in *Interpreter) autocastQuestion(name string, values []Value) (Value, bool, error) {
	wanted := "cuda"
	if strings.Contains(name, "cpu") {
		wanted = "cpu"
	}
	if len(values) == 1 {
		wanted, _ = stringOf(values[0])
	}
	device := in.autocast.device(wanted)
	if device == nil || len(values) > 1 {
		return nil, true, unsupported(reasonGlobalState, "%s of %s", name, wanted)
	}
	if strings.HasPrefix(name, "is_") {
		return boolean(device.Enabled), true, nil
	}
	dtype, ok := graph.ParseDType(device.DType)
	if !ok {
		return nil, true, unsupported(reasonGlobalState, "autocast to %s", device.DType)
	}
	return dtypeValue(dtype), true, nil
}

// setAutocast turns autocast on or off on a device, or sets what it casts to.
func (in *Interpreter) setAutocast(name string, values []Value) (Value, bool, error) {
	wanted := "cuda"
	if len(values) == 2 {
		wanted, _ = stringOf(values[0])
	}
	device := in.autocast.device(wanted)
	if device == nil || len(values) == 0 {
		return nil, true, unsupported(reasonGlobalState, "%s of %s", name, wanted)
	}
	last := values[len(values)-1]
	if library, ok := last.(*LibraryValue); ok && name == "set_autocast_dtype" && library.kind == "dtype" {
		dtype, known := graph.ParseDType(library.text)
		if !known {
			return nil, true, unsupported(reasonGlobalState, "autocast to %s", library.text)
		}
		device.DType = library.text
		return none(), true, in.changeAutocast(name, []graph.Value{wanted, dtype})
	}
	enabled, ok := truthOf([]Value{last})
	if !ok || name != "set_autocast_enabled" {
		return nil, true, unsupported(reasonGlobalState, "%s", name)
	}
	device.Enabled = enabled
	return none(), true, in.changeAutocast(name, []graph.Value{wanted, enabled})
}

// changeAutocast notes a change for the operations that follow.
func (in *Interpreter) changeAutocast(name string, arguments []graph.Value) error {
	in.activity++
	in.state.Autocast = in.autocast.enabled()
	node := in.graph.Append("torch."+name, arguments, nil, nil, nil)
	node.Result = nil
	return nil
}

// writeAutocast sets the state as the program has left it.
func (cg *generator) writeAutocast() error {
	now, before := &cg.in.autocast, &cg.in.request.Autocast
	for i, device := range now.Devices {
		if device.Enabled != before.Devices[i].Enabled {
			cg.callState("torch.set_autocast_enabled", device.Type, device.Enabled)
		}
		if device.DType != before.Devices[i].DType {
			if err := cg.discard(cg.construct("torch.set_autocast_dtype", text(device.Type), &LibraryValue{kind: "dtype", text: device.DType})); err != nil {
				return err
			}
		}
	}
	if now.Cache != before.Cache {
		cg.callState("torch.set_autocast_cache_enabled", now.Cache)
	}
	for nesting := before.Nesting; nesting < now.Nesting; nesting++ {
		cg.callState("torch.autocast_increment_nesting")
	}
	for nesting := before.Nesting; nesting > now.Nesting; nesting-- {
		cg.callState("torch.autocast_decrement_nesting")
	}
	return nil
}

// callState calls a function of torch with constants for its effect.
func (cg *generator) callState(name string, arguments ...bytecode.Object) {
	cg.emit(bytecode.PushNull, 0)
	cg.placeholder("name", name)
	for _, argument := range arguments {
		cg.loadConst(argument)
	}
	cg.call(len(arguments))
	cg.emit(bytecode.PopTop, 0)
}
