package symbolic

import (
	"strings"

	"fusee/bytecode"
)

// fieldsDict is an instance's __dict__, seen as a dict.
type fieldsDict struct{ owner *Instance }

func (v *fieldsDict) typeName() string { return "dict" }

func (v *fieldsDict) getItem(in *Interpreter, key Value) (Value, error) {
	key, err := in.real(key)
	if err != nil {
		return nil, err
	}
	name, ok := stringOf(key)
	if !ok {
		return nil, in.raiseWith(in.builtinClass("KeyError"), key)
	}
	value, err := v.owner.field(in, name)
	if err != nil {
		return nil, err
	}
	if value == nil {
		return nil, in.raiseWith(in.builtinClass("KeyError"), key)
	}
	return value, nil
}

func (v *fieldsDict) setItem(in *Interpreter, key, value Value) error {
	key, err := in.real(key)
	if err != nil {
		return err
	}
	name, ok := stringOf(key)
	if !ok {
		return unsupported(reasonMutation, "__dict__ with a key that is no text")
	}
	if v.owner.isThreadLocal() && strings.HasPrefix(name, "__") {
		return unsupported(reasonMutation, "__dict__[%s] of a threading.local", name)
	}
	if value == nil {
		if _, err := v.getItem(in, key); err != nil {
			return err
		}
	}
	in.writeField(v.owner, name, value)
	return nil
}

func (v *fieldsDict) contains(in *Interpreter, item Value) (bool, error) {
	name, ok, err := in.textIn(item)
	if err != nil || !ok {
		return false, err
	}
	value, err := v.owner.field(in, name)
	return value != nil, err
}

func (v *fieldsDict) getAttribute(in *Interpreter, name string) (Value, error) {
	if name == "get" {
		return &Builtin{name: "fields.get", self: v}, nil
	}
	dict, err := v.snapshot(in)
	if err != nil {
		return nil, err
	}
	switch name {
	case "items", "keys", "values", "copy":
		return in.builtinAttribute(dict, name)
	case "pop", "popitem", "update", "setdefault", "clear":
		return &Builtin{name: "fields." + name, self: v}, nil
	}
	return nil, unsupported(reasonAttribute, "__dict__.%s", name)
}

// snapshot copies the attributes into a dict, guarding their names and order.
func (v *fieldsDict) snapshot(in *Interpreter) (*Dict, error) {
	table := v.owner.fields
	if v.owner.isThreadLocal() {
		return nil, unsupported(reasonAttribute, "all of the __dict__ of a threading.local")
	}
	if v.owner.object != nil && v.owner.object.source != nil {
		keys := []bytecode.Object{}
		for _, name := range table.found {
			if !table.slots[name] {
				keys = append(keys, name)
			}
		}
		v.owner.object.source.Child("dict", nil).Require(in.reason(), "keys", &bytecode.List{Items: keys})
	}
	dict := newDict()
	for _, name := range table.order {
		value, err := v.owner.field(in, name)
		if err != nil {
			return nil, err
		}
		if value == nil || table.slots[name] {
			continue
		}
		if err := dict.setItem(in, text(name), value); err != nil {
			return nil, err
		}
	}
	return dict, nil
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
