package symbolic

import (
	"fusee/bytecode"
	"fusee/guards"
	"fusee/internal/slice"
)

func (d *Dict) ownSource(in *Interpreter) *guards.Source {
	if d.object == nil {
		return nil
	}
	if d.object.source == nil {
		return in.objectSource(d.object.id)
	}
	return d.object.source
}

// sequenceIterator walks items that are all known: over a list, which may grow meanwhile, or over a fixed sequence.
type sequenceIterator struct {
	list  *List
	items []Value
	next_ int
	kind  string // Python's name of the type, for messages
	// origin is what iter() was called on, where it is no list or tuple.
	origin Value
	done   bool // the end was reached, behind which a list may grow in vain
}

func (v *sequenceIterator) typeName() string { return v.kind }

func (v *sequenceIterator) next(in *Interpreter) (Value, error) {
	if v.done {
		return nil, nil
	}
	items := v.items
	if set, ok := v.origin.(*Set); ok && len(set.items) != len(items) {
		v.done = true
		return nil, in.raise("RuntimeError", "Set changed size during iteration")
	}
	if v.list != nil {
		var err error
		if items, err = v.list.contents(in); err != nil {
			return nil, err
		}
	}
	if v.next_ >= len(items) {
		v.done = true
		return nil, nil
	}
	in.activity++
	v.next_++
	return items[v.next_-1], nil
}

// dictIterator walks a dict or a view of it, whose keys must stay as they are.
type dictIterator struct {
	dict     *Dict
	origin   Value // what iter() was called on
	kind     string
	keys     []Value // at the start
	position int
	last     *dictEntry // that was given last
	stale    bool       // the dict grew or shrank, which every step raises from then on
	born     int        // the step that made it
}

func (v *dictIterator) typeName() string { return "dict_" + v.kind[:len(v.kind)-1] + "iterator" }

// next raises as CPython does where the dict grew or shrank; other changes of its keys are left to Python.
func (v *dictIterator) next(in *Interpreter) (Value, error) {
	entries, err := v.dict.live(in)
	if err != nil || v.position > len(v.keys) {
		return nil, err
	}
	if v.stale || len(entries) != len(v.keys) {
		v.stale = true
		return nil, in.raise("RuntimeError", "dictionary changed size during iteration")
	}
	if v.position == len(v.keys) {
		return nil, v.checkEnd(in)
	}
	entry := entries[v.position]
	if entry.key != v.keys[v.position] {
		return nil, unsupported(reasonIteration, "a dict whose keys change meanwhile")
	}
	in.activity++
	v.position++
	v.last = entry
	return entry.item(v.kind), nil
}

// smallTable is how many keys CPython's smallest table of a dict takes before it is laid out anew.
const smallTable = 5

// checkEnd finds keys that came behind the last one while others went: CPython sees them at the end of the walk.
func (v *dictIterator) checkEnd(in *Interpreter) error {
	if v.last == nil || !v.last.deleted {
		v.position = len(v.keys) + 1
		return nil
	}
	if v.dict.object != nil || len(v.dict.entries) > smallTable {
		return unsupported(reasonIteration, "a dict whose keys change meanwhile")
	}
	v.position = len(v.keys) + 1
	return in.raise("RuntimeError", "dictionary keys changed during iteration")
}

// item is what a view of the kind shows of an entry.
func (e *dictEntry) item(kind string) Value {
	switch kind {
	case "keys":
		return e.key
	case "values":
		return e.value
	}
	return &Tuple{items: []Value{e.key, e.value}}
}

func (in *Interpreter) iterateDict(dict *Dict, origin Value, kind string) (Value, error) {
	entries, err := dict.live(in)
	if err != nil {
		return nil, err
	}
	return &dictIterator{dict: dict, origin: origin, kind: kind, keys: entryKeys(entries), born: in.frame.step}, nil
}

// goIterator computes its items in Go: enumerate, zip, map, filter and the iterators of itertools.
type goIterator struct {
	kind string
	step func(in *Interpreter) (Value, error)
	// again tells how Python makes what is left of it: a builtin, or a helper, and its arguments.
	again func() (kind, name string, arguments []Value)
	// born is the step that made it, where capture breaks when Python cannot be given what is left of it.
	born int
	// walking says that it is taking an item, for which it may run the program's code.
	walking bool
}

func (v *goIterator) typeName() string { return v.kind }

func (v *goIterator) next(in *Interpreter) (Value, error) {
	if v.walking {
		return nil, unsupported(reasonIteration, "%s, by code that it runs itself", v.kind)
	}
	v.walking = true
	defer func() { v.walking = false }()
	in.activity++
	return v.step(in)
}

