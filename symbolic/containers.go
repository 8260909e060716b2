package symbolic

import (
	"fmt"
	"iter"
	"slices"

	"github.com/cockroachdb/errors"

	"fusee/bytecode"
	"fusee/internal/slice"
	"fusee/trace"
)

func newList(items []Value) *List { return &List{items: items, loaded: true} }

func newDict() *Dict { return &Dict{index: map[any]*dictEntry{}, loaded: true} }

// contents reads all items of a list; an existing list's length is guarded from here on.
func (l *List) contents(in *Interpreter) ([]Value, error) {
	if l.loaded {
		return l.items, nil
	}
	d, err := in.session.Object(l.object.id)
	if err != nil {
		return nil, err
	}
	if _, absent := d.Payload.(bytecode.NoneType); absent {
		return nil, unsupported(reasonLength, "a list of over 16384 items")
	}
	items := trace.Items(d.Payload)
	source := l.object.source
	if source != nil {
		source.Require(in.reason(), "len", int64(len(items)))
	}
	var values []Value
	for i, item := range items {
		value, err := in.child(item, source, "item", int64(i))
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	l.items, l.loaded = append(values, l.appended...), true
	return l.items, nil
}

func (in *Interpreter) listAppend(l *List, item Value) {
	in.activity++
	if l.loaded {
		l.items = append(l.items, item)
	}
	l.appended = append(l.appended, item)
	in.listEffect(l)
}

func (in *Interpreter) listEffect(l *List) {
	if l.object == nil {
		return
	}
	in.outside++
	if _, known := findEffect(in, func(e *listEffect) bool { return e.list == l }); !known {
		in.effects = append(in.effects, &listEffect{l})
	}
}

func (in *Interpreter) extendList(l *List, source Value) error {
	return in.eachItem(source, func(item Value) error {
		in.listAppend(l, item)
		return nil
	})
}

// replaceList gives a list new contents.
func (in *Interpreter) replaceList(l *List, items []Value) error {
	if _, err := l.contents(in); err != nil {
		return err
	}
	in.activity++
	l.items, l.changed = items, true
	in.listEffect(l)
	return nil
}

func (l *List) length(in *Interpreter) (int, error) {
	items, err := l.contents(in)
	return len(items), err
}

func (t *Tuple) length(*Interpreter) (int, error) { return len(t.items), nil }
func (s *Set) length(*Interpreter) (int, error)   { return len(s.items), nil }

func (r *Range) length(*Interpreter) (int, error) { return int(r.count()), nil }

// countable tells bounds of a range whose differences have 64 bits.
func countable(bounds ...int64) bool {
	return !slices.ContainsFunc(bounds, func(n int64) bool { return n < -1<<61 || n > 1<<61 })
}

// count is the number of items, as CPython's compute_range_length.
func (r *Range) count() int64 {
	switch {
	case r.step > 0 && r.start < r.stop:
		return (r.stop-r.start-1)/r.step + 1
	case r.step < 0 && r.start > r.stop:
		return (r.start-r.stop-1)/(-r.step) + 1
	}
	return 0
}

// equal compares ranges by what they give.
func (r *Range) equal(other *Range) bool {
	n := r.count()
	return n == other.count() && (n == 0 || r.start == other.start && (n == 1 || r.step == other.step))
}

func (d *Dict) length(in *Interpreter) (int, error) {
	entries, err := d.live(in)
	return len(entries), err
}

// live lists the entries that exist now; an existing dict's keys are guarded from here on.
func (d *Dict) live(in *Interpreter) ([]*dictEntry, error) {
	if err := d.load(in); err != nil {
		return nil, err
	}
	return slice.Filter(d.entries, func(entry *dictEntry) bool { return !entry.deleted }), nil
}

// load makes all keys of an existing dict known, in order, before those that the capture added.
func (d *Dict) load(in *Interpreter) error {
	if err := d.settled(); err != nil {
		return err
	}
	if d.loaded {
		return nil
	}
	if d.globals {
		return unsupported(reasonIteration, "a dict of over 16384 items")
	}
	pairs, err := d.hostPairs(in)
	if err != nil {
		return err
	}
	added := d.entries
	d.entries = nil
	keys := bytecode.Tuple{}
	readable := true
	for _, pair := range pairs {
		key, err := in.real(pair.key)
		if err != nil {
			return err
		}
		wire, ok := guardedKey(key)
		keys = append(keys, wire)
		readable = readable && ok
		hashed, err := in.hashStored(key)
		if err != nil {
			return err
		}
		entry := d.index[hashed]
		if entry == nil {
			entry = &dictEntry{key: key, value: pair.value, fromHost: true}
			d.index[hashed] = entry
		}
		if !entry.again {
			entry.keep(key)
			d.entries = append(d.entries, entry)
		}
	}
	for _, entry := range added {
		if !containsEntry(d.entries, entry) {
			d.entries = append(d.entries, entry)
		}
	}
	d.loaded = true
	if d.object.source == nil {
		return nil
	}
	if !readable {
		return unsupported(reasonHash, "keys that are compared by their contents")
	}
	if len(keys) > 1 && d.ordered() {
		if err := in.inOrder(d); err != nil {
			return err
		}
	}
	d.object.source.Require(in.reason(), "keys", &bytecode.List{Items: keys})
	return nil
}

// keep makes an entry that was written before the dict's keys were known stay under the key that the dict has, which may be 1 for True.
func (e *dictEntry) keep(key Value) {
	if _, ok := key.(*Constant); ok {
		e.key = key
	}
}

// inOrder makes sure that an existing OrderedDict keeps the order of the dict below it, which is the one that guards see.
func (in *Interpreter) inOrder(d *Dict) error {
	same, err := in.given("fusee._helpers.keeps_order", d.object)
	if err != nil {
		return err
	}
	if ordered, err := in.truth(same); err != nil || !ordered {
		return unsupported(reasonHash, "the order of an OrderedDict whose items were moved")
	}
	return nil
}

// guardedKey is a dict's key as a guard compares it: a constant, or an object by identity. Equal keys that are different objects fail
// the guard, which costs no more than a new capture.
func guardedKey(key Value) (bytecode.Object, bool) {
	if constant, ok := key.(*Constant); ok {
		return constant.Value, true
	}
	if object := objectOf(key); object != nil {
		return objectWire(object.id), true
	}
	return nil, false
}

func containsEntry(entries []*dictEntry, entry *dictEntry) bool {
	for _, known := range entries {
		if known == entry {
			return true
		}
	}
	return false
}

type hostPair struct {
	key   Value
	value Value
}

// hostPairs reads the description of an existing dict.
func (d *Dict) hostPairs(in *Interpreter) ([]hostPair, error) {
	description, err := in.session.Object(d.object.id)
	if err != nil {
		return nil, err
	}
	var pairs []hostPair
	for i, item := range trace.Items(description.Payload) {
		fields, ok := item.(bytecode.Tuple)
		if !ok || len(fields) != 2 {
			return nil, errors.New("a dict's item is malformed")
		}
		key, err := in.child(fields[0], nil, "", nil)
		if err != nil {
			return nil, err
		}
		value, err := d.hostValue(in, i, key, fields[1])
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, hostPair{key, value})
	}
	return pairs, nil
}

