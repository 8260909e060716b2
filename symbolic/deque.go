package symbolic

import (
	"fusee/bytecode"
	"fusee/trace"
)

// Deque is a collections.deque.
type Deque struct {
	items   []Value
	longest int64 // maxlen; -1 for none
	state   int   // grows with every change that iterators notice
	object  *existing
	changed bool
}

// describedDeque reads all items of an existing deque.
func (in *Interpreter) describedDeque(d *trace.Description, object *existing) (Value, error) {
	class, err := in.subclassOf(d.TypeID, "collections.deque")
	if err != nil {
		return nil, err
	}
	if _, absent := d.Payload.(bytecode.NoneType); absent || class != nil {
		return &Opaque{object, "deque"}, nil
	}
	if object.source == nil {
		object.source = in.objectSource(d.ID)
	}
	deque := &Deque{object: object}
	items := trace.Items(d.Payload)
	object.source.Require(in.reason(), "len", int64(len(items)))
	for i, item := range items {
		value, err := in.child(item, object.source, "item", int64(i))
		if err != nil {
			return nil, err
		}
		deque.items = append(deque.items, value)
	}
	limit, err := in.hostAttribute(d.ID, "maxlen")
	if err != nil {
		return nil, err
	}
	deque.longest = -1
	if n, ok := constantInt(limit); ok {
		deque.longest = n
	}
	in.guardConstant(object.source.Child("attr", "maxlen"), limit.(*Constant).Value)
	return deque, nil
}

// dequeEffect brings an existing deque to its new contents.
type dequeEffect struct{ deque *Deque }

func (e *dequeEffect) apply(cg *generator) error {
	return cg.callHelper("replace_deque", e.deque, &Tuple{items: e.deque.items})
}

// changing notes a change of a deque, which outlives the call where the deque does.
func (d *Deque) changing(in *Interpreter) {
	in.changeOutside(d.object, &d.changed, &dequeEffect{d})
}

func (d *Deque) typeName() string { return "collections.deque" }

// limit is the attribute maxlen.
func (d *Deque) limit() Value {
	if d.longest < 0 {
		return none()
	}
	return integer(d.longest)
}

func (in *Interpreter) constructDeque(arguments Arguments) (Value, bool, error) {
	values, ok := bindNamed(arguments, "iterable", "maxlen")
	if !ok {
		return nil, true, unsupported(reasonBuiltinCall, "collections.deque with these arguments")
	}
	deque := &Deque{longest: -1}
	limit, err := in.real(orNone(values[1]))
	if err != nil {
		return nil, true, err
	}
	if !isNone(limit) {
		if deque.longest, err = in.intArgument(limit); err != nil {
			return nil, true, err
		}
		if deque.longest < 0 {
			return nil, true, in.raise("ValueError", "maxlen must be non-negative")
		}
	}
	if values[0] == nil {
		return deque, true, nil
	}
	return deque, true, in.dequeExtend(deque, values[0], false)
}

// replace gives a deque new contents, in a change that iterators notice.
func (d *Deque) replace(in *Interpreter, items []Value) {
	d.changing(in)
	d.state++
	d.items = items
}

func (d *Deque) push(in *Interpreter, item Value, left bool) {
	items := append([]Value{}, d.items...)
	if left {
		items = insertValue(items, 0, item)
	} else {
		items = append(items, item)
	}
	if d.longest >= 0 && int64(len(items)) > d.longest {
		if left {
			items = items[:d.longest]
		} else {
			items = items[int64(len(items))-d.longest:]
		}
	}
	d.replace(in, items)
}

// dequeExtend adds the items one by one, as CPython does; a deque extended by itself is copied first.
func (in *Interpreter) dequeExtend(d *Deque, source Value, left bool) error {
	source, err := in.real(source)
	if err != nil {
		return err
	}
	if source == Value(d) {
		source = newList(append([]Value{}, d.items...))
	}
	return in.walk(source, func(item Value) error {
		d.push(in, item, left)
		return nil
	})
}

func (in *Interpreter) dequeMethod(d *Deque, method string, arguments Arguments) (Value, bool, error) {
	values := arguments.Positional
	if len(arguments.Keywords) > 0 {
		return nil, false, nil
	}
	if method == "index" && len(values) > 0 && len(values) < 4 {
		return in.dequeIndex(d, values)
	}
	switch len(values) {
	case 0:
		return in.dequeMethodAlone(d, method)
	case 1:
		return in.dequeMethodOf(d, method, values[0])
	case 2:
		if method == "insert" {
			return in.dequeInsert(d, values[0], values[1])
		}
	}
	return nil, false, nil
}

// dequeMethodAlone runs the methods without arguments.
func (in *Interpreter) dequeMethodAlone(d *Deque, method string) (Value, bool, error) {
	switch method {
	case "pop", "popleft":
		last := len(d.items) - 1
		switch {
		case last < 0:
			return nil, true, in.raise("IndexError", "pop from an empty deque")
		case method == "popleft":
			item := d.items[0]
			d.replace(in, d.items[1:])
			return item, true, nil
		}
		item := d.items[last]
		d.replace(in, d.items[:last:last])
		return item, true, nil
	case "clear":
		d.replace(in, nil)
		return none(), true, nil
	case "copy", "__copy__":
		return &Deque{items: append([]Value{}, d.items...), longest: d.longest}, true, nil
	case "reverse":
		d.changing(in)
		d.items = reversedValues(d.items)
		return none(), true, nil
	case "rotate":
		return in.dequeRotate(d, integer(1))
	case "__reversed__":
		return d.iterator(in, true), true, nil
	}
	return nil, false, nil
}

