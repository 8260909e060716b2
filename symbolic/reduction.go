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
	for _, hook := range []string{"__reduce__", "__getnewargs_ex__", "__getnewargs__", "__slots__", "__slotnames__"} {
		_, owner, err := in.classLookup(v.class, hook)
		if err != nil {
			return nil, true, err
		}
		if owner != nil && owner.name != "object" {
			return nil, false, nil
		}
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