// hostValue wraps a value of an existing dict, to be read again under its key, or at its place where all keys are guarded.
func (d *Dict) hostValue(in *Interpreter, position int, key Value, wire bytecode.Object) (Value, error) {
	real, err := in.real(key)
	if err != nil {
		return nil, err
	}
	if argument, ok := loneKey(real); ok {
		return in.child(wire, d.object.source, "key", argument)
	}
	return in.child(wire, d.object.source, "items_at", int64(position))
}

// lookup finds a key; nil when the dict lacks it.
func (d *Dict) lookup(in *Interpreter, key Value) (Value, error) {
	entry, err := d.find(in, key)
	if err != nil || entry == nil || entry.deleted {
		return nil, err
	}
	return entry.value, nil
}

func (d *Dict) find(in *Interpreter, key Value) (*dictEntry, error) {
	if err := d.settled(); err != nil {
		return nil, err
	}
	if _, err := in.real(key); err != nil {
		return nil, err
	}
	hashed, err := in.hashKey(key)
	if err != nil {
		return nil, err
	}
	custom, isCustom := hashed.(*customHash)
	if isCustom || d.custom {
		return d.findEqual(in, key, custom)
	}
	if entry := d.index[hashed]; entry != nil {
		return entry, nil
	}
	if d.loaded {
		return nil, in.guardApart(key, d.keys())
	}
	real, err := in.real(key)
	if err != nil {
		return nil, err
	}
	if wire, ok := loneKey(real); ok {
		return d.findHost(in, real, wire, hashed)
	}
	if madeInCapture(real) {
		return nil, nil // an object that hashes by identity and is new is no key of an older dict
	}
	if err := d.load(in); err != nil {
		return nil, err
	}
	return d.find(in, key)
}

