package symbolic

import "strings"

// hiddenPrefix stands before names in the attributes of a function that are keys of its __dict__ alone: a function object has a place of its
// own for an attribute of that name, and shows that.
const hiddenPrefix = "__dict__."

// functionDict is the __dict__ of a function made during capture.
type functionDict struct{ owner *Function }

func (v *functionDict) typeName() string { return "dict" }

// snapshot copies the attributes that stand in the dict: those which have no place of their own in a function object.
func (v *functionDict) snapshot(in *Interpreter) (*Dict, error) {
	table := newDict()
	for _, name := range v.owner.attributeOrder {
		switch name {
		case "__name__", "__qualname__", "__doc__", "__module__", "__annotations__":
			continue
		}
		if err := table.setItem(in, text(strings.TrimPrefix(name, hiddenPrefix)), v.owner.attributes[name]); err != nil {
			return nil, err
		}
	}
	return table, nil
}

func (v *functionDict) getItem(in *Interpreter, key Value) (Value, error) {
	table, err := v.snapshot(in)
	if err != nil {
		return nil, err
	}
	return table.getItem(in, key)
}

func (v *functionDict) contains(in *Interpreter, item Value) (bool, error) {
	table, err := v.snapshot(in)
	if err != nil {
		return false, err
	}
	return table.contains(in, item)
}

func (v *functionDict) length(in *Interpreter) (int, error) {
	table, err := v.snapshot(in)
	if err != nil {
		return 0, err
	}
	return table.length(in)
}

func (v *functionDict) setItem(in *Interpreter, key, value Value) error {
	key, err := in.real(key)
	if err != nil {
		return err
	}
	name, ok := stringOf(key)
	if !ok || value == nil {
		return unsupported(reasonMutation, "a function's __dict__[%s]", name)
	}
	if strings.HasPrefix(name, "__") && name != "__wrapped__" {
		name = hiddenPrefix + name
	}
	v.owner.writeAttribute(in, name, value)
	return nil
}

// getAttribute gives the methods of the dict: update changes the function, the others see a copy.
func (v *functionDict) getAttribute(in *Interpreter, name string) (Value, error) {
	switch name {
	case "update":
		return &Builtin{name: "function.__dict__.update", self: v}, nil
	case "get", "items", "keys", "values", "copy":
		table, err := v.snapshot(in)
		if err != nil {
			return nil, err
		}
		return in.builtinAttribute(table, name)
	}
	return nil, unsupported(reasonAttribute, "function.__dict__.%s", name)
}

// update writes the items of a mapping and keywords as attributes.
func (v *functionDict) update(in *Interpreter, arguments Arguments) (Value, bool, error) {
	added := newDict()
	if _, _, err := in.dictUpdateMethod(added, arguments); err != nil {
		return nil, true, err
	}
	for _, entry := range added.entries {
		if err := v.setItem(in, entry.key, entry.value); err != nil {
			return nil, true, err
		}
	}
	return none(), true, nil
}

func (v *functionDict) iterate(in *Interpreter) (iterator, error) {
	table, err := v.snapshot(in)
	if err != nil {
		return nil, err
	}
	walker, err := in.iterate(table)
	if err != nil {
		return nil, err
	}
	return walker.(iterator), nil
}
