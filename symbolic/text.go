package symbolic

import (
	"strings"

	"fusee/bytecode"
)

// represent is repr(). What the host can rebuild it writes itself; containers of other objects are written item by item.
func (in *Interpreter) represent(value Value) (Value, error) {
	written, err := in.representation(value)
	if err != nil {
		return nil, err
	}
	return text(written), nil
}

// representation is the text of repr(). Containers that are being written already, be it by a __repr__ of the program, become dots.
func (in *Interpreter) representation(value Value) (string, error) {
	value, err := in.real(value)
	if err != nil {
		return "", err
	}
	if wired, ok := in.wireUnlessShared(value); ok {
		result, _, err := in.evaluatedWire("builtins.repr", wired)
		if err != nil {
			return "", err
		}
		return in.textOf(result)
	}
	if written := dots(value); written != "" {
		if in.representing[value] {
			return written, nil
		}
		in.representing[value] = true
		defer delete(in.representing, value)
	}
	switch v := value.(type) {
	case *Tuple:
		if hasMethods(v) {
			return in.representByMethod(v)
		}
		if v.class == nil {
			return in.representItems(v.items, "(", ")")
		}
	case *List:
		items, err := v.contents(in)
		if err != nil {
			return "", err
		}
		return in.representItems(items, "[", "]")
	case *Set:
		return in.representSet(v)
	case *Dict:
		if v.class == nil {
			return in.representDict(v)
		}
	case *dictView:
		items, err := v.items(in)
		if err != nil {
			return "", err
		}
		inner, err := in.representItems(items, "[", "]")
		prefix := "dict_"
		if v.dict.ordered() {
			prefix = "odict_"
		}
		return prefix + v.kind + "(" + inner + ")", err
	case *Class:
		return in.representClass(v)
	case *Instance:
		result, _, err := in.textMethod(v, "__repr__")
		if err != nil {
			return "", err
		}
		return in.textOf(result)
	}
	return "", unsupported(reasonFormatting, "%s", value.typeName())
}

// wireUnlessShared wires a value that does not lie inside itself.
func (in *Interpreter) wireUnlessShared(value Value) (bytecode.Object, bool) {
	switch value.(type) {
	case *Constant, *LibraryValue:
		return in.wire(value)
	case *Range, *SliceValue:
		return in.wire(value)
	case *Tuple, *List, *Dict, *Set:
		if len(in.representing) > 0 || reaches(value, value, map[Value]bool{}) {
			return nil, false
		}
		if set, ok := value.(*Set); ok && len(set.items) > 1 {
			return nil, false
		}
		return in.wire(value)
	}
	return nil, false
}

// representByMethod is the repr of a named tuple and the like, which their class writes.
func (in *Interpreter) representByMethod(v *Tuple) (string, error) {
	method, err := in.specialMethod(v.class, "__repr__", v)
	if err != nil {
		return "", err
	}
	if _, builtin := method.(*Builtin); builtin {
		return in.representItems(v.items, "(", ")")
	}
	result, err := in.call(method, Arguments{})
	if err != nil {
		return "", err
	}
	return in.textOf(result)
}

// dots is what stands for a container inside itself (Py_ReprEnter); "" for values that are no containers.
func dots(value Value) string {
	switch v := value.(type) {
	case *Tuple:
		return "(...)"
	case *List:
		return "[...]"
	case *Dict:
		return "{...}"
	case *Set:
		return v.typeName() + "(...)"
	case *dictView:
		return "..."
	}
	return ""
}

func (in *Interpreter) representItems(items []Value, left, right string) (string, error) {
	parts := make([]string, len(items))
	for i, item := range items {
		part, err := in.representation(item)
		if err != nil {
			return "", err
		}
		parts[i] = part
	}
	joined := strings.Join(parts, ", ")
	if left == "(" && len(parts) == 1 {
		joined += ","
	}
	return left + joined + right, nil
}