// iterate is iter().
func (in *Interpreter) iterate(value Value) (Value, error) {
	value, err := in.real(value)
	if err != nil {
		return nil, err
	}
	switch v := value.(type) {
	case iterator:
		return v, nil
	case *List:
		return &sequenceIterator{list: v, kind: "list_iterator"}, nil
	case *Deque:
		return v.iterator(in, false), nil
	case *Tuple:
		if hasMethods(v) {
			if found, owner, err := in.classLookup(v.class, "__iter__"); err != nil || owner != nil && owner.name != "tuple" {
				if err != nil {
					return nil, err
				}
				return in.call(found, Arguments{Positional: []Value{v}})
			}
		}
		return &sequenceIterator{items: v.items, kind: "tuple_iterator"}, nil
	case *Range:
		return v.iterator()
	case *Dict:
		method, err := in.dictMethodOverride(v, "__iter__")
		if err != nil {
			return nil, err
		}
		if method != nil {
			return in.call(method, Arguments{})
		}
		return in.iterateDict(v, v, "keys")
	case *dictView:
		return in.iterateDict(v.dict, v, v.kind)
	case *Set:
		return in.iterateSet(v)
	case *Constant:
		return in.iterateConstant(v)
	case *Tensor:
		return in.iterateTensor(v)
	case *Instance:
		return in.iterateInstance(v)
	case iterable:
		return v.iterate(in)
	case *Class:
		return in.iterateClass(v)
	case *Opaque:
		return nil, unsupported(reasonIteration, "%s", v.kind)
	}
	return nil, in.raise("TypeError", "'"+shortName(value.typeName())+"' object is not iterable")
}

// iterateSet walks a set by its table where that is known, and asks Python for the order of others: it depends on the hashes of the items and
// on the table's history.
func (in *Interpreter) iterateSet(s *Set) (Value, error) {
	switch {
	case s.table != nil:
		s.shown = in.frame.step
		return &setIterator{set: s, used: len(s.items), version: s.version, born: in.frame.step}, nil
	case len(s.items) < 2:
		return &sequenceIterator{items: s.items, kind: "set_iterator", origin: s}, nil
	case s.anyOrder(), in.orderUnseen() && s.object == nil:
		s.shown, s.arbitrary = in.frame.step, true
		return &sequenceIterator{items: s.items, kind: "set_iterator", origin: s}, nil
	case !s.orderKnown():
		return nil, unsupported(reasonIteration, "a set whose order only Python knows")
	}
	value, ok, err := in.evaluateConstant("builtins.list", s)
	if err == nil && !ok {
		err = unsupported(reasonIteration, "a set whose order only Python knows")
	}
	if err != nil {
		return nil, err
	}
	return &sequenceIterator{items: value.(*List).items, kind: "set_iterator", origin: s}, nil
}

func (r *Range) iterator() (Value, error) {
	count := r.count()
	position := int64(0)
	step := func(*Interpreter) (Value, error) {
		if position >= count {
			return nil, nil
		}
		position++
		return integer(r.start + (position-1)*r.step), nil
	}
	again := func() (string, string, []Value) { return "helper", "make_iterator", []Value{r, integer(position)} }
	return &goIterator{kind: "range_iterator", step: step, again: again}, nil
}

func entryKeys(entries []*dictEntry) []Value {
	return slice.Map(entries, func(entry *dictEntry) Value { return entry.key })
}

func (in *Interpreter) iterateConstant(v *Constant) (Value, error) {
	switch s := v.Value.(type) {
	case string:
		return &sequenceIterator{items: slice.Map(bytecode.Characters(s), func(c string) Value { return text(c) }), kind: "str_iterator", origin: v}, nil
	case bytecode.Bytes:
		return &sequenceIterator{items: slice.Map([]byte(s), func(b byte) Value { return integer(int64(b)) }), kind: "bytes_iterator", origin: v}, nil
	}
	return nil, in.raise("TypeError", "'"+constantTypeName(v.Value)+"' object is not iterable")
}

func (in *Interpreter) iterateTensor(v *Tensor) (Value, error) {
	if len(v.meta.Sizes) == 0 {
		return nil, in.raise("TypeError", "iteration over a 0-d tensor")
	}
	result, err := in.torchCall("Tensor.unbind", Arguments{Positional: []Value{v, integer(0)}})
	if err != nil {
		return nil, err
	}
	items, err := in.listOf(result)
	return &sequenceIterator{items: items, kind: "tuple_iterator"}, err
}

