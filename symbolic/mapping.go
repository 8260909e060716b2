package symbolic

// eachItem hands the items of an iterable over one by one: an iterator may look at what became of those before.
func (in *Interpreter) eachItem(source Value, take func(item Value) error) error {
	source, err := in.real(source)
	if err != nil {
		return err
	}
	switch v := source.(type) {
	case *List, *Set:
		items, err := in.iterableItems(v)
		if err != nil {
			return err
		}
		source = &Tuple{items: items}
	}
	return in.walk(source, take)
}

// walk hands over what iterating over an object gives.
func (in *Interpreter) walk(source Value, take func(item Value) error) error {
	walker, err := in.iterate(source)
	if err != nil {
		return err
	}
	for count := 0; ; count++ {
		item, err := in.advance(walker)
		if err != nil || item == nil {
			return err
		}
		if count > 100_000 {
			return unsupported(reasonLength, "an iterator of over 100000 items")
		}
		if err := take(item); err != nil {
			return err
		}
	}
}

// asMapping copies anything that dict() takes for a mapping into a dict: it has a method keys; nil for what has none.
func (in *Interpreter) asMapping(source Value) (*Dict, error) {
	switch s := source.(type) {
	case *Dict:
		return s, nil
	case *mappingProxy:
		return s.dict, nil
	case *classDict:
		return nil, unsupported(reasonItem, "a dict from the attributes of %s", s.owner.name)
	case *fieldsDict:
		return s.snapshot(in)
	case *functionDict:
		return s.snapshot(in)
	case *Instance:
		return in.instanceMapping(s)
	}
	return nil, nil
}

// instanceMapping walks keys() of an object of a class written in Python, and reads each item.
func (in *Interpreter) instanceMapping(v *Instance) (*Dict, error) {
	keys, err := in.optionalAttribute(v, "keys")
	if err != nil || keys == nil {
		return nil, err
	}
	listed, err := in.call(keys, Arguments{})
	if err != nil {
		return nil, err
	}
	table := newDict()
	return table, in.eachItem(listed, func(key Value) error {
		value, err := in.getItem(v, key)
		if err != nil {
			return err
		}
		return table.setItem(in, key, value)
	})
}

func (v *fieldsDict) length(in *Interpreter) (int, error) {
	table, err := v.snapshot(in)
	if err != nil {
		return 0, err
	}
	return table.length(in)
}

func (v *fieldsDict) iterate(in *Interpreter) (iterator, error) {
	table, err := v.snapshot(in)
	if err != nil {
		return nil, err
	}
	return in.iterateKeys(table)
}

func (in *Interpreter) iterateKeys(table *Dict) (iterator, error) {
	walker, err := in.iterate(table)
	if err != nil {
		return nil, err
	}
	return walker.(iterator), nil
}