func (in *Interpreter) representSet(v *Set) (string, error) {
	if len(v.items) == 0 {
		return v.typeName() + "()", nil
	}
	walker, err := in.iterate(v)
	if err != nil {
		return "", err
	}
	items, err := in.remaining(walker)
	if err != nil {
		return "", err
	}
	inner, err := in.representItems(items, "{", "}")
	if v.frozen {
		inner = "frozenset(" + inner + ")"
	}
	return inner, err
}

func (in *Interpreter) representDict(v *Dict) (string, error) {
	entries, err := v.live(in)
	if err != nil {
		return "", err
	}
	parts := make([]string, len(entries))
	for i, entry := range entries {
		key, err := in.representation(entry.key)
		if err != nil {
			return "", err
		}
		item, err := in.representation(entry.value)
		if err != nil {
			return "", err
		}
		parts[i] = key + ": " + item
	}
	return "{" + strings.Join(parts, ", ") + "}", nil
}

// representClass is type.__repr__.
func (in *Interpreter) representClass(c *Class) (string, error) {
	meta, err := in.metaclassOf(c)
	if err != nil {
		return "", err
	}
	if hook, owner, err := in.classLookup(meta, "__repr__"); err != nil || hook != nil && owner.name != "type" {
		if err == nil {
			err = unsupported(reasonFormatting, "%s", meta.name)
		}
		return "", err
	}
	return "<class '" + strings.TrimPrefix(c.name, impostor) + "'>", nil
}

// textIn looks into a value that may be a string.
func (in *Interpreter) textIn(value Value) (content string, ok bool, err error) {
	real, err := in.real(value)
	if err != nil {
		return "", false, err
	}
	content, ok = stringOf(real)
	return content, ok, nil
}

// textOf is the text of a str that the program's own method returned.
func (in *Interpreter) textOf(value Value) (string, error) {
	value, err := in.real(value)
	if err != nil {
		return "", err
	}
	if instance, ok := value.(*Instance); ok && instance.base != nil {
		value = instance.base
	}
	written, ok := stringOf(value)
	if !ok {
		return "", unsupported(reasonFormatting, "%s", value.typeName())
	}
	return written, nil
}

// evaluatedWire runs a pure function of the host over one wired operand.
func (in *Interpreter) evaluatedWire(name string, operand bytecode.Object) (Value, bool, error) {
	outcome, err := in.session.Evaluate(nameWire(name), []bytecode.Object{operand}, nil)
	if err != nil {
		return nil, true, err
	}
	return modelled(in.outcomeValue(outcome))
}

// objectWireOf is the reference to the live object of a value.
func objectWireOf(value Value) (bytecode.Object, bool) {
	object := objectOf(value)
	if object == nil {
		return nil, false
	}
	return int64(object.id), true
}

// textMethod is the __repr__ or __str__ of an instance; object's own __repr__ shows an address, which only Python knows.
func (in *Interpreter) textMethod(v *Instance, name string) (Value, bool, error) {
	method, err := in.specialMethod(v.class, name, v)
	if err != nil {
		return nil, true, err
	}
	if builtin, ok := method.(*Builtin); ok && builtin.name == "object.__repr__" {
		return nil, true, unsupported(reasonFormatting, "%s", v.class.name)
	}
	value, err := in.call(method, Arguments{})
	if err != nil {
		return nil, true, err
	}
	if value, err = in.real(value); err != nil {
		return nil, true, err
	}
	if _, ok := stringOf(value); !ok {
		if instance, isInstance := value.(*Instance); !isInstance || instance.base == nil {
			return nil, true, in.raise("TypeError", name+" returned non-string (type "+shortName(value.typeName())+")")
		}
	}
	return value, true, nil
}

// representAny is repr() of what may be an instance with a base value that lives outside.
func (in *Interpreter) representAny(value Value) (Value, error) {
	value, err := in.real(value)
	if err != nil {
		return nil, err
	}
	switch v := value.(type) {
	case *Instance:
		if !v.hasHostBase() {
			result, _, err := in.textMethod(v, "__repr__")
			return result, err
		}
	case *Tuple, *List, *Dict, *Set, *dictView, *Class:
		return in.represent(value)
	}
	return in.evaluated("builtins.repr", value)
}
