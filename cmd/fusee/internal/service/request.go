package service

import (
	"github.com/cockroachdb/errors"

	"fusee/bytecode"
	"fusee/graph"
	"fusee/symbolic"
	"fusee/trace"
)

// request is a compile or lower request, read from its wire form (docs/contracts.md, section 1).
type request struct {
	capture      symbolic.Request
	python       bool // every graph runs in Python, for another backend
	architecture string
	settings     bytecode.Object
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
	return parsed, nil
}

// parseState reads what both kinds of request have: torch's global state and the settings.
func parseState(wire bytecode.Object) *request {
	state := trace.Field(wire, "state")
	parsed := &request{architecture: trace.Text(state, "cuda_arch"), settings: trace.Field(wire, "settings")}
	parsed.capture.State.GradMode, _ = trace.Field(state, "grad").(bool)
	parsed.capture.State.InferenceMode, _ = trace.Field(state, "inference").(bool)
	parsed.capture.State.Autocast, _ = trace.Field(state, "autocast").(bool)
	if dtype, ok := graph.ParseDType(trace.Text(state, "default_dtype")); ok {
		parsed.capture.State.DefaultDType = dtype
	}
	return parsed
}