// loneKey writes a key that a guard can read by itself: a constant, or a class, which hashes by identity.
func loneKey(key Value) (bytecode.Object, bool) {
	if constant, ok := key.(*Constant); ok {
		return constant.Value, true
	}
	if class, ok := key.(*Class); ok && class.id != 0 {
		return objectWire(class.id), true
	}
	return nil, false
}

// madeInCapture tells objects that hash by identity and did not exist before.
func madeInCapture(key Value) bool {
	switch v := key.(type) {
	case *Class:
		return v.made != nil
	case *Instance:
		return v.object == nil && v.base == nil
	case *Function:
		return v.object == nil
	}
	return false
}

// findEqual finds a key by hash and comparison.
func (d *Dict) findEqual(in *Interpreter, key Value, custom *customHash) (*dictEntry, error) {
	entries, err := d.live(in)
	if err != nil {
		return nil, err
	}
	position, err := in.findEqual(entryKeys(entries), key, custom, storedHashes(d.index))
	if err != nil || position < 0 {
		return nil, err
	}
	return entries[position], nil
}

// keys lists every key that was ever seen, deleted ones among them.
func (d *Dict) keys() []Value { return entryKeys(d.entries) }

// findHost reads one key of an existing dict without depending on the others.
func (d *Dict) findHost(in *Interpreter, key Value, wire bytecode.Object, hashed any) (*dictEntry, error) {
	var reference trace.Reference
	if d.globals {
		found, err := in.session.DictGet(d.object.id, dictKeyWire(wire))
		if err != nil {
			return nil, err
		}
		reference = found
	} else {
		pairs, err := d.hostPairs(in)
		if err != nil {
			return nil, err
		}
		for _, pair := range pairs {
			other, err := in.hashKey(pair.key)
			if err != nil {
				return nil, err
			}
			if other == hashed {
				in.found(pair.value)
				entry := &dictEntry{key: pair.key, value: pair.value, fromHost: true}
				d.index[hashed] = entry
				d.entries = append(d.entries, entry)
				return entry, nil
			}
		}
	}
	if reference == nil {
		if source := d.ownSource(in); source != nil {
			source.Require(in.reason(), "absent", wire)
		}
		return nil, nil
	}
	entry := &dictEntry{key: key, fromHost: true}
	entry.value = &Lazy{reference: reference, source: d.ownSource(in).Child("key", wire)}
	in.found(entry.value)
	d.index[hashed] = entry
	d.entries = append(d.entries, entry)
	return entry, nil
}

// found guards that what is read from an existing object is there, even where nothing looks at it.
func (in *Interpreter) found(value Value) Value {
	if lazy, ok := value.(*Lazy); ok && lazy.source != nil {
		lazy.source.Found(in.reason())
	}
	return value
}

// dictKeyWire is a key as the question dict_get takes it.
func dictKeyWire(wire bytecode.Object) bytecode.Object {
	if object, ok := wire.(bytecode.Tuple); ok && len(object) == 2 && object[0] == "object" {
		return object[1]
	}
	return wire
}

