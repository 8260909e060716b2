package symbolic

import "fusee/bytecode"

// isinstance and issubclass, with unions, abstract base classes and the metaclasses of tensors.

func (in *Interpreter) isInstanceCall(arguments Arguments) (Value, bool, error) {
	return classQuestion(arguments, in.look, in.isInstanceOfAny)
}

// classQuestion is isinstance or issubclass: a test of a subject, which is looked at first, against one class or a tuple of them.
func classQuestion(arguments Arguments, look func(Value) (Value, error), test func(subject, classes Value) (bool, error)) (Value, bool, error) {
	if len(arguments.Positional) != 2 {
		return nil, false, nil
	}
	subject, err := look(arguments.Positional[0])
	if err != nil {
		return nil, true, err
	}
	result, err := test(subject, arguments.Positional[1])
	return boolean(result), true, err
}

func (in *Interpreter) isInstanceOfAny(subject, classes Value) (bool, error) {
	classes, err := in.real(classes)
	if err != nil {
		return false, err
	}
	switch c := classes.(type) {
	case *Tuple:
		for _, item := range c.items {
			if found, err := in.isInstanceOfAny(subject, item); found || err != nil {
				return found, err
			}
		}
		return false, nil
	case *Class:
		return in.isInstance(subject, c)
	}
	if members, err := in.unionMembers(classes); members != nil || err != nil {
		for _, member := range members {
			if found, err := in.isInstanceOfAny(subject, member); found || err != nil {
				return found, err
			}
		}
		return false, err
	}
	return false, unsupported(reasonBuiltinCall, "isinstance with %s", classes.typeName())
}

// unionMembers are the classes of a union such as int | str; nil for anything else.
func (in *Interpreter) unionMembers(value Value) ([]Value, error) {
	union, ok := value.(*Opaque)
	if !ok || union.kind != "types.UnionType" {
		return nil, nil
	}
	in.pin(union.object)
	members, err := in.plainGetAttribute(union.object.id, "__args__")
	if err != nil {
		return nil, err
	}
	return in.listOf(members)
}

// userClassCheck runs an __instancecheck__ or a __subclasscheck__ that a program wrote on a metaclass.
func (in *Interpreter) userClassCheck(name string, subject Value, class *Class) (result, handled bool, err error) {
	meta, err := in.metaclassOf(class)
	if err != nil || !userClass(meta.name) {
		return false, false, err
	}
	hook, owner, err := in.classLookup(meta, name)
	if err != nil || owner == nil || !userClass(owner.name) {
		return false, false, err
	}
	return in.classCheck(hook, subject, class, meta)
}

// classCheck calls a metaclass's check.
func (in *Interpreter) classCheck(hook, subject Value, class, meta *Class) (result, handled bool, err error) {
	bound, err := in.bindDescriptor(hook, class, meta)
	if err != nil {
		return false, true, err
	}
	return modelled(in.truthOfCall(bound, subject))
}

// libraryInstanceCheck runs the __instancecheck__ of a library's metaclass, such as that of torch's legacy storages; abc's own asks what
// issubclass asks.
func (in *Interpreter) libraryInstanceCheck(subject Value, class, meta *Class) (result, handled bool, err error) {
	hook, owner, err := in.classLookup(meta, "__instancecheck__")
	if err != nil || owner == nil || owner.name == "type" || owner.name == "abc.ABCMeta" {
		return false, false, err
	}
	if owner.name == "typing._ProtocolMeta" {
		return in.protocolCheck(subject, class)
	}
	return in.classCheck(hook, subject, class, meta)
}

