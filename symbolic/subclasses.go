package symbolic

import "strings"

// An instance of a class that derives from a builtin type holds the builtin value as its base: methods that the program's classes do not
// override are those of the base.

// newBase makes the builtin value of a new instance, as the __new__ of the builtin type does; done is false for types without one here.
func (in *Interpreter) newBase(builtin string, arguments Arguments) (Value, bool, error) {
	switch builtin {
	case "list":
		return newList([]Value{}), true, nil
	case "dict":
		return newDict(), true, nil
	case "collections.OrderedDict", "collections.defaultdict":
		class, err := in.namedClass(builtin)
		if err != nil {
			return nil, true, err
		}
		value, _, err := in.constructBuiltin(class, Arguments{})
		return value, true, err
	case "set":
		return modelled(in.newSet(nil, false))
	case "frozenset":
		return in.constructSequence(builtin, Arguments{Positional: arguments.Positional})
	case "collections.deque":
		return &Deque{longest: -1}, true, nil
	case "property":
		return in.constructDescriptor(builtin, Arguments{})
	case "int", "float", "complex", "str", "bytes":
		return in.constructBuiltin(in.builtinClass(builtin), arguments)
	}
	return nil, false, nil
}

// hasHostBase tells existing instances of subclasses of int, str and the like: the host can be asked about the very object.
func (v *Instance) hasHostBase() bool {
	_, constant := v.base.(*Constant)
	return v.object != nil && constant
}

// initBase is the __init__ of a builtin type over the base of an instance.
func (in *Interpreter) initBase(base Value, arguments Arguments) error {
	switch b := base.(type) {
	case *List:
		items, err := in.initialItems("list", arguments)
		if err != nil {
			return err
		}
		return in.replaceList(b, items)
	case *Dict:
		if b.class != nil && b.class.isSubclassOf("collections.defaultdict") && len(arguments.Positional) > 0 {
			in.activity++
			b.factory, arguments.Positional = arguments.Positional[0], arguments.Positional[1:]
		}
		return in.fillDict(b, arguments)
	case *Set:
		if b.frozen {
			return nil
		}
		items, err := in.initialItems("set", arguments)
		if err != nil {
			return err
		}
		fresh, err := in.newSet(items, false)
		if err != nil {
			return err
		}
		in.activity++
		*b = *fresh.(*Set)
	case *Deque:
		fresh, _, err := in.constructDeque(arguments)
		if err != nil {
			return err
		}
		b.longest = fresh.(*Deque).longest
		b.replace(in, fresh.(*Deque).items)
	case *descriptorValue:
		fresh, _, err := in.constructDescriptor(b.kind, arguments)
		if err != nil {
			return err
		}
		in.activity++
		*b = *fresh.(*descriptorValue)
	}
	return nil
}

// initInstance is the __init__ of a builtin type over an instance that derives from it: keywords are for a __new__ of the class's own.
func (in *Interpreter) initInstance(v *Instance, arguments Arguments) error {
	if len(arguments.Keywords) > 0 {
		if _, owner, err := in.classLookup(v.class, "__new__"); err != nil {
			return err
		} else if _, isDict := v.base.(*Dict); !isDict && owner != nil && (owner.made != nil || userClass(owner.name)) {
			arguments.Keywords = nil
		}
	}
	if len(arguments.Positional)+len(arguments.Keywords) > 0 {
		if err := in.checkOrderedOverrides(v, "update"); err != nil {
			return err
		}
	}
	if err := in.initBase(v.base, arguments); err != nil {
		return err
	}
	return in.initProperty(v)
}

// initProperty gives an instance of a subclass of property a __doc__ of its own, that of its getter where none was passed, as the class's own
// would hide it.
func (in *Interpreter) initProperty(v *Instance) error {
	property, ok := v.base.(*descriptorValue)
	if !ok || property.kind != "property" || property.doc != nil {
		return nil
	}
	doc, err := in.docOfGetter(property)
	if err != nil || doc == nil {
		return err
	}
	return in.setAttribute(v, "__doc__", doc)
}

// checkOrderedOverrides leaves methods of OrderedDict to Python that go through those that the instance's class defines anew, as their
// C code does for subclasses.
func (in *Interpreter) checkOrderedOverrides(v *Instance, method string) error {
	dict, ok := v.base.(*Dict)
	if !ok || !dict.ordered() {
		return nil
	}
	switch method {
	case "update", "setdefault", "pop", "popitem", "copy", "__copy__", "__eq__", "__ne__", "__ior__", "__or__", "__ror__":
	default:
		return nil
	}
	for _, name := range []string{"__getitem__", "__setitem__", "__delitem__", "__contains__", "__iter__", "__missing__", "keys"} {
		_, owner, err := in.classLookup(v.class, name)
		if err != nil {
			return err
		}
		if owner != nil && (owner.made != nil || userClass(owner.name)) {
			return unsupported(reasonBuiltinCall, "OrderedDict.%s of %s, which has a %s of its own", method, v.class.name, name)
		}
	}
	return nil
}

func (in *Interpreter) initialItems(kind string, arguments Arguments) ([]Value, error) {
	switch {
	case len(arguments.Keywords) > 0:
		return nil, in.raise("TypeError", kind+"() takes no keyword arguments")
	case len(arguments.Positional) > 1:
		return nil, in.raise("TypeError", kind+" expected at most 1 argument, got "+integerText(len(arguments.Positional)))
	case len(arguments.Positional) == 0:
		return []Value{}, nil
	}
	items, err := in.iterableItems(arguments.Positional[0])
	return append([]Value{}, items...), err
}