func (d *Dict) getItem(in *Interpreter, key Value) (Value, error) {
	value, err := d.lookup(in, key)
	if err != nil || value != nil {
		return value, err
	}
	if d.class != nil {
		if value, done, err := d.missing(in, key); done || err != nil {
			return value, err
		}
	}
	return nil, in.raiseKeyError(key)
}

// missing is __missing__ of the dict subclasses of the standard library.
func (d *Dict) missing(in *Interpreter, key Value) (Value, bool, error) {
	method, err := in.dictMethodOverride(d, "__missing__")
	if err != nil {
		return nil, true, err
	}
	switch {
	case method != nil:
		return modelled(in.call(method, Arguments{Positional: []Value{key}}))
	case d.class.isSubclassOf("collections.Counter"):
		return integer(0), true, nil
	case d.class.isSubclassOf("collections.defaultdict"):
		factory, err := d.defaultFactory(in)
		if err != nil {
			return nil, true, err
		}
		if isNone(factory) {
			return nil, false, nil
		}
		value, err := in.call(factory, Arguments{})
		if err != nil {
			return nil, true, err
		}
		return value, true, d.setItem(in, key, value)
	}
	return nil, false, nil
}

// defaultFactory is a defaultdict's attribute of that name.
func (d *Dict) defaultFactory(in *Interpreter) (Value, error) {
	if d.factory == nil && d.object != nil {
		source := d.ownSource(in)
		outcome, err := in.session.GetAttribute(d.object.id, "default_factory")
		if err != nil {
			return nil, err
		}
		if outcome.Value == nil {
			return in.outcomeValue(outcome)
		}
		d.factory = &Lazy{reference: outcome.Value, source: source.Child("attr", "default_factory")}
	}
	return in.real(orNone(d.factory))
}

func (d *Dict) setItem(in *Interpreter, key, value Value) error {
	if d.object != nil && value != nil {
		number, err := in.numberOf(key)
		if err != nil {
			return err
		}
		if number != nil && number.isInt() {
			in.activity++
			d.unknown = append(d.unknown, number)
			in.dictEffect(d, &dictEntry{key: number, value: value}, nil)
			return nil
		}
	}
	hashed, err := in.hashKey(key)
	if err != nil {
		return err
	}
	entry := d.index[hashed]
	custom, isCustom := hashed.(*customHash)
	if isCustom || d.custom {
		if entry, err = d.findEqual(in, key, custom); err != nil {
			return err
		}
	} else if entry == nil && !d.loaded {
		// Whether the key exists decides its place in the order only, which the live dict knows.
		if value == nil {
			if entry, err = d.find(in, key); err != nil {
				return err
			}
		}
	}
	if value == nil && (entry == nil || entry.deleted) {
		real, err := in.real(key)
		if err != nil {
			return err
		}
		return in.raiseWith(in.builtinClass("KeyError"), real)
	}
	if entry == nil {
		if err := in.guardApart(key, d.keys()); err != nil {
			return err
		}
	}
	in.activity++
	if entry == nil || entry.deleted {
		entry = &dictEntry{key: key, again: entry != nil}
		d.entries = append(d.entries, entry)
		d.index[hashed] = entry
		d.custom = d.custom || isCustom
	}
	entry.value, entry.fromHost, entry.deleted = value, false, value == nil
	in.dictEffect(d, entry, knownHash(hashed))
	return nil
}

// settled asks for another attempt where the dict is read after a store at a key that may differ from call to call.
func (d *Dict) settled() error {
	if len(d.unknown) == 0 {
		return nil
	}
	var origins []*Number
	for _, number := range d.unknown {
		origins = mergeNumbers(origins, number.origins())
	}
	return &restart{numbers: origins}
}

// raiseKeyError says which key is missing.
func (in *Interpreter) raiseKeyError(key Value) error {
	real, err := in.real(key)
	if err != nil {
		return err
	}
	return in.raiseWith(in.builtinClass("KeyError"), real)
}

