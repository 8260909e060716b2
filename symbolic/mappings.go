package symbolic

import (
	"fmt"

	"fusee/internal/slice"
)

// mergePairs adds the pairs that an iterable gives to a dict, one by one.
func (in *Interpreter) mergePairs(d *Dict, source Value) error {
	walker, err := in.iterate(source)
	if err != nil {
		return err
	}
	for position := 0; ; position++ {
		pair, err := in.advance(walker)
		if err != nil || pair == nil {
			return err
		}
		items, err := in.iterableItems(pair)
		if isRaised(err, "TypeError") {
			return in.raise("TypeError", fmt.Sprintf("cannot convert dictionary update sequence element #%d to a sequence", position))
		}
		if err != nil {
			return err
		}
		if len(items) != 2 {
			return in.raise("ValueError", fmt.Sprintf("dictionary update sequence element #%d has length %d; 2 is required", position, len(items)))
		}
		if err := d.setItem(in, items[0], items[1]); err != nil {
			return err
		}
	}
}

// moveToEnd is OrderedDict.move_to_end of one made during capture.
func (in *Interpreter) moveToEnd(d *Dict, arguments Arguments) (Value, bool, error) {
	values, ok := bindNamed(arguments, "key", "last")
	if !ok || values[0] == nil || d.object != nil {
		return nil, true, unsupported(reasonMutation, "OrderedDict.move_to_end")
	}
	last := true
	if values[1] != nil {
		truth, err := in.truth(values[1])
		if err != nil {
			return nil, true, err
		}
		last = truth
	}
	entry, err := d.find(in, values[0])
	if err != nil {
		return nil, true, err
	}
	if entry == nil || entry.deleted {
		key, err := in.real(values[0])
		if err != nil {
			return nil, true, err
		}
		return nil, true, in.raiseWith(in.builtinClass("KeyError"), key)
	}
	in.activity++
	rest := slice.Filter(d.entries, func(other *dictEntry) bool { return other != entry })
	if last {
		d.entries = append(rest, entry)
	} else {
		d.entries = append([]*dictEntry{entry}, rest...)
	}
	return none(), true, nil
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