// protocolCheck is isinstance by a typing.Protocol: the object has all members, and methods of the protocol are not None in it. Where the
// protocol has nothing but methods, issubclass may still accept the class of an object that lacks some.
func (in *Interpreter) protocolCheck(subject Value, class *Class) (result, handled bool, err error) {
	outcome, err := in.session.Evaluate(nameWire("fusee._helpers.protocol_members"), []bytecode.Object{int64(class.id)}, nil)
	if err != nil {
		return false, true, err
	}
	value, err := in.outcomeValue(outcome)
	if err != nil {
		return false, true, err
	}
	members, isTuple := value.(*Tuple)
	if !isTuple || len(members.items) != 2 {
		return false, false, nil
	}
	names, err := in.iterableItems(members.items[0])
	if err != nil {
		return false, true, err
	}
	methods, err := in.iterableItems(members.items[1])
	if err != nil {
		return false, true, err
	}
	if has, err := in.hasAll(subject, names, false); err != nil || !has {
		return false, len(methods) < len(names), err
	}
	result, err = in.hasAll(subject, methods, true)
	return result, result || err != nil || len(methods) < len(names), err
}

// hasAll tells whether an object has all attributes of these names; if set, others than None.
func (in *Interpreter) hasAll(subject Value, names []Value, set bool) (bool, error) {
	for _, item := range names {
		name, ok := stringOf(item)
		if !ok {
			return false, unsupported(reasonBuiltinCall, "isinstance by a protocol")
		}
		value, err := in.optionalAttribute(subject, name)
		if err != nil || value == nil {
			return false, err
		}
		if value, err = in.real(value); err != nil || set && isNone(value) {
			return false, err
		}
	}
	return true, nil
}

// isInstance decides from types alone; metaclasses with __instancecheck__ answer only for the classes that are known to keep type's rule.
func (in *Interpreter) isInstance(subject Value, class *Class) (bool, error) {
	if tensor, ok := subject.(*Tensor); ok && tensor.wraps() && class.name == "torch.Tensor" {
		return true, nil // also where the tensor might be a plain one
	}
	actual, err := in.classOf(subject)
	if err != nil {
		return false, err
	}
	if class.id != 0 && actual.id != class.id { // type's own rule comes first where the types are the same
		if result, handled, err := in.userClassCheck("__instancecheck__", subject, class); handled || err != nil {
			return result, err
		}
	}
	return in.inheritsOrAccepted(subject, actual, class)
}

// inheritsOrAccepted is type's own rule for a class, and then what an abstract base class accepts; subject is nil where classes are compared.
func (in *Interpreter) inheritsOrAccepted(subject Value, actual, class *Class) (bool, error) {
	if actual.inherits(class) {
		return true, nil
	}
	if actual.made == nil && actual.id == 0 && len(actual.baseNames) <= 2 && actual.name != "object" {
		actual = knownBases(actual)
		if actual.inherits(class) {
			return true, nil
		}
	}
	if claimed, err := in.claimedClass(subject, actual); err != nil {
		return false, err
	} else if claimed != nil && claimed.inherits(class) {
		return true, nil
	}
	return in.virtualInstance(subject, actual, class)
}

// claimedClass is what an object of a class of the program gives for its __class__, where that may be another than its type: object_isinstance
// of CPython's abstract.c. nil where it claims none.
func (in *Interpreter) claimedClass(subject Value, actual *Class) (*Class, error) {
	instance, ok := subject.(*Instance)
	if !ok || !userClass(actual.name) {
		return nil, nil
	}
	claims := false
	for _, name := range []string{"__class__", "__getattribute__"} {
		_, owner, err := in.classLookup(actual, name)
		if err != nil {
			return nil, err
		}
		claims = claims || owner != nil && userClass(owner.name)
	}
	if !claims {
		return nil, nil
	}
	value, err := in.optionalAttribute(instance, "__class__")
	if err != nil || value == nil {
		return nil, err
	}
	value, err = in.real(value)
	class, _ := value.(*Class)
	return class, err
}

// basesOfBuiltin names the bases of classes that may be known by their name alone.
var basesOfBuiltin = map[string][]string{
	"bool":                         {"int", "object"},
	"torch.nn.parameter.Parameter": {"torch.Tensor", "torch._C.TensorBase", "object"},
	"torch.Tensor":                 {"torch.Tensor", "torch._C.TensorBase", "object"},
	"torch.Size":                   {"tuple", "object"},
}