// setAll sets items in their order.
func (d *Dict) setAll(in *Interpreter, items iter.Seq2[Value, Value]) error {
	for key, value := range items {
		if err := d.setItem(in, key, value); err != nil {
			return err
		}
	}
	return nil
}

// newDictOf is a new dict of items in their order.
func (in *Interpreter) newDictOf(items iter.Seq2[Value, Value]) (*Dict, error) {
	dict := newDict()
	return dict, dict.setAll(in, items)
}

// keywordItems are keyword arguments as items of a dict.
func keywordItems(keywords []KeywordArgument) iter.Seq2[Value, Value] {
	return func(yield func(key, value Value) bool) {
		for _, keyword := range keywords {
			if !yield(text(keyword.Name), keyword.Value) {
				return
			}
		}
	}
}

// entryItems are entries as items of another dict.
func entryItems(entries []*dictEntry) iter.Seq2[Value, Value] {
	return func(yield func(key, value Value) bool) {
		for _, entry := range entries {
			if !yield(entry.key, entry.value) {
				return
			}
		}
	}
}

// pairItems are keys and values that follow each other in turn.
func pairItems(keysAndValues []Value) iter.Seq2[Value, Value] {
	return func(yield func(key, value Value) bool) {
		for k := 0; k+1 < len(keysAndValues); k += 2 {
			if !yield(keysAndValues[k], keysAndValues[k+1]) {
				return
			}
		}
	}
}

func (in *Interpreter) dictEffect(d *Dict, entry *dictEntry, hash Value) {
	if d.object == nil {
		return
	}
	in.outside++
	in.effects = append(in.effects, &dictEffect{d, entry, hash})
}

func (d *Dict) copy(in *Interpreter) (*Dict, error) {
	entries, err := d.live(in)
	if err != nil {
		return nil, err
	}
	copied := newDict()
	if err := in.takeDictClass(copied, d); err != nil {
		return nil, err
	}
	defer in.copying(storedHashes(d.index))()
	return copied, copied.setAll(in, entryItems(entries))
}

// takeDictClass makes a dict one of the class that another one has, with its default factory.
func (in *Interpreter) takeDictClass(target, like *Dict) (err error) {
	target.class = like.class
	if like.class != nil && like.class.isSubclassOf("collections.defaultdict") {
		target.factory, err = like.defaultFactory(in)
	}
	return err
}

func (in *Interpreter) updateDict(target *Dict, other *Dict) error {
	entries, err := other.live(in)
	if err != nil {
		return err
	}
	defer in.copying(storedHashes(other.index))()
	for _, entry := range entries {
		if err := target.setItem(in, entry.key, entry.value); err != nil {
			return err
		}
		if err := in.checkUpdate(target, other, len(entries)); err != nil {
			return err
		}
	}
	return nil
}

// checkUpdate raises where a comparison of the program's made the dict that is read grow or shrink: dict_merge of CPython's dictobject.c.
func (in *Interpreter) checkUpdate(target, other *Dict, size int) error {
	if !target.custom || target == other {
		return nil
	}
	entries, err := other.live(in)
	if err != nil || len(entries) == size {
		return err
	}
	return in.raise("RuntimeError", "dict mutated during update")
}

func (d *Dict) contains(in *Interpreter, item Value) (bool, error) {
	value, err := d.lookup(in, item)
	return value != nil, err
}

// newSet makes a set of hashable items, first one kept.
func (in *Interpreter) newSet(items []Value, frozen bool) (Value, error) {
	set := &Set{index: map[any]int{}, frozen: frozen, table: newSetTable()}
	for _, item := range items {
		if err := in.setAdd(set, item); err != nil {
			return nil, err
		}
	}
	return set, nil
}

func (in *Interpreter) setAdd(s *Set, item Value) error {
	position, hashed, err := s.find(in, item)
	if err != nil || position >= 0 {
		return err
	}
	if _, isCustom := hashed.(*customHash); isCustom {
		s.custom = true
	}
	in.recordSetChange(s, setChange{item, false, knownHash(hashed)})
	s.index[hashed] = len(s.items)
	s.items = append(s.items, item)
	s.version++
	return in.addToTable(s, item, hashed)
}

