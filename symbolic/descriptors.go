package symbolic

import (
	"strings"

	"fusee/bytecode"
)

// constructDescriptor is property(), classmethod() and staticmethod().
func (in *Interpreter) constructDescriptor(kind string, arguments Arguments) (Value, bool, error) {
	if kind != "property" {
		function, ok := in.single(arguments)
		if !ok {
			return nil, true, in.raise("TypeError", kind+" expected 1 argument, got "+integerText(len(arguments.Positional)))
		}
		return &descriptorValue{kind: kind, parts: []Value{function}}, true, nil
	}
	values, ok := bindNamed(arguments, "fget", "fset", "fdel", "doc")
	if !ok {
		return nil, true, unsupported(reasonBuiltinCall, "property with these arguments")
	}
	made := &descriptorValue{kind: kind}
	for _, value := range values[:3] {
		made.parts = append(made.parts, orNone(value))
	}
	doc, err := in.real(orNone(values[3]))
	if err != nil {
		return nil, true, err
	}
	if !isNone(doc) {
		made.doc = doc
	}
	return made, true, nil
}

// constructMethod is types.MethodType(function, self).
func (in *Interpreter) constructMethod(arguments Arguments) (Value, bool, error) {
	if len(arguments.Positional) != 2 || len(arguments.Keywords) > 0 {
		return nil, true, unsupported(reasonBuiltinCall, "method with these arguments")
	}
	values, err := in.realAll(arguments.Positional)
	if err != nil {
		return nil, true, err
	}
	able, _, err := in.callableCall(values[0])
	if err != nil {
		return nil, true, err
	}
	if truth, err := in.truth(able); err != nil || !truth {
		if err == nil {
			err = in.raise("TypeError", "first argument must be callable")
		}
		return nil, true, err
	}
	if isNone(values[1]) {
		return nil, true, in.raise("TypeError", "instance must not be None")
	}
	return &Method{self: values[1], function: values[0]}, true, nil
}

// descriptorMethod runs the methods of property objects; handled is false for others.
func (in *Interpreter) descriptorMethod(v *descriptorValue, method string, arguments Arguments) (Value, bool, error) {
	values := arguments.Positional
	if method == "__get__" && len(values) > 0 {
		return in.callGet(v, values)
	}
	if v.kind != "property" {
		return nil, false, nil
	}
	if method == "__set_name__" {
		if len(values) != 2 {
			return nil, true, in.raise("TypeError", "__set_name__() takes 2 positional arguments but "+integerText(len(values))+" were given")
		}
		name, err := in.real(values[1])
		if err == nil {
			v.name, _ = stringOf(name)
		}
		return none(), true, err
	}
	parts := map[string]int{"getter": 0, "setter": 1, "deleter": 2}
	part, ok := parts[method]
	if !ok || len(values) != 1 {
		return nil, false, nil
	}
	copied := &descriptorValue{kind: v.kind, parts: append([]Value{}, v.parts...), name: v.name}
	copied.parts[part] = values[0]
	if method != "getter" {
		copied.doc = v.doc
	}
	return copied, true, nil
}

// functionGet is the __get__ of a function called by name: a method of an object, or where a class alone is given the function itself.
func (in *Interpreter) functionGet(f *Function, values []Value) (Value, error) {
	given, err := in.realAll(values)
	switch {
	case err != nil:
		return nil, err
	case len(given) > 2:
		return nil, in.raise("TypeError", "__get__ expected at most 2 arguments, got "+integerText(len(given)))
	case !isNone(given[0]):
		return &Method{self: values[0], function: f}, nil
	case len(given) == 1 || isNone(given[1]):
		return nil, in.raise("TypeError", "__get__(None, None) is invalid")
	}
	return f, nil
}

// callGet is the __get__ of a descriptor called by name.
func (in *Interpreter) callGet(v *descriptorValue, values []Value) (Value, bool, error) {
	owner, err := in.real(values[0])
	if err != nil {
		return nil, true, err
	}
	class := (*Class)(nil)
	if len(values) > 1 {
		if given, err := in.real(values[1]); err != nil {
			return nil, true, err
		} else if c, ok := given.(*Class); ok {
			class = c
		}
	}
	if isNone(owner) {
		if v.kind == "property" || class == nil {
			return v, true, nil
		}
		return modelled(in.bindWrapper(v, owner, class))
	}
	if class == nil {
		if class, err = in.classOf(owner); err != nil {
			return nil, true, err
		}
	}
	return modelled(in.bindWrapper(v, owner, class))
}

// docOfGetter is the __doc__ of the function that reads a property; nil where there is none.
func (in *Interpreter) docOfGetter(v *descriptorValue) (Value, error) {
	getter, err := in.real(v.parts[0])
	if err != nil || isNone(getter) {
		return nil, err
	}
	return in.optionalAttribute(getter, "__doc__")
}

