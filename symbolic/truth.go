package symbolic

// truth is PyObject_IsTrue.
func (in *Interpreter) truth(value Value) (bool, error) {
	value, err := in.look(value)
	if err != nil {
		return false, err
	}
	switch v := value.(type) {
	case *Number:
		return in.numberTruth(v)
	case *Constant:
		return constantTruth(v.Value), nil
	case *Tuple:
		if hasMethods(v) {
			return in.truthByMethod(v.class, v)
		}
		return len(v.items) > 0, nil
	case truthTester:
		return v.truth(in)
	case sized:
		n, err := v.length(in)
		return n > 0, err
	case *Instance:
		return in.truthByMethod(v.class, v)
	case *Class:
		meta, err := in.metaclassOf(v)
		if err != nil {
			return false, err
		}
		return in.truthByMethod(meta, v)
	case *Opaque:
		return in.opaqueTruth(v)
	}
	return true, nil
}

// opaqueTruth is that of a set, or of an object whose class has neither __bool__ nor __len__; others are left to Python.
func (in *Interpreter) opaqueTruth(v *Opaque) (bool, error) {
	if d, err := in.heldSet(v); d != nil && err == nil {
		some, err := in.given("builtins.bool", v.object)
		if err != nil {
			return false, err
		}
		return in.truth(some)
	}
	class, err := in.classOfOpaque(v)
	if err != nil {
		return false, err
	}
	for _, name := range []string{"__bool__", "__len__"} {
		if hook, _, err := in.classLookup(class, name); err != nil || hook != nil {
			if err == nil {
				err = unsupported(reasonBranch, "%s", v.kind)
			}
			return false, err
		}
	}
	return true, nil
}

// truthByMethod asks the __bool__ or else the __len__ that the object's class defines.
func (in *Interpreter) truthByMethod(class *Class, v Value) (bool, error) {
	for _, name := range []string{"__bool__", "__len__"} {
		method, err := in.specialMethod(class, name, v)
		if err != nil {
			return false, err
		}
		if method == nil {
			continue
		}
		if builtin, ok := method.(*Builtin); ok {
			if base := baseValue(v); base != nil {
				return in.truth(base)
			}
			return false, unsupported(reasonOperator, "%s", builtin.name)
		}
		result, err := in.call(method, Arguments{})
		if err != nil {
			return false, err
		}
		if result, err = in.real(result); err != nil {
			return false, err
		}
		if name == "__bool__" && result.typeName() != "bool" {
			return false, in.raise("TypeError", "__bool__ should return bool, returned "+shortName(result.typeName()))
		}
		return in.truth(result)
	}
	return true, nil
}

// truthOfCall calls a method of one argument and takes its result as a truth.
func (in *Interpreter) truthOfCall(method, argument Value) (bool, error) {
	value, err := in.call(method, Arguments{Positional: []Value{argument}})
	if err != nil {
		return false, err
	}
	return in.truth(value)
}
