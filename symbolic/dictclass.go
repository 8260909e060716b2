package symbolic

// dictMethodOverride is a special method that a program's subclass of a dict type defines anew, bound to the dict; nil where it keeps the
// one written in C.
func (in *Interpreter) dictMethodOverride(d *Dict, name string) (Value, error) {
	if d.class == nil || !userClass(d.class.name) {
		return nil, nil
	}
	found, owner, err := in.classLookup(d.class, name)
	if err != nil || owner == nil || !userClass(owner.name) {
		return nil, err
	}
	return in.bindDescriptor(found, d, d.class)
}

// dictItem is dict[key] with the methods of the dict's class.
func (in *Interpreter) dictItem(d *Dict, key Value) (Value, error) {
	method, err := in.dictMethodOverride(d, "__getitem__")
	if err != nil {
		return nil, err
	}
	if method != nil {
		return in.tailCall(method, Arguments{Positional: []Value{key}})
	}
	return d.getItem(in, key)
}

// setDictItem is dict[key] = value, or del dict[key], with the methods of the dict's class.
func (in *Interpreter) setDictItem(d *Dict, key, value Value) error {
	name, arguments := "__setitem__", []Value{key, value}
	if value == nil {
		name, arguments = "__delitem__", arguments[:1]
	}
	method, err := in.dictMethodOverride(d, name)
	if err != nil {
		return err
	}
	if method != nil {
		_, err := in.tailCall(method, Arguments{Positional: arguments})
		return err
	}
	return d.setItem(in, key, value)
}

// mappingItems is the dict that ** or dict() makes of an object with keys() and __getitem__.
func (in *Interpreter) mappingItems(source *Instance) (*Dict, error) {
	method, err := in.optionalAttribute(source, "keys")
	if err != nil {
		return nil, err
	}
	if method == nil {
		return nil, unsupported(reasonItem, "a dict from %s", source.typeName())
	}
	found, err := in.call(method, Arguments{})
	if err != nil {
		return nil, err
	}
	keys, err := in.iterableItems(found)
	if err != nil {
		return nil, err
	}
	table := newDict()
	for _, key := range keys {
		value, err := in.getItem(source, key)
		if err != nil {
			return nil, err
		}
		if err := table.setItem(in, key, value); err != nil {
			return nil, err
		}
	}
	return table, nil
}

// plainDictMethod runs a special method of dict itself, which was reached past the methods of the dict's class.
func (in *Interpreter) plainDictMethod(d *Dict, method string, arguments []Value) (Value, bool, error) {
	switch {
	case method == "__getitem__" && len(arguments) == 1:
		return modelled(d.getItem(in, arguments[0]))
	case method == "__setitem__" && len(arguments) == 2:
		return none(), true, d.setItem(in, arguments[0], arguments[1])
	case method == "__delitem__" && len(arguments) == 1:
		return none(), true, d.setItem(in, arguments[0], nil)
	case method == "__contains__" && len(arguments) == 1:
		found, err := d.contains(in, arguments[0])
		return boolean(found), true, err
	case method == "__iter__" && len(arguments) == 0:
		return modelled(in.iterateDict(d, d, "keys"))
	case method == "__or__" && len(arguments) == 1:
		return nil, false, in.plainMerge(d, arguments[0])
	case method == "__len__" && len(arguments) == 0:
		n, err := d.length(in)
		return integer(int64(n)), true, err
	}
	return nil, false, nil
}

// plainMerge leaves the method __or__ of a dict to Python where one operand is of a class whose own the operator | would prefer.
func (in *Interpreter) plainMerge(d *Dict, argument Value) error {
	other, err := in.look(argument)
	if err != nil {
		return err
	}
	if dict, ok := baseValue(other).(*Dict); ok && libraryDictOf(d)+libraryDictOf(dict) != "" {
		return unsupported(reasonOperator, "%s.__or__ of %s", d.typeName(), dict.typeName())
	}
	return nil
}
