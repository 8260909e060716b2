package symbolic

import (
	"fmt"
	"strings"
)

func (in *Interpreter) listMethod(l *List, method string, arguments Arguments) (Value, bool, error) {
	values := arguments.Positional
	if method == "append" && len(values) == 1 {
		in.listAppend(l, values[0])
		return none(), true, nil
	}
	if method == "extend" && len(values) == 1 {
		return none(), true, in.extendList(l, values[0])
	}
	items, err := l.contents(in)
	if err != nil {
		return nil, true, err
	}
	switch method {
	case "copy":
		return newList(append([]Value{}, items...)), true, nil
	case "clear":
		return none(), true, in.replaceList(l, []Value{})
	case "reverse":
		return none(), true, in.replaceList(l, reversedValues(items))
	case "__iadd__":
		return l, true, in.extendList(l, values[0])
	case "__imul__":
		return modelled(in.binary(binaryOperators[13+5], l, values[0]))
	case "insert", "pop", "remove", "index", "count":
		return in.listSearch(l, items, method, values)
	case "sort":
		sorted, err := in.sortItems(items, arguments.Keywords)
		if err != nil {
			return nil, true, err
		}
		return none(), true, in.replaceList(l, sorted)
	}
	return nil, false, nil
}

func (in *Interpreter) listSearch(l *List, items []Value, method string, values []Value) (Value, bool, error) {
	switch method {
	case "insert":
		position, err := in.intArgument(values[0])
		if err != nil {
			return nil, true, err
		}
		position = clampIndex(position, len(items))
		return none(), true, in.replaceList(l, insertValue(append([]Value{}, items...), int(position), values[1]))
	case "pop":
		return in.listPop(l, items, values)
	}
	first, end, err := in.searchBounds(method, items, values)
	if err != nil {
		return nil, true, err
	}
	found, count := -1, 0
	for i, item := range items {
		if i < first || i >= end {
			continue
		}
		same, err := in.sameOrEqual(item, values[0])
		if err != nil {
			return nil, true, err
		}
		if same {
			count++
			if found < 0 {
				found = i
			}
			if method != "count" {
				break
			}
		}
	}
	switch {
	case method == "count":
		return integer(int64(count)), true, nil
	case found < 0 && method == "remove":
		return nil, true, in.raise("ValueError", "list.remove(x): x not in list")
	case found < 0 && l == nil:
		return nil, true, in.raise("ValueError", "tuple.index(x): x not in tuple")
	case found < 0:
		return nil, true, in.raiseAbsent(values[0], "list")
	case method == "remove":
		return none(), true, in.replaceList(l, append(append([]Value{}, items[:found]...), items[found+1:]...))
	}
	return integer(int64(found)), true, nil
}

// raiseAbsent is the ValueError of index() of a list or a deque.
func (in *Interpreter) raiseAbsent(item Value, container string) error {
	shown, err := in.representation(item)
	if err != nil {
		return err
	}
	return in.raise("ValueError", shown+" is not in "+container)
}

// searchBounds are the bounds within which list.index and its kin look: those of index may be given.
func (in *Interpreter) searchBounds(method string, items, values []Value) (first, end int, err error) {
	first, end = 0, len(items)
	if len(values) == 1 {
		return first, end, nil
	}
	if method != "index" || len(values) == 0 || len(values) > 3 {
		return 0, 0, unsupported(reasonBuiltinCall, "list.%s with %d arguments", method, len(values))
	}
	for k, value := range values[1:] {
		bound, err := in.sliceIndex(value)
		if err != nil {
			return 0, 0, err
		}
		*[]*int{&first, &end}[k] = int(clampIndex(bound, len(items)))
	}
	return first, end, nil
}

func clampIndex(position int64, length int) int64 {
	if position < 0 {
		position = max(position+int64(length), 0)
	}
	return min(position, int64(length))
}

func (in *Interpreter) listPop(l *List, items []Value, values []Value) (Value, bool, error) {
	position := int64(-1)
	if len(values) == 1 {
		var err error
		if position, err = in.intArgument(values[0]); err != nil {
			return nil, true, err
		}
	}
	if len(items) == 0 {
		return nil, true, in.raise("IndexError", "pop from empty list")
	}
	if position < 0 {
		position += int64(len(items))
	}
	if position < 0 || position >= int64(len(items)) {
		return nil, true, in.raise("IndexError", "pop index out of range")
	}
	item := items[position]
	return item, true, in.replaceList(l, append(append([]Value{}, items[:position]...), items[position+1:]...))
}