// docOfProperty is __doc__: what was given, or that of the getter.
func (in *Interpreter) docOfProperty(v *descriptorValue) (Value, error) {
	if v.doc != nil {
		return v.doc, nil
	}
	doc, err := in.docOfGetter(v)
	return orNone(doc), err
}

// raisePropertyGap is the AttributeError of a property that lacks what an access needs.
func (in *Interpreter) raisePropertyGap(v *descriptorValue, owner Value, role string) error {
	class, err := in.classOf(owner)
	if err != nil {
		return err
	}
	named := "property"
	if v.name != "" {
		named += " '" + v.name + "'"
	} else if v.object != nil {
		return unsupported(reasonAttribute, "a property without %s", role)
	}
	qualified := class.qualified
	if class.made == nil {
		if name, err := class.getAttribute(in, "__qualname__"); err == nil {
			if name, err = in.real(name); err == nil {
				qualified, _ = stringOf(name)
			}
		}
	}
	return in.raise("AttributeError", named+" of '"+qualified+"' object has no "+role)
}

// sentinelIterator is iter(callable, sentinel).
func (in *Interpreter) sentinelIterator(function, sentinel Value) (Value, bool, error) {
	real, err := in.real(function)
	if err != nil {
		return nil, true, err
	}
	able, _, err := in.callableCall(real)
	if err != nil {
		return nil, true, err
	}
	if truth, err := in.truth(able); err != nil || !truth {
		if err == nil {
			err = in.raise("TypeError", "iter(v, w): v must be callable")
		}
		return nil, true, err
	}
	done := false
	step := func(in *Interpreter) (Value, error) {
		if done {
			return nil, nil
		}
		item, err := in.call(real, Arguments{})
		if err != nil {
			done = done || isRaised(err, "StopIteration")
			if done {
				return nil, nil
			}
			return nil, err
		}
		same, err := in.sameOrEqual(sentinel, item)
		if err != nil || !same {
			return item, err
		}
		done = true
		return nil, nil
	}
	return &goIterator{kind: "callable_iterator", step: step, born: in.frame.step}, true, nil
}

// identityNumber is id() of an object: a number that capture does not know, but whose equality with others it does.
type identityNumber struct{ of Value }

func (v *identityNumber) typeName() string { return "int" }

// identityOf is id() of a value. A tuple that no variable holds may be the one that zip and the like give again with other items.
func (in *Interpreter) identityOf(value Value) (Value, error) {
	real, err := in.real(value)
	if err != nil {
		return nil, err
	}
	if tuple, ok := real.(*Tuple); ok && len(tuple.items) > 0 && !in.lives(tuple) {
		return nil, unsupported(reasonIdentity, "id() of a tuple that may be gone, or be used again")
	}
	return &identityNumber{real}, nil
}

// addressNumber is what a program computes from the id() of an object that the capture made: no number that is known, and of use as a hash only.
type addressNumber struct {
	of   Value
	born int // the step that computed it
}

func (v *addressNumber) typeName() string { return "int" }

func (v *addressNumber) truth(*Interpreter) (bool, error) {
	return false, unsupported(reasonIdentity, "a number computed from the id() of %s", v.of.typeName())
}

// computeAddress is an operator on id() of an object made during capture and an int; done is false for other operands.
func (in *Interpreter) computeAddress(row operatorRow, left, right Value) (Value, bool) {
	address, other := left, right
	if !isAddress(address) {
		address, other = right, left
	}
	n, isInt := constantInt(other)
	switch row.function {
	case "and_", "or_", "xor", "add", "sub", "mul":
	case "mod", "floordiv", "rshift":
		isInt = isInt && n > 0 && address == left
	default:
		isInt = false
	}
	if !isInt {
		return nil, false
	}
	switch v := address.(type) {
	case *identityNumber:
		if instance, ok := v.of.(*Instance); ok && instance.object == nil {
			return &addressNumber{instance, in.frame.step}, true
		}
	case *addressNumber:
		return v, true
	}
	return nil, false
}

// isAddress tells id() and what was computed from it.
func isAddress(value Value) bool {
	switch value.(type) {
	case *identityNumber, *addressNumber:
		return true
	}
	return false
}

// equalIdentities compares two results of id(); done is false where one is none.
func (in *Interpreter) equalIdentities(left, right Value) (equal, done bool, err error) {
	a, okLeft := left.(*identityNumber)
	b, okRight := right.(*identityNumber)
	if !okLeft || !okRight {
		return false, false, nil
	}
	equal, err = in.identical(a.of, b.of)
	if err == nil && !equal && !(in.lives(a.of) && in.lives(b.of)) {
		err = unsupported(reasonIdentity, "id() of an object that may be gone, whose number another one may have")
	}
	return equal, true, err
}