// knownBases gives a builtin class its bases.
func knownBases(class *Class) *Class {
	if bases := basesOfBuiltin[class.name]; bases != nil {
		return &Class{name: class.name, baseNames: append([]string{class.name}, bases...)}
	}
	return class
}

// virtualInstance asks abstract base classes, which may accept classes that do not derive from them.
func (in *Interpreter) virtualInstance(subject Value, actual, class *Class) (bool, error) {
	if class.made != nil || actual.made != nil {
		return in.madeInstance(actual, class)
	}
	if class.id == 0 {
		return false, nil
	}
	meta, err := in.metaclassOf(class)
	if err != nil {
		return false, err
	}
	switch meta.name {
	case "type", "enum.EnumType", "enum.EnumMeta":
		return false, nil
	case "torch._C._TensorMeta", "torch.nn.parameter._ParameterMeta", "torch._tensor._TensorMeta", "torch._C._TensorBaseMeta":
		return in.tensorInstance(subject, class)
	case "torch.nn.parameter._BufferMeta":
		return false, nil
	}
	if subject != nil {
		if result, handled, err := in.libraryInstanceCheck(subject, class, meta); handled || err != nil {
			return result, err
		}
	}
	if actual.id == 0 {
		if actual, err = in.namedClass(actual.name); err != nil {
			return false, err
		}
	}
	outcome, err := in.session.Evaluate(nameWire("builtins.issubclass"), []bytecode.Object{int64(actual.id), int64(class.id)}, nil)
	if err != nil {
		return false, err
	}
	value, err := in.outcomeValue(outcome)
	if err != nil {
		return false, err
	}
	return in.truth(value)
}

// tensorInstance is the rule of torch's tensor metaclasses: a Parameter is a tensor with the parameter flag.
func (in *Interpreter) tensorInstance(subject Value, class *Class) (bool, error) {
	tensor, ok := subject.(*Tensor)
	if !ok {
		return false, nil
	}
	switch class.name {
	case "torch.Tensor":
		return true, nil
	case parameterClass:
		if tensorTypeName(tensor) == class.name || tensor.class == nil {
			return tensorTypeName(tensor) == class.name, nil
		}
		mark, err := in.tensorOwnAttribute(tensor, "_is_param") // torch marks parameters of other classes
		if isRaised(err, "AttributeError") {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		return in.truth(mark)
	}
	return false, nil
}

// isSubclassCall is issubclass, by the rules of object_issubclass (CPython's Objects/abstract.c).
func (in *Interpreter) isSubclassCall(arguments Arguments) (Value, bool, error) {
	return classQuestion(arguments, in.real, in.isSubclassOfAny)
}

func (in *Interpreter) isSubclassOfAny(derived, classes Value) (bool, error) {
	classes, err := in.real(classes)
	if err != nil {
		return false, err
	}
	if class, ok := classes.(*Class); ok {
		return in.isSubclass(derived, class)
	}
	members, err := in.unionMembers(classes)
	if err != nil {
		return false, err
	}
	tuple, isTuple := classes.(*Tuple)
	if isTuple {
		members = tuple.items
	}
	if members == nil && !isTuple {
		return false, in.noClass(classes, "issubclass() arg 2 must be a class, a tuple of classes, or a union")
	}
	for _, member := range members {
		if found, err := in.isSubclassOfAny(derived, member); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

func (in *Interpreter) isSubclass(derived Value, class *Class) (bool, error) {
	if result, handled, err := in.userClassCheck("__subclasscheck__", derived, class); handled || err != nil {
		return result, err
	}
	actual, ok := derived.(*Class)
	if !ok {
		return false, in.noClass(derived, "issubclass() arg 1 must be a class")
	}
	return in.inheritsOrAccepted(nil, actual, class)
}

// noClass raises the error of a value that stands where a class must; others than plain values may have a __bases__ of their own.
func (in *Interpreter) noClass(value Value, message string) error {
	switch value.(type) {
	case *Constant, *Number, *List, *Tensor, *Tuple, *Dict, *Set:
		return in.raise("TypeError", message)
	}
	return unsupported(reasonBuiltinCall, "issubclass with %s", value.typeName())
}
