package symbolic

import (
	"fmt"

	"fusee/bytecode"
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

// change runs a method of dict that changes an instance's __dict__: on a copy, whose differences become attributes.
func (v *fieldsDict) change(in *Interpreter, method string, arguments Arguments) (Value, bool, error) {
	before, err := v.snapshot(in)
	if err != nil {
		return nil, true, err
	}
	after, err := before.copy(in)
	if err != nil {
		return nil, true, err
	}
	result, handled, err := in.dictMethod(after, method, arguments)
	if err != nil || !handled {
		return nil, handled, err
	}
	for _, entry := range before.entries {
		name, ok := stringOf(entry.key)
		if left, err := after.lookup(in, entry.key); err != nil || ok && left == nil {
			if err != nil {
				return nil, true, err
			}
			in.writeField(v.owner, name, nil)
		}
	}
	entries, err := after.live(in)
	if err != nil {
		return nil, true, err
	}
	for _, entry := range entries {
		known, err := before.lookup(in, entry.key)
		if err != nil || known == entry.value {
			if err != nil {
				return nil, true, err
			}
			continue
		}
		name, ok := stringOf(entry.key)
		if !ok {
			return nil, true, unsupported(reasonMutation, "__dict__ with a key that is no text")
		}
		in.writeField(v.owner, name, entry.value)
	}
	return result, true, nil
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
	rest := []*dictEntry{}
	for _, other := range d.entries {
		if other != entry {
			rest = append(rest, other)
		}
	}
	if last {
		d.entries = append(rest, entry)
	} else {
		d.entries = append([]*dictEntry{entry}, rest...)
	}
	return none(), true, nil
}

// getAttribute reads an attribute of a code object.
func (v *codeValue) getAttribute(_ *Interpreter, name string) (Value, error) {
	code := v.code
	texts := map[string]string{"co_name": code.Name, "co_qualname": code.QualName, "co_filename": code.FileName}
	if value, ok := texts[name]; ok {
		return text(value), nil
	}
	numbers := map[string]int{"co_argcount": code.ArgCount, "co_posonlyargcount": code.PosOnlyArgCount, "co_kwonlyargcount": code.KwOnlyArgCount,
		"co_firstlineno": code.FirstLine, "co_flags": int(code.Flags), "co_nlocals": code.NLocals()}
	if value, ok := numbers[name]; ok {
		return integer(int64(value)), nil
	}
	kinds := map[string]byte{"co_varnames": bytecode.KindLocal, "co_cellvars": bytecode.KindCell, "co_freevars": bytecode.KindFree}
	if kind, ok := kinds[name]; ok {
		names := &Tuple{}
		for k, variable := range code.LocalsPlusNames {
			if code.LocalsPlusKinds[k]&kind != 0 {
				names.items = append(names.items, text(variable))
			}
		}
		return names, nil
	}
	return nil, unsupported(reasonAttribute, "code.%s", name)
}
