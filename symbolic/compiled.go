package symbolic

// compiledFunction is what fusee.compile gave within the capture: calls of it are captured with all the rest, and where it is needed as an
// object Python makes it.
type compiledFunction struct {
	function *Function
	born     int // the step that made it
}

func (v *compiledFunction) typeName() string { return "fusee._shim.CompiledFunction" }

func (v *compiledFunction) call(in *Interpreter, arguments Arguments) (Value, error) {
	return in.tailCall(v.function, arguments)
}

// compileCall is fusee.compile of a plain function: the capture around it decides what becomes of its graph.
func (in *Interpreter) compileCall(arguments Arguments) (Value, bool, error) {
	if len(arguments.Positional) != 1 {
		return nil, false, nil
	}
	target, err := in.real(arguments.Positional[0])
	if err != nil {
		return nil, true, err
	}
	function, ok := target.(*Function)
	if !ok {
		return nil, false, nil
	}
	for _, keyword := range arguments.Keywords {
		if done, err := in.plainOption(keyword); !done || err != nil {
			return nil, false, err
		}
	}
	return &compiledFunction{function, in.frame.step}, true, nil
}

// plainOption tells options of fusee.compile that mean nothing to a function whose caller is captured: it has no graph, mode or backend of its
// own, but settings and fullgraph could show.
func (in *Interpreter) plainOption(keyword KeywordArgument) (bool, error) {
	value, err := in.real(keyword.Value)
	if err != nil {
		return false, err
	}
	switch keyword.Name {
	case "backend", "mode", "dynamic":
		return true, nil
	case "fullgraph", "disable", "options":
		constant, ok := value.(*Constant)
		return ok && (constant.Value == false || isNone(constant)), nil
	}
	return false, nil
}