// baseMethod runs a builtin type's method on an instance that derives from it; handled is false where the base knows no such method.
func (in *Interpreter) baseMethod(v *Instance, name string, arguments Arguments) (Value, bool, error) {
	if v.base == nil {
		return nil, false, nil
	}
	method := shortName(name)
	if err := in.checkOrderedOverrides(v, method); err != nil {
		return nil, true, err
	}
	switch method {
	case "__init__":
		return none(), true, in.initInstance(v, arguments)
	case "__getitem__":
		if value, done, err := in.missingItem(v, arguments); done || err != nil {
			return value, true, err
		}
	case "__repr__", "__str__":
		if set, ok := v.base.(*Set); ok && len(set.items) < 2 {
			return in.subclassRepresentation(v, set)
		}
		if _, ok := v.base.(*Set); ok || libraryDict(v.class) != "" {
			return nil, true, unsupported(reasonFormatting, "%s", v.class.name)
		}
		written, err := in.represent(v.base)
		if method == "__str__" && err == nil {
			written, err = in.stringify(v.base)
		}
		return written, true, err
	case "__reduce__", "__reduce_ex__", "__sizeof__", "__class__", "__format__":
		return nil, false, nil
	case "__or__", "__ror__":
		if libraryDict(v.class) != "" {
			return nil, true, unsupported(reasonBuiltinCall, "%s of %s", method, v.class.name)
		}
	case "copy", "__copy__":
		if set, ok := v.base.(*Set); ok {
			copied, err := in.newSet(set.items, set.frozen)
			return &Instance{class: v.class, fields: newFieldTable(v.class.hasDict), base: copied}, true, err
		}
		if libraryDict(v.class) != "" {
			return nil, true, unsupported(reasonBuiltinCall, "copy of %s", v.class.name)
		}
	}
	for i, argument := range arguments.Positional {
		if !storesArgument(v.base, method, i) {
			arguments.Positional[i] = in.plainBase(argument)
		}
	}
	value, err := in.callMethod(&Builtin{name: name, self: v.base}, arguments)
	if value == v.base {
		value = v // an in-place operator returns its receiver
	}
	return value, true, err
}

// storesArgument tells arguments of a container's methods that the container holds afterwards as they are.
func storesArgument(container Value, method string, index int) bool {
	switch method {
	case "append", "appendleft", "add", "setdefault":
		return true
	case "insert":
		return index == 1
	case "__setitem__":
		_, isDict := container.(*Dict)
		return isDict || index == 1
	}
	return false
}

// plainBase is the base of an instance whose class leaves the builtin type's methods as they are, as C code that reads it would see it.
func (in *Interpreter) plainBase(value Value) Value {
	real, err := in.real(value)
	if err != nil {
		return value
	}
	instance, ok := real.(*Instance)
	if !ok || instance.base == nil {
		return value
	}
	for _, name := range []string{"__iter__", "__len__", "__getitem__", "__eq__", "__hash__", "__contains__", "keys"} {
		_, owner, err := in.classLookup(instance.class, name)
		if err != nil || owner != nil && userClass(owner.name) {
			return value
		}
	}
	return instance.base
}

// missingItem is dict.__getitem__ of a subclass with __missing__.
func (in *Interpreter) missingItem(v *Instance, arguments Arguments) (Value, bool, error) {
	dict, ok := v.base.(*Dict)
	if !ok || len(arguments.Positional) != 1 {
		return nil, false, nil
	}
	key := arguments.Positional[0]
	found, err := dict.lookup(in, key)
	if err != nil || found != nil {
		return found, true, err
	}
	hook, err := in.specialMethod(v.class, "__missing__", v)
	if err != nil || hook == nil {
		return nil, false, err
	}
	return modelled(in.call(hook, Arguments{Positional: []Value{key}}))
}

// subclassRepresentation is the repr of an instance of a subclass of set, which shows the class.
func (in *Interpreter) subclassRepresentation(v *Instance, set *Set) (Value, bool, error) {
	if len(set.items) == 0 {
		return text(v.class.baseName() + "()"), true, nil
	}
	item, err := in.representation(set.items[0])
	return text(v.class.baseName() + "({" + item + "})"), true, err
}

// newOfBuiltin is the __new__ of a builtin type called for a class that derives from it.
func (in *Interpreter) newOfBuiltin(hook string, c *Class, arguments Arguments) (Value, bool, error) {
	builtin := strings.TrimSuffix(hook, ".__new__")
	if c.isSubclassOf("BaseException") {
		exception := &Instance{class: c, fields: newFieldTable(true), exception: &exceptionState{arguments: arguments.Positional, members: map[string]Value{}, bare: true}}
		if c.isSubclassOf("BaseExceptionGroup") {
			return exception, true, in.groupMembers(exception, arguments.Positional)
		}
		return exception, true, nil
	}
	if c.name == builtin {
		return in.constructBuiltin(c, arguments)
	}
	if library := libraryDict(c); builtin == "dict" && library != "" && library != "collections.Counter" {
		builtin = library // these inherit the __new__ of dict
	}
	base, done, err := in.newBase(builtin, arguments)
	if !done || err != nil {
		return nil, done, err
	}
	return &Instance{class: c, fields: newFieldTable(c.hasDict), base: base, born: in.frame.step}, true, nil
}