// intArgument reads an index argument.
func (in *Interpreter) intArgument(value Value) (int64, error) {
	index, err := in.indexValue(value)
	if err != nil {
		return 0, err
	}
	n, ok := constantInt(index)
	if !ok {
		return 0, unsupported(reasonItem, "a huge index")
	}
	return n, nil
}

func (in *Interpreter) tupleMethod(t *Tuple, method string, arguments Arguments) (Value, bool, error) {
	if method == "numel" && t.class != nil && t.class.name == "torch.Size" && len(arguments.Positional) == 0 {
		return in.sizeProduct(t)
	}
	if method != "index" && method != "count" || len(arguments.Positional) == 0 || len(arguments.Keywords) > 0 {
		return nil, false, nil
	}
	return in.listSearch(nil, t.items, method, arguments.Positional)
}

// sizeProduct is torch.Size.numel.
func (in *Interpreter) sizeProduct(t *Tuple) (Value, bool, error) {
	var total Value = integer(1)
	for _, item := range t.items {
		var err error
		if total, err = in.binary(operatorOf("mul"), total, item); err != nil {
			return nil, true, err
		}
	}
	return total, true, nil
}

func (in *Interpreter) dictMethod(d *Dict, method string, arguments Arguments) (Value, bool, error) {
	values := arguments.Positional
	switch method {
	case "keys", "values", "items":
		return &dictView{dict: d, kind: method}, true, nil
	case "copy":
		return modelled(d.copy(in))
	case "get":
		value, err := d.lookup(in, values[0])
		if err == nil && value == nil {
			value = none()
			if len(values) > 1 {
				value = values[1]
			}
		}
		return value, true, err
	case "setdefault":
		return in.dictSetDefault(d, values)
	case "pop":
		return in.dictPop(d, values)
	case "update":
		return none(), true, in.fillDict(d, arguments)
	case "clear":
		entries, err := d.live(in)
		for _, entry := range entries {
			if err == nil {
				err = d.setItem(in, entry.key, nil)
			}
		}
		return none(), true, err
	case "popitem":
		return in.dictPopItem(d, arguments)
	case "move_to_end":
		return in.moveToEnd(d, arguments)
	}
	return nil, false, nil
}

func (in *Interpreter) dictSetDefault(d *Dict, values []Value) (Value, bool, error) {
	value, err := in.lookupBefore(d, values[0])
	if err != nil || value != nil {
		return value, true, err
	}
	value = argumentOr(values, 1, none())
	return value, true, d.setItem(in, values[0], value)
}

// lookupBefore looks for a key that is then stored or deleted: CPython searches once, so that a method of the key that does more than compute
// must not be called again.
func (in *Interpreter) lookupBefore(d *Dict, key Value) (Value, error) {
	before := in.activity
	value, err := d.lookup(in, key)
	if err == nil && in.activity != before {
		err = unsupported(reasonHash, "%s, whose __hash__ or __eq__ does more than compute", key.typeName())
	}
	return value, err
}

func (in *Interpreter) dictPop(d *Dict, values []Value) (Value, bool, error) {
	value, err := in.lookupBefore(d, values[0])
	switch {
	case err != nil:
		return nil, true, err
	case value != nil:
		return value, true, d.setItem(in, values[0], nil)
	case len(values) > 1:
		return values[1], true, nil
	}
	return nil, true, in.raiseKeyError(values[0])
}

func (in *Interpreter) dictPopItem(d *Dict, arguments Arguments) (Value, bool, error) {
	ordered := d.ordered()
	values, ok := bindNamed(arguments, "last")
	if !ok || values[0] != nil && !ordered {
		return nil, true, unsupported(reasonBuiltinCall, "popitem with these arguments")
	}
	entries, err := d.live(in)
	if err != nil {
		return nil, true, err
	}
	if len(entries) == 0 && ordered {
		return nil, true, in.raise("KeyError", "dictionary is empty")
	}
	if len(entries) == 0 {
		return nil, true, in.raise("KeyError", "popitem(): dictionary is empty")
	}
	taken := entries[len(entries)-1]
	if values[0] != nil {
		last, err := in.truth(values[0])
		if err != nil {
			return nil, true, err
		}
		if !last {
			taken = entries[0]
		}
	}
	pair := &Tuple{items: []Value{taken.key, taken.value}}
	return pair, true, d.setItem(in, taken.key, nil)
}

