package symbolic

import (
	"strings"

	"fusee/bytecode"
)

// inspectPredicate answers the questions of the module inspect about classes and functions; handled is false for its other functions.
func (in *Interpreter) inspectPredicate(name string, arguments Arguments) (Value, bool, error) {
	if name == "unwrap" && len(arguments.Positional) == 1 {
		return in.unwrapCall(arguments)
	}
	value, ok, err := in.singleReal(arguments)
	if !ok || err != nil {
		return nil, ok, err
	}
	if _, opaque := value.(*Opaque); opaque {
		return nil, false, nil
	}
	function, isFunction := value.(*Function)
	_, isMethod := value.(*Method)
	switch name {
	case "signature":
		if isFunction {
			return in.signatureOf(function)
		}
	case "isclass":
		_, isClass := value.(*Class)
		return boolean(isClass), true, nil
	case "isfunction":
		return boolean(isFunction), true, nil
	case "ismethod":
		return boolean(isMethod), true, nil
	case "isgeneratorfunction":
		return in.hasCodeFlag(value, bytecode.FlagGenerator)
	case "iscoroutinefunction":
		return in.hasCodeFlag(value, bytecode.FlagCoroutine)
	case "isasyncgenfunction":
		return in.hasCodeFlag(value, bytecode.FlagAsyncGenerator)
	}
	return nil, false, nil
}

// maxWrappers bounds the chain of functions that wrap each other, which may be a loop.
const maxWrappers = 100

// unwrapCall is inspect.unwrap: it follows __wrapped__ until there is none or the function given as stop says so.
func (in *Interpreter) unwrapCall(arguments Arguments) (Value, bool, error) {
	function := arguments.Positional[0]
	for range maxWrappers {
		wrapped, err := in.optionalAttribute(function, "__wrapped__")
		if err != nil || wrapped == nil {
			return function, true, err
		}
		for _, keyword := range arguments.Keywords {
			stop, err := in.call(keyword.Value, Arguments{Positional: []Value{function}})
			if err != nil {
				return nil, true, err
			}
			if stops, err := in.truth(stop); err != nil || stops {
				return function, true, err
			}
		}
		function = wrapped
	}
	return nil, true, unsupported(reasonOpaqueCall, "a loop of functions that wrap each other")
}

// hasCodeFlag looks at the code below bound methods and partial objects, as inspect does.
func (in *Interpreter) hasCodeFlag(value Value, flag bytecode.CodeFlags) (Value, bool, error) {
	for {
		var err error
		switch v := value.(type) {
		case *Function:
			return boolean(v.code.Flags&flag != 0), true, nil
		case *Method:
			value, err = in.real(v.function)
		case *descriptorValue:
			if v.kind != "partial" {
				return boolean(false), true, nil
			}
			value, err = in.real(v.parts[0])
		default:
			return boolean(false), true, nil
		}
		if err != nil {
			return nil, true, err
		}
	}
}

// renameFrames gives a new function's code another name, as torch does for its decorators so that tracebacks tell them apart.
func (in *Interpreter) renameFrames(arguments Arguments) (Value, bool, error) {
	if len(arguments.Positional) != 2 {
		return nil, false, nil
	}
	values, err := in.realAll(arguments.Positional)
	if err != nil {
		return nil, true, err
	}
	function, ok := values[0].(*Function)
	name, isText := stringOf(values[1])
	if !ok || !isText || function.object != nil {
		return nil, false, nil
	}
	in.activity++
	renamed := *function.code
	renamed.Name, renamed.QualName = name, name
	function.code = &renamed
	return none(), true, nil
}

// legacyTypeName is the text that stands for a legacy tensor class such as torch.HalfTensor in Tensor.type.
func legacyTypeName(c *Class) (string, bool) {
	ok := strings.HasPrefix(c.name, "torch.") && strings.HasSuffix(c.name, "Tensor") && c.name != "torch.Tensor" && len(c.baseNames) == 2
	return c.name, ok
}

// classDict is the __dict__ of a class, which may be read only.
type classDict struct{ owner *Class }

func (v *classDict) typeName() string { return "mappingproxy" }

// lookup finds the raw attribute, nil where the class itself has none of that name; what a program may change is guarded.
func (v *classDict) lookup(in *Interpreter, key Value) (Value, error) {
	name, ok, err := in.textIn(key)
	if err != nil || !ok {
		return nil, err
	}
	value, err := in.ownAttribute(v.owner, name)
	if err == nil && value == nil && v.owner.made == nil && v.owner.id != 0 && userClass(v.owner.name) {
		in.objectSource(v.owner.id).Child("dict", nil).Require(in.reason(), "absent", name)
	}
	return value, err
}

func (v *classDict) contains(in *Interpreter, item Value) (bool, error) {
	value, err := v.lookup(in, item)
	if err != nil || value == nil {
		return false, err
	}
	_, err = in.real(value) // what it is gets guarded, and with it that it is there
	return true, err
}

func (v *classDict) getItem(in *Interpreter, key Value) (Value, error) {
	value, err := v.lookup(in, key)
	if err == nil && value == nil {
		err = in.raiseKeyError(key)
	}
	return value, err
}

func (v *classDict) getAttribute(in *Interpreter, name string) (Value, error) {
	if name == "get" {
		return &Builtin{name: "mappingproxy.get", self: v}, nil
	}
	return nil, unsupported(reasonAttribute, "mappingproxy.%s", name)
}

// get is mappingproxy.get.
func (v *classDict) get(in *Interpreter, arguments Arguments) (Value, bool, error) {
	values := arguments.Positional
	if len(values) < 1 || len(values) > 2 || len(arguments.Keywords) > 0 {
		return nil, false, nil
	}
	value, err := v.lookup(in, values[0])
	if err == nil && value == nil {
		value = argumentOr(values, 1, none())
	}
	return value, true, err
}

func (v *classDict) iterate(*Interpreter) (iterator, error) {
	return nil, unsupported(reasonIteration, "the namespace of %s", v.owner.name)
}

func (v *classDict) length(*Interpreter) (int, error) {
	return 0, unsupported(reasonItem, "len of the namespace of %s", v.owner.name)
}
