package symbolic

// reduceObject is object.__reduce_ex__ with protocol 2 and above (reduce_newobj in CPython's Objects/typeobject.c): how copy and pickle
// make an instance of a Python class anew. Instances with a builtin value under them are left to Python.
func (in *Interpreter) reduceObject(v *Instance, arguments []Value) (Value, bool, error) {
	if len(arguments) != 1 || v.base != nil || v.exception != nil || !userClass(v.class.name) {
		return nil, false, nil
	}
	if protocol, ok := constantInt(arguments[0]); !ok || protocol < 2 {
		return nil, false, nil
	}
	for _, hook := range []string{"__reduce__", "__getnewargs_ex__", "__getnewargs__", "__slots__"} {
		_, owner, err := in.classLookup(v.class, hook)
		if err != nil {
			return nil, true, err
		}
		if owner != nil && owner.name != "object" {
			return nil, false, nil
		}
	}
	if named, err := in.namesSlots(v.class); named || err != nil {
		return nil, err != nil, err
	}
	state, err := in.stateOf(v)
	if err != nil {
		return nil, true, err
	}
	registry, err := in.namedModule("copyreg")
	if err != nil {
		return nil, true, err
	}
	maker, err := in.getAttribute(registry, "__newobj__")
	if err != nil {
		return nil, true, err
	}
	return &Tuple{items: []Value{maker, &Tuple{items: []Value{v.class}}, state, none(), none()}}, true, nil
}

// namesSlots tells classes for which copyreg has noted slots; of those that have none it notes an empty list, at their first copy.
func (in *Interpreter) namesSlots(class *Class) (bool, error) {
	found, _, err := in.classLookup(class, "__slotnames__")
	if found == nil || err != nil {
		return false, err
	}
	list, isList, err := as[*List](in.real(found))
	if !isList || err != nil {
		return err == nil, err
	}
	names, err := list.contents(in)
	return len(names) > 0, err
}

// stateOf is __getstate__ of an instance: its attributes, unless its class has a method of that name.
func (in *Interpreter) stateOf(v *Instance) (Value, error) {
	hook, owner, err := in.classLookup(v.class, "__getstate__")
	if err != nil {
		return nil, err
	}
	if owner != nil && owner.name != "object" {
		bound, err := in.bindDescriptor(hook, v, v.class)
		if err != nil {
			return nil, err
		}
		return in.call(bound, Arguments{})
	}
	fields := &fieldsDict{v}
	table, err := fields.snapshot(in)
	if err != nil || len(table.entries) == 0 {
		return none(), err
	}
	return table, nil
}