// fillDict is dict.update with the arguments of a call.
func (in *Interpreter) fillDict(d *Dict, arguments Arguments) error {
	if len(arguments.Positional) > 0 {
		if err := in.mergeInto(d, arguments.Positional[0]); err != nil {
			return err
		}
	}
	return d.setAll(in, keywordItems(arguments.Keywords))
}

// mergeInto adds a mapping's items, or key-value pairs, to a dict.
func (in *Interpreter) mergeInto(d *Dict, source Value) error {
	source, err := in.real(source)
	if err != nil {
		return err
	}
	if _, opaque := source.(*Opaque); opaque {
		return unsupported(reasonItem, "a dict from %s", source.typeName())
	}
	mapping, err := in.asMapping(source)
	if err != nil {
		return err
	}
	if mapping != nil {
		return in.updateDict(d, mapping)
	}
	return in.mergePairs(d, source)
}

// constantMethod runs text methods that take iterables; all other methods of constants are pure and run in the host.
func (in *Interpreter) constantMethod(c *Constant, method string, arguments Arguments) (Value, bool, error) {
	if _, isText := c.Value.(string); !isText {
		return nil, false, nil
	}
	switch method {
	case "join":
		if argument, ok := in.single(arguments); ok {
			items, err := in.iterableItems(argument)
			if err != nil {
				return nil, true, err
			}
			value, ok, err := in.evaluateConstant("str.join", c, newList(items))
			return value, ok, err
		}
	case "format":
		for _, value := range arguments.Positional {
			if real, err := in.real(value); err != nil || isTensor(real) {
				return nil, true, unsupported(reasonFormatting, "a tensor")
			}
		}
	}
	return nil, false, nil
}

// checkExcess refuses arguments of object.__init__ as object_init of CPython's typeobject.c does: a class that overrides __init__ gets none
// through, nor does one that leaves __new__ to object.
func (in *Interpreter) checkExcess(class *Class, arguments Arguments) error {
	if len(arguments.Positional)+len(arguments.Keywords) == 0 {
		return nil
	}
	_, initOwner, err := in.classLookup(class, "__init__")
	if err != nil {
		return err
	}
	if initOwner != nil && initOwner.name != "object" {
		return in.raise("TypeError", "object.__init__() takes exactly one argument (the instance to initialize)")
	}
	_, newOwner, err := in.classLookup(class, "__new__")
	if err == nil && (newOwner == nil || newOwner.name == "object") {
		err = in.raise("TypeError", class.baseName()+".__init__() takes exactly one argument (the instance to initialize)")
	}
	return err
}

// checkExcessOfNew refuses arguments of object.__new__ as object_new of CPython's typeobject.c does: a class that overrides __new__ gets none
// through, nor does one that leaves __init__ to object.
func (in *Interpreter) checkExcessOfNew(class *Class, arguments Arguments) error {
	if len(arguments.Positional)+len(arguments.Keywords) == 0 {
		return nil
	}
	overrides, err := in.overridesNew(class)
	if err != nil {
		return err
	}
	if overrides {
		return in.raise("TypeError", "object.__new__() takes exactly one argument (the type to instantiate)")
	}
	_, owner, err := in.classLookup(class, "__init__")
	if err == nil && (owner == nil || owner.name == "object") {
		err = in.raise("TypeError", class.baseName()+"() takes no arguments")
	}
	return err
}

// overridesNew tells whether tp_new of a class is another than object's: one that a base overrode stays so, even where the class itself
// names object.__new__ again (update_one_slot of CPython's typeobject.c).
func (in *Interpreter) overridesNew(class *Class) (bool, error) {
	order, err := in.mroOf(class)
	if err != nil {
		return false, err
	}
	for _, along := range order {
		own, err := in.ownAttribute(along, "__new__")
		if err != nil {
			return false, err
		}
		if builtin, ok := own.(*Builtin); own != nil && (!ok || !strings.HasSuffix(builtin.name, "object.__new__")) {
			return true, nil
		}
	}
	return false, nil
}