// dequeMethodOf runs the methods of one argument.
func (in *Interpreter) dequeMethodOf(d *Deque, method string, argument Value) (Value, bool, error) {
	switch method {
	case "append", "appendleft":
		d.push(in, argument, method == "appendleft")
		return none(), true, nil
	case "extend", "extendleft":
		return none(), true, in.dequeExtend(d, argument, method == "extendleft")
	case "rotate":
		return in.dequeRotate(d, argument)
	case "count", "remove":
		return in.dequeSearch(d, method, argument)
	}
	return nil, false, nil
}

func (in *Interpreter) dequeRotate(d *Deque, argument Value) (Value, bool, error) {
	steps, err := in.intArgument(argument)
	if err != nil {
		return nil, true, err
	}
	if length := int64(len(d.items)); length > 1 {
		cut := ((-steps)%length + length) % length
		d.replace(in, append(append([]Value{}, d.items[cut:]...), d.items[:cut]...))
	}
	return none(), true, nil
}

func (in *Interpreter) dequeInsert(d *Deque, position, item Value) (Value, bool, error) {
	at, err := in.intArgument(position)
	if err != nil {
		return nil, true, err
	}
	if d.longest >= 0 && int64(len(d.items)) >= d.longest {
		return nil, true, in.raise("IndexError", "deque already at its maximum size")
	}
	at = clampIndex(at, len(d.items))
	d.replace(in, insertValue(append([]Value{}, d.items...), int(at), item))
	return none(), true, nil
}

func (in *Interpreter) dequeSearch(d *Deque, method string, wanted Value) (Value, bool, error) {
	count, state := 0, d.state
	for k, item := range d.items {
		same, err := in.sameOrEqual(item, wanted)
		if err != nil {
			return nil, true, err
		}
		if d.state != state {
			return nil, true, unsupported(reasonMutation, "a deque during a search")
		}
		switch {
		case !same:
			continue
		case method == "remove":
			d.replace(in, append(append([]Value{}, d.items[:k]...), d.items[k+1:]...))
			return none(), true, nil
		}
		count++
	}
	if method == "remove" {
		return nil, true, in.raise("ValueError", "deque.remove(x): x not in deque")
	}
	return integer(int64(count)), true, nil
}

// dequeIndex is the place of an item, looked for within the bounds that may follow it.
func (in *Interpreter) dequeIndex(d *Deque, values []Value) (Value, bool, error) {
	first, end, err := in.searchBounds("index", d.items, values)
	if err != nil {
		return nil, true, err
	}
	state := d.state
	for k := first; k < end; k++ {
		same, err := in.sameOrEqual(d.items[k], values[0])
		if err != nil {
			return nil, true, err
		}
		switch {
		case same:
			return integer(int64(k)), true, nil
		case d.state != state:
			return nil, true, in.raise("RuntimeError", "deque mutated during iteration")
		}
	}
	return nil, true, in.raiseAbsent(values[0], "deque")
}

// iterator walks the deque from either end; CPython's raises where the deque changed meanwhile.
func (d *Deque) iterator(in *Interpreter, backwards bool) Value {
	taken, state := 0, d.state
	kind, helper := "_collections._deque_iterator", "make_iterator"
	if backwards {
		kind, helper = "_collections._deque_reverse_iterator", "make_reversed"
	}
	step := func(in *Interpreter) (Value, error) {
		if d.state != state {
			return nil, in.raise("RuntimeError", "deque mutated during iteration")
		}
		if taken >= len(d.items) {
			return nil, nil
		}
		taken++
		if backwards {
			return d.items[len(d.items)-taken], nil
		}
		return d.items[taken-1], nil
	}
	again := func() (string, string, []Value) {
		if d.state != state && !backwards {
			helper = "make_stale"
		}
		return "helper", helper, []Value{d, integer(int64(taken))}
	}
	return &goIterator{kind: kind, step: step, again: again, born: in.frame.step}
}

func (d *Deque) length(*Interpreter) (int, error) { return len(d.items), nil }

func (d *Deque) contains(in *Interpreter, item Value) (bool, error) {
	return in.containsItem(d.items, item)
}

// index is the place of an item, counted from the end where negative.
func (d *Deque) index(in *Interpreter, key Value) (int64, error) {
	position, err := in.intArgument(key)
	if err != nil {
		return 0, err
	}
	if position < 0 {
		position += int64(len(d.items))
	}
	if position < 0 || position >= int64(len(d.items)) {
		return 0, in.raise("IndexError", "deque index out of range")
	}
	return position, nil
}

func (d *Deque) getItem(in *Interpreter, key Value) (Value, error) {
	position, err := d.index(in, key)
	if err != nil {
		return nil, err
	}
	return d.items[position], nil
}

func (d *Deque) setItem(in *Interpreter, key, value Value) error {
	position, err := d.index(in, key)
	if err != nil {
		return err
	}
	items := append([]Value{}, d.items...)
	if value == nil {
		d.replace(in, append(items[:position], items[position+1:]...))
		return nil
	}
	d.changing(in)
	items[position] = value
	d.items = items
	return nil
}

// dequeConcatenate is + and += of a deque.
func (in *Interpreter) dequeConcatenate(row operatorRow, d *Deque, right Value) (Value, bool, error) {
	if row.inplace != nil {
		return d, true, in.dequeExtend(d, right, false)
	}
	if _, ok := right.(*Deque); !ok {
		return nil, true, in.raise("TypeError", `can only concatenate deque (not "`+shortName(right.typeName())+`") to deque`)
	}
	sum := &Deque{items: append([]Value{}, d.items...), longest: d.longest}
	return sum, true, in.dequeExtend(sum, right, false)
}
