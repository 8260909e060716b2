package symbolic

import (
	"fmt"

	"github.com/cockroachdb/errors"
)

// CPython's Py_TPFLAGS_SEQUENCE and Py_TPFLAGS_MAPPING: what the patterns of match take for a sequence or a mapping.
const (
	sequenceFlag = 1 << 5
	mappingFlag  = 1 << 6
)

// matchKind is MATCH_MAPPING and MATCH_SEQUENCE.
func (in *Interpreter) matchKind(f *Frame, mapping bool) error {
	value, err := in.real(f.peek(1))
	if err != nil {
		return err
	}
	wanted := int64(sequenceFlag)
	if mapping {
		wanted = mappingFlag
	}
	flags, err := in.patternFlags(value)
	if err == nil {
		f.push(boolean(flags&wanted != 0))
	}
	return err
}

func (in *Interpreter) patternFlags(value Value) (int64, error) {
	switch value.(type) {
	case *Dict, *fieldsDict, *mappingProxy:
		return mappingFlag, nil
	case *List, *Tuple, *Range, *Deque:
		return sequenceFlag, nil
	case *Instance, *Opaque:
		class, err := in.classOf(value)
		if err != nil {
			return 0, err
		}
		order, err := in.mroOf(class)
		if err != nil {
			return 0, err
		}
		for _, base := range order {
			if base.made != nil {
				continue
			}
			flags, err := in.classFlags(base)
			if err != nil || flags&(sequenceFlag|mappingFlag) != 0 {
				return flags, err
			}
		}
	}
	return 0, nil
}

func (in *Interpreter) matchKeys(f *Frame) error {
	keys, ok := f.peek(1).(*Tuple)
	if !ok {
		return errors.New("MATCH_KEYS without a tuple of keys")
	}
	subject, err := in.real(f.peek(2))
	if err != nil {
		return err
	}
	read, err := in.keyReader(subject)
	if err != nil {
		return err
	}
	values := &Tuple{}
	for _, key := range keys.items {
		value, err := read(key)
		if err != nil {
			return err
		}
		if value == nil {
			f.push(none())
			return nil
		}
		values.items = append(values.items, value)
	}
	f.push(values)
	return nil
}

// keyReader reads a mapping's values without making missing ones: through get(key, a value of its own) where it is no dict.
func (in *Interpreter) keyReader(subject Value) (func(Value) (Value, error), error) {
	if dict, ok := subject.(*Dict); ok {
		return func(key Value) (Value, error) { return dict.lookup(in, key) }, nil
	}
	get, err := in.getAttribute(subject, "get")
	if err != nil {
		return nil, err
	}
	missing := &Instance{class: in.builtinClass("object"), fields: newFieldTable(false)}
	return func(key Value) (Value, error) {
		value, err := in.call(get, Arguments{Positional: []Value{key, missing}})
		if err != nil || value == Value(missing) {
			return nil, err
		}
		return value, nil
	}, nil
}

func (in *Interpreter) matchClass(f *Frame, count int) error {
	names, ok := f.pop().(*Tuple)
	if !ok {
		return errors.New("MATCH_CLASS without a tuple of names")
	}
	target, err := in.real(f.pop())
	if err != nil {
		return err
	}
	subject, err := in.real(f.pop())
	if err != nil {
		return err
	}
	class, ok := target.(*Class)
	if !ok {
		return in.raise("TypeError", "called match pattern must be a class")
	}
	matches, err := in.isInstance(subject, class)
	if err != nil {
		return err
	}
	if !matches {
		f.push(none())
		return nil
	}
	values, err := in.matchAttributes(class, subject, count, names.items)
	if err != nil {
		return err
	}
	if values == nil {
		f.push(none())
	} else {
		f.push(&Tuple{items: values})
	}
	return nil
}

// matchAttributes reads the positional patterns through __match_args__ and the keyword patterns by name; nil where one is missing.
func (in *Interpreter) matchAttributes(class *Class, subject Value, count int, names []Value) ([]Value, error) {
	values := []Value{}
	if count > 0 {
		positional, self, err := in.matchArguments(class, count)
		if err != nil {
			return nil, err
		}
		if self {
			values = append(values, subject)
		}
		names = append(append([]Value{}, positional...), names...)
	}
	seen := map[string]bool{}
	for _, name := range names {
		real, err := in.real(name)
		if err != nil {
			return nil, err
		}
		attribute, ok := stringOf(real)
		if !ok {
			return nil, in.raise("TypeError", "__match_args__ elements must be strings (got "+shortName(real.typeName())+")")
		}
		if seen[attribute] {
			return nil, in.raise("TypeError", class.baseName()+"() got multiple sub-patterns for attribute '"+attribute+"'")
		}
		seen[attribute] = true
		value, err := in.optionalAttribute(subject, attribute)
		if err != nil || value == nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, nil
}

// matchArguments names the attributes of the positional patterns; self tells that the one pattern is for the subject itself.
func (in *Interpreter) matchArguments(class *Class, count int) (positional []Value, self bool, err error) {
	table, err := in.optionalAttribute(class, "__match_args__")
	if err != nil {
		return nil, false, err
	}
	allowed := 0
	if table == nil {
		for _, base := range append([]string{class.name}, class.baseNames...) {
			self = self || matchesSelf(base)
		}
		if self {
			allowed = 1
		}
	} else {
		if table, err = in.real(table); err != nil {
			return nil, false, err
		}
		tuple, ok := table.(*Tuple)
		if !ok || tuple.class != nil {
			return nil, false, in.raise("TypeError", class.baseName()+".__match_args__ must be a tuple (got "+shortName(table.typeName())+")")
		}
		positional, allowed = tuple.items, len(tuple.items)
	}
	if count > allowed {
		return nil, false, in.raise("TypeError", fmt.Sprintf("%s() accepts %d positional sub-pattern%s (%d given)", class.baseName(), allowed, plural(allowed), count))
	}
	if self {
		return nil, true, nil
	}
	return positional[:count], false, nil
}

// matchesSelf lists the builtin types whose single positional pattern is the subject itself (PEP 634).
func matchesSelf(name string) bool {
	switch name {
	case "bool", "bytearray", "bytes", "dict", "float", "frozenset", "int", "list", "set", "str", "tuple":
		return true
	}
	return false
}