func (s *Set) contains(in *Interpreter, item Value) (bool, error) {
	position, _, err := s.find(in, item)
	return position >= 0, err
}

// find is the position of an item, -1 where the set lacks it, and the key that it goes by.
func (s *Set) find(in *Interpreter, item Value) (int, any, error) {
	hashed, err := in.hashKey(item)
	if err != nil {
		return 0, nil, err
	}
	custom, isCustom := hashed.(*customHash)
	if isCustom || s.custom {
		position, err := in.findEqual(s.items, item, custom, storedHashes(s.index))
		return position, hashed, err
	}
	if position, found := s.index[hashed]; found {
		return position, hashed, nil
	}
	return -1, hashed, in.guardApart(item, s.items)
}

// guardApart guards that an object which a set or dict compares by identity stays a different one from its items.
func (in *Interpreter) guardApart(key Value, items []Value) error {
	key, err := in.real(key)
	if err != nil {
		return err
	}
	number, isNumber := key.(*identityNumber)
	if isNumber {
		key = number.of
	} else if !comparedByIdentity(key) {
		return nil
	}
	for _, item := range items {
		item, err := in.real(item)
		if err != nil {
			return err
		}
		other, isOther := item.(*identityNumber)
		if isOther {
			item = other.of
		}
		if isOther == isNumber && (isOther || comparedByIdentity(item)) && item != key {
			if err := in.guardDistinct(key, item); err != nil {
				return err
			}
		}
	}
	return nil
}

// comparedByIdentity tells keys that may turn out to be one object at another call; functions and the like are guarded one by one.
func comparedByIdentity(key Value) bool {
	switch v := key.(type) {
	case *Tensor:
		return v.id != 0
	case *Instance:
		return v.object != nil && v.base == nil
	}
	return false
}

func (in *Interpreter) compareSets(row comparisonRow, a, b *Set) (Value, error) {
	if row.function == "gt" || row.function == "ge" {
		a, b = b, a
	}
	for _, item := range a.items {
		if inside, err := b.contains(in, item); err != nil || !inside {
			return boolean(false), err
		}
	}
	strict := row.function == "lt" || row.function == "gt"
	return boolean(!strict || len(a.items) < len(b.items)), nil
}

// contains is the `in` operator.
func (in *Interpreter) contains(container, item Value) (bool, error) {
	container, err := in.real(container)
	if err != nil {
		return false, err
	}
	switch c := container.(type) {
	case *Dict:
		method, err := in.dictMethodOverride(c, "__contains__")
		if err != nil {
			return false, err
		}
		if method != nil {
			found, err := in.call(method, Arguments{Positional: []Value{item}})
			if err != nil {
				return false, err
			}
			return in.truth(found)
		}
		return c.contains(in, item)
	case containing:
		return c.contains(in, item)
	case *Tuple:
		if hasMethods(c) {
			if found, done, err := in.containsByMethod(c.class, c, item); done || err != nil {
				return found, err
			}
		}
		return in.containsItem(c.items, item)
	case *List:
		items, err := c.contents(in)
		if err != nil {
			return false, err
		}
		return in.containsItem(items, item)
	case *Range:
		n, ok := constantInt(item)
		if real, err := in.real(item); err == nil {
			n, ok = constantInt(real)
		}
		if ok {
			return c.holds(n), nil
		}
	case *Instance:
		if found, done, err := in.containsByMethod(c.class, c, item); done || err != nil {
			return found, err
		}
	case *Class:
		meta, err := in.metaclassOf(c)
		if err != nil {
			return false, err
		}
		if found, done, err := in.containsByMethod(meta, c, item); done || err != nil {
			return found, err
		}
	case *Constant:
		value, ok, err := in.evaluateConstant("operator.contains", container, item)
		if err != nil {
			return false, err
		}
		if ok {
			return in.truth(value)
		}
	case *Opaque:
		if found, known, err := in.heldSetContains(c, item); known || err != nil {
			return found, err
		}
	case *Tensor:
		return false, unsupported(reasonBranch, "in a tensor")
	}
	iterator, err := in.iterate(container)
	if err != nil {
		return false, err
	}
	for {
		candidate, err := in.advance(iterator)
		if err != nil || candidate == nil {
			return false, err
		}
		if same, err := in.sameOrEqual(candidate, item); same || err != nil {
			return same, err
		}
	}
}