// numbersOfIdentities puts the numbers themselves for results of id() that the program computes with: their objects must be the same ones again.
func (in *Interpreter) numbersOfIdentities(left, right Value) (Value, Value, error) {
	operands := []Value{left, right}
	for i, operand := range operands {
		if address, ok := operand.(*addressNumber); ok {
			return nil, nil, unsupported(reasonIdentity, "a number computed from the id() of %s", address.of.typeName())
		}
		identity, ok := operand.(*identityNumber)
		if !ok {
			continue
		}
		number, err := in.numberOfIdentity(identity)
		if err != nil {
			return nil, nil, err
		}
		operands[i] = number
	}
	return operands[0], operands[1], nil
}

// numberOfIdentity is id() of an object that tends to be the same at every call: a class, a function, an instance such as a module.
// A tensor that a module or a variable holds tends to be too, an argument does not.
func (in *Interpreter) numberOfIdentity(v *identityNumber) (Value, error) {
	object := objectOf(v.of)
	switch v.of.(type) {
	case *Class, *Function, *Instance, *PythonModule, *Tensor:
		if object == nil || isTensor(v.of) && object.source != nil && object.source.Accessor.Kind == "arg" {
			break
		}
		in.pin(object)
		outcome, err := in.session.Evaluate(nameWire("builtins.id"), []bytecode.Object{int64(object.id)}, nil)
		if err != nil {
			return nil, err
		}
		return in.outcomeValue(outcome)
	}
	return nil, unsupported(reasonIdentity, "id() of %s", v.of.typeName())
}

// lives tells objects that a variable of a running function holds, and those that exist outside.
func (in *Interpreter) lives(value Value) bool {
	if objectOf(value) != nil {
		return true
	}
	for f := in.frame; f != nil; f = f.back {
		for _, held := range f.locals {
			if cell, ok := held.(*Cell); ok {
				held = cell.content
			}
			if held == value {
				return true
			}
		}
	}
	return false
}

// arities lists how many positional arguments the methods of builtin containers take.
var arities = map[string][2]int{
	"list.append": {1, 1}, "list.extend": {1, 1}, "list.insert": {2, 2}, "list.pop": {0, 1}, "list.remove": {1, 1}, "list.index": {1, 3}, "list.count": {1, 1},
	"list.clear": {0, 0}, "list.copy": {0, 0}, "list.reverse": {0, 0}, "list.sort": {0, 0}, "list.__iadd__": {1, 1}, "list.__imul__": {1, 1},
	"list.__setitem__": {2, 2}, "list.__getitem__": {1, 1}, "list.__delitem__": {1, 1}, "tuple.index": {1, 3}, "tuple.count": {1, 1}, "tuple.__getitem__": {1, 1},
	"dict.get": {1, 2}, "dict.setdefault": {1, 2}, "dict.pop": {1, 2}, "dict.popitem": {0, 0}, "dict.keys": {0, 0}, "dict.values": {0, 0}, "dict.items": {0, 0},
	"dict.copy": {0, 0}, "dict.clear": {0, 0}, "dict.update": {0, 1}, "dict.__contains__": {1, 1}, "dict.__getitem__": {1, 1}, "dict.__setitem__": {2, 2},
	"set.add": {1, 1}, "set.discard": {1, 1}, "set.remove": {1, 1}, "set.pop": {0, 0}, "set.clear": {0, 0}, "set.copy": {0, 0}, "set.issubset": {1, 1},
	"set.issuperset": {1, 1}, "set.isdisjoint": {1, 1}, "set.symmetric_difference": {1, 1}, "set.symmetric_difference_update": {1, 1}, "set.__contains__": {1, 1},
	"frozenset.copy": {0, 0}, "frozenset.issubset": {1, 1}, "frozenset.issuperset": {1, 1}, "frozenset.isdisjoint": {1, 1},
	"frozenset.symmetric_difference": {1, 1}, "frozenset.__contains__": {1, 1},
}

// checkArity raises CPython's TypeError for a wrong number of arguments: the host calls the method so on an empty container.
func (in *Interpreter) checkArity(name string, arguments Arguments) error {
	bounds, known := arities[name]
	count := len(arguments.Positional)
	if !known || count >= bounds[0] && count <= bounds[1] {
		return nil
	}
	empty, _, _ := strings.Cut(name, ".")
	operands := []Value{newList(nil)}
	switch empty {
	case "tuple":
		operands[0] = &Tuple{}
	case "dict":
		operands[0] = newDict()
	case "set", "frozenset":
		operands[0] = &Set{index: map[any]int{}, frozen: empty == "frozenset"}
	}
	for range count {
		operands = append(operands, none())
	}
	value, ok, err := in.evaluateConstant(name, operands...)
	if err == nil && (ok || value == nil) {
		err = unsupported(reasonBuiltinCall, "%s with %d arguments", name, count)
	}
	return err
}
