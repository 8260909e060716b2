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
	if err := in.fillDict(added, arguments); err != nil {
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
	return in.iterateKeys(table)
}

// getAttribute of a function.
func (f *Function) getAttribute(in *Interpreter, name string) (Value, error) {
	if f.byCode && name != "__get__" && name != "__call__" {
		return f.existingAttribute(in, f.object, name) // functions of the same code may have other names and attributes
	}
	switch name {
	case "__name__":
		return text(f.name), nil
	case "__qualname__":
		return text(f.qualname), nil
	case "__get__":
		return &Builtin{name: "function.__get__", self: f}, nil
	case "__call__":
		return f, nil
	}
	if value, ok := f.attributes[name]; ok {
		if pairs, made := value.(*Tuple); made && name == "__annotations__" {
			return in.annotationsOf(f, pairs)
		}
		return value, nil
	}
	if name == "__module__" {
		return text(f.module), nil
	}
	if f.object != nil && f.object.id != 0 {
		if libraryModule(f.module) {
			return in.plainGetAttribute(f.object.id, name)
		}
		return f.existingAttribute(in, &existing{f.object.id, nil}, name)
	}
	switch name {
	case "__doc__":
		return docOf(f), nil
	case "__dict__":
		return &functionDict{f}, nil
	case "__annotations__":
		return in.annotationsOf(f, &Tuple{})
	case "__code__":
		return &codeValue{code: f.code}, nil
	case "__globals__":
		return f.globals, nil
	case "__defaults__":
		if f.defaults == nil {
			return none(), nil
		}
		return &Tuple{items: f.defaults}, nil
	case "__kwdefaults__":
		if f.keywordDefaults == nil {
			return none(), nil
		}
		return f.keywordDefaults, nil
	}
	class, err := in.namedClass("function")
	if err != nil {
		return nil, err
	}
	if known, _, err := in.classLookup(class, name); err != nil || known != nil {
		if err == nil {
			err = unsupported(reasonAttribute, "function.%s", name)
		}
		return nil, err
	}
	return nil, in.raise("AttributeError", "'function' object has no attribute '"+name+"'")
}

// existingAttribute reads an attribute of a function that lives outside, whose code the capture knows.
func (f *Function) existingAttribute(in *Interpreter, object *existing, name string) (Value, error) {
	value, err := in.existingAttribute(object, name)
	if err != nil || name != "__code__" {
		return value, err
	}
	if value, err = in.real(value); err != nil {
		return nil, err
	}
	if opaque, ok := value.(*Opaque); ok {
		code := &codeValue{f.code, opaque.object}
		in.values[opaque.object.id] = code
		return code, nil
	}
	return value, nil
}

// docOf is the text that stands first among the constants of a new function's code, as MAKE_FUNCTION takes it.
func docOf(f *Function) Value {
	if len(f.code.Consts) > 0 {
		if doc, ok := f.code.Consts[0].(string); ok {
			return text(doc)
		}
	}
	return none()
}

// annotationsOf is the dict of a new function's annotations, which MAKE_FUNCTION takes as names and types in turn.
func (in *Interpreter) annotationsOf(f *Function, pairs *Tuple) (Value, error) {
	table, err := in.newDictOf(pairItems(pairs.items))
	if err != nil {
		return nil, err
	}
	f.attributes["__annotations__"] = table
	f.attributeOrder = append(f.attributeOrder, "__annotations__")
	return table, nil
}

func (f *Function) setAttribute(in *Interpreter, name string, value Value) error {
	if f.object != nil || value == nil {
		return unsupported(reasonMutation, "function attribute %s", name)
	}
	switch name {
	case "__name__", "__qualname__":
		return in.renameFunction(f, name, value)
	case "__defaults__":
		return in.setDefaults(f, value)
	case "__kwdefaults__", "__code__", "__dict__", "__closure__", "__globals__":
		return unsupported(reasonMutation, "function attribute %s", name)
	}
	f.writeAttribute(in, name, value)
	return nil
}

// setDefaults gives a function made during capture other defaults.
func (in *Interpreter) setDefaults(f *Function, value Value) error {
	value, err := in.real(value)
	if err != nil {
		return err
	}
	in.activity++
	if isNone(value) {
		f.defaults = nil
		return nil
	}
	tuple, ok := value.(*Tuple)
	if !ok {
		return in.raise("TypeError", "__defaults__ must be set to a tuple object")
	}
	f.defaults = tuple.items
	return nil
}

func (f *Function) writeAttribute(in *Interpreter, name string, value Value) {
	in.activity++
	if _, known := f.attributes[name]; !known || name == "__annotations__" {
		f.attributeOrder = append(f.attributeOrder, name)
	}
	f.attributes[name] = value
}

func (in *Interpreter) renameFunction(f *Function, name string, value Value) error {
	real, err := in.real(value)
	if err != nil {
		return err
	}
	given, ok := stringOf(real)
	if !ok {
		return in.raise("TypeError", name+" must be set to a string object")
	}
	f.writeAttribute(in, name, real)
	if name == "__name__" {
		f.name = given
	} else {
		f.qualname = given
	}
	return nil
}
