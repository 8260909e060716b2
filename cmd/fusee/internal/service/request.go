package service

import (
	"fusee/autograd"
	"fusee/bytecode"
	"fusee/graph"
	"fusee/guards"
	"fusee/internal/slice"
	"fusee/symbolic"
	"fusee/trace"
	"github.com/cockroachdb/errors"
)

// request is a compile or lower request, read from its wire form (docs/contracts.md, section 1).
type request struct {
	capture      symbolic.Request
	python       bool // every graph runs in Python, for another backend
	libraryDraws bool // eager's random numbers on a GPU are PyTorch's to draw: it deals them otherwise, or plans are recorded as CUDA graphs
	architecture string
	settings     bytecode.Object
	derived      derivation
}

// derivation is what was derived from a graph while its guards were written.
type derivation struct {
	from     *graph.Graph
	training *autograd.Training
	whole    *autograd.Whole
	err      error
}

func parseRequest(wire bytecode.Object) (*request, error) {
	parsed := parseState(wire)
	function, ok := trace.Field(wire, "function").(int64)
	if !ok {
		return nil, errors.New("a compile request names no function")
	}
	parsed.capture.Function = trace.ObjectID(function)
	for _, item := range trace.Items(trace.Field(wire, "parameters")) {
		reference, err := trace.ParseReference(item)
		if err != nil {
			return nil, err
		}
		parsed.capture.Parameters = append(parsed.capture.Parameters, reference)
	}
	parsed.capture.Options.FullGraph, _ = trace.Field(wire, "fullgraph").(bool)
	parsed.python = trace.Text(wire, "backend") == "python"
	mode := trace.Text(wire, "mode")
	library, _ := trace.Field(wire, "library_draws").(bool)
	parsed.libraryDraws = library || mode == "reduce-overhead" || mode == "max-autotune"
	parsed.capture.Options.AllNodes = parsed.python
	dynamic, err := parseDynamic(wire)
	parsed.capture.Options.Dynamic = dynamic
	return parsed, err
}

// parseDynamic reads which numbers and sizes may differ from call to call.
func parseDynamic(wire bytecode.Object) (symbolic.Dynamic, error) {
	asked, given := trace.Field(wire, "dynamic").(bool)
	marked := trace.Text(wire, "dynamic") == "marked"
	dynamic := symbolic.Dynamic{Off: marked || given && !asked, Marked: marked, All: given && asked, Numbers: map[string]bool{}, Tensors: map[string]symbolic.ChangedTensor{}}
	for _, item := range trace.Items(trace.Field(wire, "changed")) {
		parts := trace.Items(item)
		if len(parts) != 2 {
			return dynamic, errors.New("a change in a compile request is malformed")
		}
		key, err := pathKey(parts[0])
		if err != nil {
			return dynamic, err
		}
		if dimensions := trace.Items(parts[1]); len(dimensions) == 2 {
			dynamic.Tensors[key] = symbolic.ChangedTensor{Sizes: integers(dimensions[0]), Strides: integers(dimensions[1])}
		} else {
			dynamic.Numbers[key] = true
		}
	}
	return dynamic, nil
}

func pathKey(path bytecode.Object) (string, error) {
	accessors, err := slice.TryMap(trace.Items(path), parseAccessor)
	return guards.PathKey(accessors), err
}

func parseAccessor(wired bytecode.Object) (accessor guards.Accessor, err error) {
	fields := trace.Items(wired)
	if len(fields) == 0 || len(fields) > 2 {
		return accessor, errors.New("an accessor in a compile request is malformed")
	}
	accessor.Kind, _ = fields[0].(string)
	if len(fields) == 2 {
		accessor.Argument = fields[1]
	}
	return accessor, nil
}

func integers(list bytecode.Object) []int {
	var result []int
	for _, item := range trace.Items(list) {
		n, _ := item.(int64)
		result = append(result, int(n))
	}
	return result
}

// parseState reads what both kinds of request have: torch's global state and the settings.
// lowered is the state that lowered operations run under: their casts are operations too.
func (r *request) lowered() graph.State {
	state := r.capture.State
	state.Autocast = false
	return state
}

// parseAutocast reads the state of autocast; where a request does not tell, it is as torch starts.
func parseAutocast(state bytecode.Object) symbolic.Autocast {
	autocast := symbolic.Autocast{Cache: true}
	for _, item := range trace.Items(trace.Field(state, "autocast_devices")) {
		fields := trace.Items(item)
		if len(fields) != 3 {
			continue
		}
		device := symbolic.AutocastDevice{}
		device.Type, _ = fields[0].(string)
		device.Enabled, _ = fields[1].(bool)
		device.DType, _ = fields[2].(string)
		autocast.Devices = append(autocast.Devices, device)
	}
	if cache, given := trace.Field(state, "autocast_cache").(bool); given {
		autocast.Cache = cache
	}
	autocast.Nesting, _ = trace.Field(state, "autocast_nesting").(int64)
	return autocast
}

func parseState(wire bytecode.Object) *request {
	state := trace.Field(wire, "state")
	parsed := &request{architecture: trace.Text(state, "cuda_arch"), settings: trace.Field(wire, "settings")}
	parsed.capture.Handling, _ = trace.Field(state, "handling").(bool)
	parsed.capture.FunctionsDisabled, _ = trace.Field(state, "functions_disabled").(bool)
	parsed.capture.FunctionModes, _ = trace.Field(state, "function_modes").(int64)
	parsed.capture.State.GradMode, _ = trace.Field(state, "grad").(bool)
	parsed.capture.State.InferenceMode, _ = trace.Field(state, "inference").(bool)
	parsed.capture.State.Autocast, _ = trace.Field(state, "autocast").(bool)
	parsed.capture.Autocast = parseAutocast(state)
	if dtype, ok := graph.ParseDType(trace.Text(state, "default_dtype")); ok {
		parsed.capture.State.DefaultDType = dtype
	}
	return parsed
}
