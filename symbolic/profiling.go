package symbolic

import "strings"

// profilerLabel is a torch.profiler.record_function: while no profiler runs it does nothing, and that none runs is guarded.
type profilerLabel struct {
	class     *Class
	arguments Arguments
	entered   bool // and not left
}

const profilerLabelClass = "torch.autograd.profiler.record_function"

func (v *profilerLabel) typeName() string { return profilerLabelClass }

func (v *profilerLabel) getAttribute(_ *Interpreter, name string) (Value, error) {
	return nil, unsupported(reasonAttribute, "%s.%s", profilerLabelClass, name)
}

// constructLabel models record_function(name, args) of strings; calls that Python would refuse are left to it.
func (in *Interpreter) constructLabel(c *Class, arguments Arguments) (Value, bool, error) {
	if len(arguments.Positional) == 0 || len(arguments.Positional) > 2 || len(arguments.Keywords) > 0 || c.id == 0 {
		return nil, false, nil
	}
	running, err := in.given("fusee._helpers.profiler_runs", &existing{id: c.id})
	if err != nil {
		return nil, true, err
	}
	if flag, ok := running.(*Constant); !ok || flag.Value != false {
		return nil, true, unsupported(reasonGlobalState, "a profiler runs")
	}
	return &profilerLabel{class: c, arguments: arguments}, true, nil
}

// labelMethod is __enter__ or __exit__ of a label: that of this capture, or for the exit one that Python entered before a break.
func (in *Interpreter) labelMethod(name string, arguments Arguments) (Value, bool, error) {
	if len(arguments.Positional) == 0 {
		return nil, false, nil
	}
	self, err := in.real(arguments.Positional[0])
	if err != nil {
		return nil, true, err
	}
	switch label := self.(type) {
	case *profilerLabel:
		if label.entered = name == "record_function.__enter__"; label.entered {
			return label, true, nil
		}
		return none(), name == "record_function.__exit__", nil
	case *Instance:
		if label.object == nil || name != "record_function.__exit__" {
			return nil, false, nil
		}
		running, err := in.given("fusee._helpers.profiler_runs", &existing{id: label.class.id})
		if flag, ok := running.(*Constant); err != nil || !ok || flag.Value != false {
			return nil, false, err
		}
		return none(), true, nil // what it holds is closed where it dies
	}
	return nil, false, nil
}

// buildLabel makes a label in Python, entered where the program has entered it.
func (cg *generator) buildLabel(v *profilerLabel) error {
	arguments := append([]Value{boolean(v.entered)}, v.arguments.Positional...)
	return cg.helper("profiler_label", arguments...)
}

// ofOptimizers tells code of torch.optim, which asks for breaks around its steps that only compilers need that write changed tensors back at
// the end of a graph.
func ofOptimizers(module string) bool { return strings.HasPrefix(module+".", "torch.optim.") }

// undisabled gives the function inside of a wrapper that says nothing to a capture: torch's that disable compilers around functions of
// torch.optim, of which the second comes with torch.compile's first use, Dynamo's around the making of modules, and those that set its own
// options, as exported programs have them around their checks; nil for others.
func (in *Interpreter) undisabled(f *Function) (Value, error) {
	variable := wrappedVariables[f.code.QualName]
	index := indexOf(f.code.LocalsPlusNames, variable) - (len(f.code.LocalsPlusNames) - len(f.closure))
	if variable == "" || index < 0 || index >= len(f.closure) {
		return nil, nil
	}
	wrapped, err := in.real(f.closure[index].content)
	if inner, ok := wrapped.(*Function); err == nil && ok && (variable != "fn" || ofOptimizers(inner.module)) {
		return inner, nil
	}
	return nil, err
}

// wrappedVariables names the cell in which a wrapper that undisabled knows keeps what it calls. Dynamo's wrappers around Module.__init__ and
// Module.__setstate__ only note for Dynamo itself when a module was made, which its own captures leave out as well.
var wrappedVariables = map[string]string{
	"_disable_dynamo.<locals>.inner":                            "fn",
	"DisableContext.__call__.<locals>._fn":                      "fn",
	"install_generation_tagging_init.<locals>.patched_init":     "init",
	"install_generation_tagging_init.<locals>.patched_setstate": "setstate",
	"wrap_dunder_call_ctx_manager.<locals>.inner":               "func",
}