// containsByMethod asks the __contains__ that the container's class defines, if it defines one.
func (in *Interpreter) containsByMethod(class *Class, container, item Value) (found, done bool, err error) {
	method, err := in.specialMethod(class, "__contains__", container)
	if err != nil || method == nil {
		return false, false, err
	}
	return modelled(in.truthOfCall(method, item))
}

func (r *Range) holds(n int64) bool {
	if r.count() == 0 || (n-r.start)%r.step != 0 {
		return false
	}
	k := (n - r.start) / r.step
	return k >= 0 && k < r.count()
}

func (in *Interpreter) containsItem(items []Value, item Value) (bool, error) {
	for _, candidate := range items {
		if same, err := in.sameOrEqual(candidate, item); same || err != nil {
			return same, err
		}
	}
	return false, nil
}

// length is len().
func (in *Interpreter) length(value Value) (int, error) {
	value, err := in.real(value)
	if err != nil {
		return 0, err
	}
	if tuple, ok := value.(*Tuple); ok && hasMethods(tuple) {
		return in.lengthByMethod(tuple.class, tuple)
	}
	if s, ok := value.(sized); ok {
		return s.length(in)
	}
	switch v := value.(type) {
	case *Constant:
		switch s := v.Value.(type) {
		case string:
			return len(bytecode.Characters(s)), nil
		case bytecode.Bytes:
			return len(s), nil
		}
	case *Tensor:
		if len(v.meta.Sizes) == 0 {
			return 0, in.raise("TypeError", "len() of a 0-d tensor")
		}
		return int(in.shapes().Specialise(v.meta.Sizes[0])), in.used(v)
	case *Instance:
		return in.lengthByMethod(v.class, v)
	case *Class:
		meta, err := in.metaclassOf(v)
		if err != nil {
			return 0, err
		}
		return in.lengthByMethod(meta, v)
	case *Opaque:
		if n, known, err := in.heldSetLength(v); known || err != nil {
			return n, err
		}
		return 0, unsupported(reasonItem, "len of %s", v.kind)
	}
	return 0, in.raise("TypeError", "object of type '"+shortName(value.typeName())+"' has no len()")
}

// lengthByMethod is what the __len__ of a value's class gives.
func (in *Interpreter) lengthByMethod(class *Class, value Value) (int, error) {
	method, err := in.specialMethod(class, "__len__", value)
	if err != nil {
		return 0, err
	}
	if method == nil {
		return 0, in.raise("TypeError", "object of type '"+class.baseName()+"' has no len()")
	}
	result, err := in.call(method, Arguments{})
	if err != nil {
		return 0, err
	}
	if result, err = in.real(result); err != nil {
		return 0, err
	}
	if n, ok := constantInt(result); ok && n >= 0 {
		return int(n), nil
	}
	return 0, unsupported(reasonItem, "len of %s", class.name)
}

func (in *Interpreter) buildMap(f *Frame, count int) error {
	return in.pushResult(f)(in.newDictOf(pairItems(f.popMany(2 * count))))
}

func (in *Interpreter) buildConstKeyMap(f *Frame, count int) error {
	keys, ok := f.pop().(*Tuple)
	if !ok {
		return errors.New("BUILD_CONST_KEY_MAP without a tuple of keys")
	}
	values := f.popMany(count)
	dict := newDict()
	for k, value := range values {
		if err := dict.setItem(in, keys.items[k], value); err != nil {
			return err
		}
	}
	f.push(dict)
	return nil
}

func (in *Interpreter) buildSlice(f *Frame, count int) error {
	parts := f.popMany(count)
	if count == 2 {
		parts = append(parts, none())
	}
	f.push(&SliceValue{parts[0], parts[1], parts[2]})
	return nil
}