func (in *Interpreter) iterateInstance(v *Instance) (Value, error) {
	method, err := in.specialMethod(v.class, "__iter__", v)
	if err != nil {
		return nil, err
	}
	if method != nil {
		result, err := in.call(method, Arguments{})
		if err != nil {
			return nil, err
		}
		return in.checkedIterator(result)
	}
	getter, err := in.specialMethod(v.class, "__getitem__", v)
	if err != nil {
		return nil, err
	}
	if getter == nil {
		return nil, in.raise("TypeError", "'"+shortName(v.class.name)+"' object is not iterable")
	}
	position, done := int64(0), false
	return &goIterator{kind: "iterator", born: in.frame.step, step: func(in *Interpreter) (Value, error) {
		if done {
			return nil, nil
		}
		item, err := in.call(getter, Arguments{Positional: []Value{integer(position)}})
		if isRaised(err, "IndexError") || isRaised(err, "StopIteration") {
			done = true
			return nil, nil
		}
		position++
		return item, err
	}}, nil
}

// checkedIterator is what an __iter__ returned, which must be an iterator.
func (in *Interpreter) checkedIterator(result Value) (Value, error) {
	result, err := in.real(result)
	if err != nil {
		return nil, err
	}
	able := false
	switch v := result.(type) {
	case iterator, *Opaque:
		able = true
	case *Instance:
		hook, _, err := in.classLookup(v.class, "__next__")
		if err != nil {
			return nil, err
		}
		able = hook != nil
	}
	if !able {
		return nil, in.raise("TypeError", "iter() returned non-iterator of type '"+shortName(result.typeName())+"'")
	}
	return result, nil
}

// iterateClass walks an enum's members; the metaclass's __iter__ is Python.
func (in *Interpreter) iterateClass(c *Class) (Value, error) {
	meta, err := in.metaclassOf(c)
	if err != nil {
		return nil, err
	}
	method, err := in.neededMethod(meta, "__iter__", c, "is not iterable")
	if err != nil {
		return nil, err
	}
	return in.call(method, Arguments{})
}

// advance is tp_iternext: nil at the end.
func (in *Interpreter) advance(value Value) (Value, error) {
	switch v := value.(type) {
	case iterator:
		return v.next(in)
	case *Instance:
		method, err := in.specialMethod(v.class, "__next__", v)
		if err != nil {
			return nil, err
		}
		if method == nil {
			return nil, in.raise("TypeError", "'"+shortName(v.class.name)+"' object is not an iterator")
		}
		item, err := in.call(method, Arguments{})
		if isRaised(err, "StopIteration") {
			return nil, nil
		}
		return item, err
	}
	return nil, unsupported(reasonIteration, "%s", value.typeName())
}

// listOf takes the items of a tuple, list or anything iterable.
func (in *Interpreter) listOf(value Value) ([]Value, error) { return in.iterableItems(value) }

func (in *Interpreter) iterableItems(value Value) ([]Value, error) {
	value, err := in.real(value)
	if err != nil {
		return nil, err
	}
	switch v := value.(type) {
	case *Tuple:
		if !hasMethods(v) {
			return v.items, nil
		}
	case *List:
		items, err := v.contents(in)
		return append([]Value{}, items...), err
	}
	walker, err := in.iterate(value)
	if err != nil {
		return nil, err
	}
	return in.remaining(walker)
}

// remaining takes all items that an iterator still gives.
func (in *Interpreter) remaining(walker Value) ([]Value, error) {
	items := []Value{}
	for {
		item, err := in.advance(walker)
		if err != nil || item == nil {
			return items, err
		}
		if len(items) > 100_000 {
			return nil, unsupported(reasonLength, "an iterator of over 100000 items")
		}
		items = append(items, item)
	}
}

// dictView is dict.keys(), values() or items().
type dictView struct {
	dict   *Dict
	kind   string
	object *existing
}

func (v *dictView) typeName() string { return "dict_" + v.kind }

func (v *dictView) items(in *Interpreter) ([]Value, error) {
	entries, err := v.dict.live(in)
	if err != nil {
		return nil, err
	}
	return slice.Map(entries, func(entry *dictEntry) Value { return entry.item(v.kind) }), nil
}

func (v *dictView) length(in *Interpreter) (int, error) { return v.dict.length(in) }

func (v *dictView) contains(in *Interpreter, item Value) (bool, error) {
	if v.kind == "keys" {
		return v.dict.contains(in, item)
	}
	items, err := v.items(in)
	if err != nil {
		return false, err
	}
	return in.containsItem(items, item)
}

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
