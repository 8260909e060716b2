package symbolic

import (
	"fusee/bytecode"
	"fusee/trace"
)

// What no description tells and only a call can: the state of the autograd engine, and how much memory lies behind a tensor. The guard makes the
// same call again.

// askHost has the host evaluate a call and takes what it gives as a value.
func (in *Interpreter) askHost(callee bytecode.Object, positional, keywords []bytecode.Object) (Value, error) {
	outcome, err := in.session.Evaluate(callee, positional, keywords)
	if err != nil {
		return nil, err
	}
	return in.outcomeValue(outcome)
}

// madeByHost has the host call a function over references and names the object that it gives; 0 for what is none with an id.
func (in *Interpreter) madeByHost(function string, operand bytecode.Object) (trace.ObjectID, error) {
	outcome, err := in.session.Evaluate(nameWire(function), []bytecode.Object{operand}, nil)
	if err != nil {
		return 0, err
	}
	id, _ := outcome.Value.(trace.ObjectID)
	return id, nil
}

// findNamed asks the host for the object of a canonical name, by the identity function over it; the given error is for where there is none.
func (in *Interpreter) findNamed(canonical string, absent error) (trace.ObjectID, error) {
	id, err := in.madeByHost("builtins.max", bytecode.Tuple{"list", &bytecode.List{Items: []bytecode.Object{nameWire(canonical)}}})
	if err == nil && id == 0 {
		err = absent
	}
	return id, err
}

// hostAttribute has the host read an attribute and takes it as a value.
func (in *Interpreter) hostAttribute(id trace.ObjectID, name string) (Value, error) {
	outcome, err := in.session.GetAttribute(id, name)
	if err != nil {
		return nil, err
	}
	return in.outcomeValue(outcome)
}

// given asks the host what a function of one argument gives, and guards that it gives the same at the next call.
func (in *Interpreter) given(function string, argument *existing) (Value, error) {
	outcome, err := in.session.Evaluate(nameWire(function), []bytecode.Object{int64(argument.id)}, nil)
	if err != nil {
		return nil, err
	}
	if outcome.Raised != 0 {
		return nil, unsupported(reasonBuiltinCall, "%s", function)
	}
	value, err := in.outcomeValue(outcome)
	if err != nil {
		return nil, err
	}
	constant, ok := constantObject(value)
	if !ok {
		return nil, unsupported(reasonBuiltinCall, "%s", function)
	}
	source := argument.source
	if source == nil {
		source = in.objectSource(argument.id)
	}
	source.Require(in.reason(), "gives", function, constant)
	return value, nil
}

// stateOfEngine calls a function without arguments that reads a flag of the autograd engine.
func (in *Interpreter) stateOfEngine(f *Function) (Value, error) {
	return in.given("operator.call", f.object)
}

// storageValue is the memory behind a tensor that was there before the call.
type storageValue struct {
	tensor *Tensor
	born   int // the step that asked for it
}

func (v *storageValue) typeName() string { return "torch.UntypedStorage" }

func (v *storageValue) getAttribute(_ *Interpreter, name string) (Value, error) {
	switch name {
	case "nbytes", "size":
		return &storageSize{v.tensor}, nil
	}
	return nil, unsupported(reasonAttribute, "torch.UntypedStorage.%s", name)
}

// storageSize is a storage's method that gives its size in bytes.
type storageSize struct{ tensor *Tensor }

func (v *storageSize) typeName() string { return "builtin_function_or_method" }

func (v *storageSize) call(in *Interpreter, arguments Arguments) (Value, error) {
	if len(arguments.Positional)+len(arguments.Keywords) > 0 {
		return nil, in.raise("TypeError", "the size of a storage takes no arguments")
	}
	return in.given("fusee._helpers.storage_bytes", &existing{v.tensor.id, v.tensor.source})
}