func (in *Interpreter) listAt(f *Frame, depth int) (*List, error) {
	value, err := in.real(f.peek(depth))
	list, ok := value.(*List)
	if err == nil && !ok {
		err = unsupported(reasonItem, "%s", value.typeName())
	}
	return list, err
}

func (in *Interpreter) listAppendInstruction(f *Frame, depth int) error {
	item := f.pop()
	list, err := in.listAt(f, depth)
	if err == nil {
		in.listAppend(list, item)
	}
	return err
}

func (in *Interpreter) listExtend(f *Frame, depth int) error {
	source := f.pop()
	list, err := in.listAt(f, depth)
	if err != nil {
		return err
	}
	return in.extendList(list, source)
}

// setUpdate adds the item on top of the stack to the set below, or all items of it.
func (in *Interpreter) setUpdate(f *Frame, depth int, single bool) error {
	item := f.pop()
	value, err := in.real(f.peek(depth))
	if err != nil {
		return err
	}
	set, ok := value.(*Set)
	if !ok {
		return unsupported(reasonItem, "%s", value.typeName())
	}
	if single {
		return in.setAdd(set, item)
	}
	return in.updateSet(set, "update", []Value{item})
}

func (in *Interpreter) dictUpdate(f *Frame, i *bytecode.Instruction) error {
	source, err := in.real(f.pop())
	if err != nil {
		return err
	}
	below, err := in.real(f.peek(i.Arg))
	if err != nil {
		return err
	}
	target, isDict := below.(*Dict)
	if instance, isInstance := source.(*Instance); isInstance && isDict {
		if source, err = in.mappingItems(instance); err != nil {
			return err
		}
	}
	other, err := in.asMapping(source)
	if err == nil && (other == nil || !isDict) {
		err = unsupported(reasonItem, "** of %s", source.typeName())
	}
	if err != nil {
		return err
	}
	if i.Opcode == bytecode.DictUpdate {
		return in.updateDict(target, other)
	}
	entries, err := other.live(in)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if _, ok := stringOf(entry.key); !ok {
			return in.raise("TypeError", "keywords must be strings")
		}
		if known, err := target.lookup(in, entry.key); err != nil || known != nil {
			if err == nil {
				err = unsupported(reasonItem, "a keyword given twice")
			}
			return err
		}
		if err := target.setItem(in, entry.key, entry.value); err != nil {
			return err
		}
	}
	return nil
}

func (in *Interpreter) listToTuple(f *Frame) error {
	items, err := in.iterableItems(f.pop())
	if err == nil {
		f.push(&Tuple{items: append([]Value{}, items...)})
	}
	return err
}

func (in *Interpreter) unpackSequence(f *Frame, count int) error {
	items, err := in.iterableItems(f.pop())
	if err != nil {
		return err
	}
	if len(items) != count {
		return in.raiseUnpack(len(items), count)
	}
	for k := count - 1; k >= 0; k-- {
		f.push(items[k])
	}
	return nil
}

func (in *Interpreter) raiseUnpack(have, want int) error {
	if have < want {
		return in.raise("ValueError", fmt.Sprintf("not enough values to unpack (expected %d, got %d)", want, have))
	}
	return in.raise("ValueError", fmt.Sprintf("too many values to unpack (expected %d)", want))
}

func (in *Interpreter) unpackEx(f *Frame, arg int) error {
	before, after := arg&0xff, arg>>8
	items, err := in.iterableItems(f.pop())
	if err != nil {
		return err
	}
	if len(items) < before+after {
		return in.raise("ValueError", fmt.Sprintf("not enough values to unpack (expected at least %d, got %d)", before+after, len(items)))
	}
	for k := len(items) - 1; k >= len(items)-after; k-- {
		f.push(items[k])
	}
	f.push(newList(append([]Value{}, items[before:len(items)-after]...)))
	for k := before - 1; k >= 0; k-- {
		f.push(items[k])
	}
	return nil
}