// objectMethod runs the methods that object, BaseException and other builtin bases give to instances.
func (in *Interpreter) objectMethod(v *Instance, name string, arguments Arguments) (Value, bool, error) {
	values := arguments.Positional
	switch name {
	case "object.__init__":
		return none(), true, in.checkExcess(v.class, arguments)
	case "object.__setattr__", "BaseException.__setattr__", "object.__delattr__", "BaseException.__delattr__":
		return in.rawSetAttribute(v, values)
	case "object.__getattribute__", "BaseException.__getattribute__":
		key, err := in.real(values[0])
		if err != nil {
			return nil, true, err
		}
		attribute, _ := stringOf(key)
		return modelled(in.genericGetAttribute(v, attribute))
	case "object.__eq__", "object.__ne__":
		same, err := in.identical(v, values[0])
		if err != nil || !same {
			return notImplementedValue(), true, err
		}
		return boolean(name == "object.__eq__"), true, nil
	case "object.__str__":
		return in.textMethod(v, "__repr__")
	case "object.__init_subclass__":
		return none(), true, nil
	case "object.__reduce_ex__":
		if reduced, done, err := in.reduceObject(v, values); done || err != nil {
			return reduced, true, err
		}
	}
	if v.class.isSubclassOf("BaseException") {
		if v.exception == nil {
			return nil, true, unsupported(reasonMutation, "an existing exception")
		}
		return in.exceptionMethod(v, shortName(name), arguments)
	}
	return in.baseMethod(v, name, arguments)
}

func (in *Interpreter) rawSetAttribute(v *Instance, values []Value) (Value, bool, error) {
	key, err := in.real(values[0])
	if err != nil {
		return nil, true, err
	}
	attribute, ok := stringOf(key)
	if !ok {
		return nil, true, unsupported(reasonMutation, "an attribute whose name is no text")
	}
	var value Value
	if len(values) > 1 {
		value = values[1]
	}
	in.tail = nil
	return none(), true, in.genericSetAttribute(v, attribute, value)
}

func (in *Interpreter) fieldsMethod(v *fieldsDict, method string, arguments Arguments) (Value, bool, error) {
	values := arguments.Positional
	if method == "get" && len(values) > 0 {
		found, err := v.contains(in, values[0])
		if err != nil {
			return nil, true, err
		}
		if found {
			return modelled(v.getItem(in, values[0]))
		}
		if len(values) > 1 {
			return values[1], true, nil
		}
		return none(), true, nil
	}
	switch method {
	case "pop", "popitem", "update", "setdefault", "clear":
		return v.change(in, method, arguments)
	}
	return nil, false, nil
}

// stringify is str() of anything whose text does not depend on a tensor or an address.
func (in *Interpreter) stringify(value Value) (Value, error) {
	value, err := in.real(value)
	if err != nil {
		return nil, err
	}
	switch v := value.(type) {
	case *Constant:
		switch s := v.Value.(type) {
		case string:
			return v, nil
		case int64:
			return text(fmt.Sprint(s)), nil
		}
	case *Instance:
		if !v.hasHostBase() {
			result, _, err := in.textMethod(v, "__str__")
			return result, err
		}
	case *Tensor:
		return nil, unsupported(reasonFormatting, "a tensor")
	case *Class, *List, *Tuple, *Dict, *Set, *dictView:
		return in.represent(value)
	}
	return in.evaluated("builtins.str", value)
}

func (in *Interpreter) buildString(f *Frame, count int) error {
	joined := ""
	for _, part := range f.popMany(count) {
		s, ok := stringOf(part)
		if !ok {
			return unsupported(reasonFormatting, "%s", part.typeName())
		}
		joined += s
	}
	f.push(text(joined))
	return nil
}

// formatValue is FORMAT_VALUE: conversion, then format() with a specification.
func (in *Interpreter) formatValue(f *Frame, flags int) error {
	var specification Value = text("")
	if flags&4 != 0 {
		specification = f.pop()
	}
	value, err := in.real(f.pop())
	if err != nil {
		return err
	}
	if isTensor(value) {
		return unsupported(reasonFormatting, "a tensor")
	}
	switch flags & 3 {
	case 1:
		value, err = in.stringify(value)
	case 2:
		value, err = in.representAny(value)
	case 3:
		value, err = in.evaluated("builtins.ascii", value)
	}
	if err != nil {
		return err
	}
	if s, _ := stringOf(specification); s == "" {
		if instance, ok := value.(*Instance); ok && instance.base == nil {
			hook, owner, err := in.classLookup(instance.class, "__format__")
			if err != nil || hook != nil && owner.name != "object" {
				return unsupported(reasonFormatting, "%s", instance.class.name)
			}
			return in.pushResult(f)(in.stringify(value))
		}
	}
	return in.pushResult(f)(in.evaluated("builtins.format", value, specification))
}

// evaluated runs a pure function in the host or breaks.
func (in *Interpreter) evaluated(name string, operands ...Value) (Value, error) {
	value, ok, err := in.evaluateConstant(name, operands...)
	if err == nil && !ok {
		err = unsupported(reasonFormatting, "%s", operands[0].typeName())
	}
	return value, err
}
