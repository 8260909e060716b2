package symbolic

import (
	"slices"

	"fusee/bytecode"
	"fusee/internal/slice"
	"fusee/trace"
)

// setEffect applies the changes of an existing set in their order, so that its table comes out as the program would leave it.
type setEffect struct {
	set     *Set
	changes []setChange
}

type setChange struct {
	item    Value
	removed bool
	hash    Value // that the item's own method gave; nil where there is none
}

func (e *setEffect) apply(cg *generator) error {
	changes := &Tuple{}
	for _, change := range e.changes {
		changes.items = append(changes.items, &Tuple{items: []Value{boolean(change.removed), change.item, orNone(change.hash)}})
	}
	return cg.callHelper("change_set", e.set, changes)
}

// recordSetChange notes a change of a set that outlives the call.
func (in *Interpreter) recordSetChange(s *Set, change setChange) {
	in.activity++
	if s.object == nil {
		return
	}
	in.outside++
	known, again := findEffect(in, func(e *setEffect) bool { return e.set == s })
	if !again {
		known = &setEffect{set: s}
		in.effects = append(in.effects, known)
	}
	known.changes = append(known.changes, change)
}

// describedSet reads an existing set whose members are constants or objects that hash by identity, and guards them; others are left to Python.
func (in *Interpreter) describedSet(d *trace.Description, object *existing) (Value, error) {
	class, err := in.subclassOf(d.TypeID, d.Kind)
	if err != nil {
		return nil, err
	}
	if _, absent := d.Payload.(bytecode.NoneType); absent || class != nil {
		return &Opaque{object, d.Kind}, nil
	}
	if held, err := in.holdsObjects(d); held || err != nil {
		return &Opaque{object, d.Kind}, err
	}
	set := &Set{frozen: d.Kind == "frozenset", index: map[any]int{}, mixed: true} // of a history that is not known
	members := &bytecode.List{Items: []bytecode.Object{}}
	for _, item := range trace.Items(d.Payload) {
		value, err := in.child(item, nil, "", nil)
		if err != nil {
			return nil, err
		}
		if value, err = in.real(value); err != nil {
			return nil, err
		}
		member, ok := in.memberWire(value)
		if !ok {
			return &Opaque{object, d.Kind}, nil
		}
		members.Items = append(members.Items, member)
		if err := in.setAdd(set, value); err != nil {
			return nil, err
		}
	}
	if source := object.source; source == nil || source.Accessor.Kind == "object" {
		object.source = in.objectSource(d.ID)
	}
	if !set.frozen || object.source.Accessor.Kind != "object" {
		object.source.Require(in.reason(), "members", members)
	}
	set.object = object
	return set, nil
}

// memberWire writes a member of a set for its guard: a constant in a tuple of its own, or an object that is compared by identity.
func (in *Interpreter) memberWire(value Value) (bytecode.Object, bool) {
	if constant, ok := constantObject(value); ok {
		return bytecode.Tuple{constant}, true
	}
	switch v := value.(type) {
	case *Class, *Function:
		in.pinFunction(value)
		if object := objectOf(value); object != nil {
			return objectWire(object.id), true
		}
	case *Builtin:
		if v.object != nil && v.self == nil {
			return objectWire(v.object.id), true
		}
	case *LibraryValue:
		if v.kind == "dtype" && v.id != 0 {
			return objectWire(v.id), true
		}
	}
	return nil, false
}

// constantObject is the constant that a value stands for: plain constants, and tuples of them.
func constantObject(value Value) (bytecode.Object, bool) {
	if lazy, ok := value.(*Lazy); ok {
		value = lazy.value
	}
	switch v := value.(type) {
	case *Constant:
		_, special := v.Value.(notImplemented)
		return v.Value, !special
	case *Tuple:
		items := bytecode.Tuple{}
		for _, item := range v.items {
			part, ok := constantObject(item)
			if !ok {
				return nil, false
			}
			items = append(items, part)
		}
		return items, v.class == nil
	}
	return nil, false
}

// members lists items whose order does not matter: those of a set come in any order, all others in their own.
func (in *Interpreter) members(value Value) ([]Value, error) {
	value, err := in.real(value)
	if err != nil {
		return nil, err
	}
	if set, ok := value.(*Set); ok {
		return set.items, nil
	}
	return in.iterableItems(value)
}

// setOf is a value as a set; unhashable items raise TypeError.
func (in *Interpreter) setOf(value Value) (*Set, error) {
	value, err := in.real(value)
	if err != nil {
		return nil, err
	}
	switch v := value.(type) {
	case *Set:
		return v, nil
	case *Instance:
		if set, ok := in.plainBase(v).(*Set); ok {
			return set, nil
		}
	}
	made, err := in.newSet(nil, false)
	if err != nil {
		return nil, err
	}
	return made.(*Set), in.addAll(made.(*Set), value)
}

// addAll adds what an iterable that is no set gives. A dict hands over the hashes of its keys, and room is made for all of them first.
func (in *Interpreter) addAll(s *Set, value Value) error {
	if dict, ok := value.(*Dict); ok {
		defer in.copying(storedHashes(dict.index))()
		n, err := dict.length(in)
		if err != nil {
			return err
		}
		if s.table != nil && dict.class == nil {
			s.table.reserve(n)
		}
	}
	return in.eachItem(value, func(item Value) error { return in.setAdd(s, item) })
}

// copySet is a set with the same items.
func (s *Set) copySet(frozen bool) *Set {
	copied := &Set{items: append([]Value{}, s.items...), index: map[any]int{}, frozen: frozen, mixed: true, custom: s.custom, table: s.copiedTable()}
	for key, at := range s.index {
		copied.index[key] = at
	}
	return copied
}

// constructSet is set() and frozenset().
func (in *Interpreter) constructSet(values []Value, frozen bool) (Value, error) {
	if len(values) == 0 {
		return in.newSet(nil, frozen)
	}
	value, err := in.real(values[0])
	if err != nil {
		return nil, err
	}
	switch v := value.(type) {
	case *Set:
		if frozen && v.frozen {
			return v, nil
		}
		return v.copySet(frozen), nil
	case *Dict, *dictView:
		set, err := in.setOf(v)
		if err != nil {
			return nil, err
		}
		set.frozen, set.mixed = frozen, set.table == nil
		return set, nil
	}
	items, err := in.iterableItems(value)
	if err != nil {
		return nil, err
	}
	return in.newSet(items, frozen)
}

// orderKnown tells sets whose order of iteration follows from the order in which their items came: nothing else was done to them, or the
// items are ints that lie in a table of any size at their own places.
func (s *Set) orderKnown() bool {
	small := true
	for _, item := range s.items {
		n, ok := constantInt(item)
		small = small && ok && n >= 0 && n < 8
	}
	return small || !s.mixed
}

func (in *Interpreter) setMethod(s *Set, method string, arguments Arguments) (Value, bool, error) {
	values := arguments.Positional
	if len(arguments.Keywords) > 0 {
		called := s.typeName() + "." + method
		if method == "__init__" {
			called = s.typeName()
		}
		return nil, true, in.raise("TypeError", called+"() takes no keyword arguments")
	}
	switch method {
	case "copy", "__copy__":
		if s.frozen {
			return s, len(values) == 0, nil
		}
		return s.copySet(false), len(values) == 0, nil
	case "union", "intersection", "difference", "symmetric_difference":
		return in.setCombination(s, method, values)
	case "issubset", "issuperset", "isdisjoint":
		if len(values) == 1 {
			return in.setRelation(s, method, values[0])
		}
	}
	if s.frozen {
		return none(), method == "__init__", nil
	}
	return in.setChangeMethod(s, method, values)
}

// setChangeMethod runs the methods that change a set.
func (in *Interpreter) setChangeMethod(s *Set, method string, values []Value) (Value, bool, error) {
	switch method {
	case "update", "intersection_update", "difference_update", "symmetric_difference_update":
		return none(), true, in.updateSet(s, method, values)
	case "__init__":
		if len(values) > 1 {
			return nil, true, in.raise("TypeError", "set expected at most 1 argument, got "+integerText(len(values)))
		}
		items, err := in.allMembers(values)
		if err == nil {
			err = in.replaceSet(s, items)
		}
		return none(), true, err
	case "clear":
		return none(), true, in.clearSet(s)
	case "pop":
		return in.setPop(s)
	}
	if len(values) != 1 {
		return nil, false, nil
	}
	switch method {
	case "add":
		return none(), true, in.setAdd(s, values[0])
	case "discard", "remove":
		return in.setRemove(s, values[0], method == "remove")
	}
	return nil, false, nil
}

func (in *Interpreter) setPop(s *Set) (Value, bool, error) {
	switch {
	case len(s.items) == 0:
		return nil, true, in.raise("KeyError", "pop from an empty set")
	case len(s.items) == 1 && s.table == nil:
		item := s.items[0]
		return item, true, in.removeItem(s, item)
	case s.table == nil:
		return nil, true, unsupported(reasonIteration, "a set whose order only Python knows")
	}
	s.shown = in.frame.step
	item := s.table.popped()
	return item, true, in.removeItem(s, item)
}

func (in *Interpreter) allMembers(values []Value) ([]Value, error) {
	members, err := slice.TryMap(values, in.members)
	return append([]Value{}, slices.Concat(members...)...), err
}

// setCombination is union, intersection, difference or symmetric_difference with any number of iterables.
func (in *Interpreter) setCombination(s *Set, method string, values []Value) (Value, bool, error) {
	if method == "symmetric_difference" && len(values) != 1 {
		return nil, false, nil
	}
	result := s
	if len(values) == 0 || method == "union" {
		result = s.copySet(s.frozen)
	}
	for i, value := range values {
		real, err := in.real(value)
		if err != nil {
			return nil, true, err
		}
		if result, err = in.combineSets(result, method, in.plainBase(real), i == 0); err != nil {
			return nil, true, err
		}
	}
	return result, true, nil
}

// combineSets is one step of setCombination; what results from an earlier step may be changed in place.
func (in *Interpreter) combineSets(s *Set, method string, value Value, first bool) (*Set, error) {
	if method == "union" {
		return s, in.unite(s, value)
	}
	other, err := in.setOf(value)
	if err != nil {
		return nil, err
	}
	_, isDict := value.(*Dict)
	isSet := value == Value(other)
	switch {
	case method == "symmetric_difference" && !isSet: // the set just made of it is the result
		other.frozen = s.frozen
		return other, in.updateBy(other, "xor", s)
	case method == "symmetric_difference":
		return in.setOperator("xor", s, other, s.frozen)
	case method == "difference" && first && (isSet || isDict):
		return in.setOperator("sub", s, other, s.frozen)
	case method == "difference":
		if first {
			s = s.copySet(s.frozen)
		}
		return s, in.updateBy(s, "sub", other)
	case isSet:
		return in.setOperator("and_", s, other, s.frozen)
	}
	return in.setOperator("pick", s, other, s.frozen)
}

// unite adds what an iterable gives.
func (in *Interpreter) unite(s *Set, value Value) error {
	if other, isSet := value.(*Set); isSet {
		return in.updateBy(s, "or_", other)
	}
	if _, isDict := value.(*Dict); isDict {
		s.mixed = true
	}
	return in.addAll(s, value)
}

// updateSet is a method that ends in update; intersection_update of several iterables keeps what lies in all of them.
func (in *Interpreter) updateSet(s *Set, method string, values []Value) error {
	functions := map[string]string{"intersection_update": "and_", "difference_update": "sub", "symmetric_difference_update": "xor"}
	for _, value := range values {
		real, err := in.real(value)
		if err != nil {
			return err
		}
		real = in.plainBase(real)
		if method == "update" {
			if err := in.unite(s, real); err != nil {
				return err
			}
			continue
		}
		other, err := in.setOf(real)
		if err != nil {
			return err
		}
		function := functions[method]
		_, isDict := real.(*Dict)
		switch {
		case function == "and_" && real != Value(other):
			function = "pick"
		case function == "xor" && isDict:
			function = "exchange keys"
		}
		if err := in.updateBy(s, function, other); err != nil {
			return err
		}
	}
	return nil
}

// updateBy changes a set in place, item by item and in the order in which CPython does it.
func (in *Interpreter) updateBy(s *Set, function string, other *Set) error {
	s.mixed = true
	if s == other {
		if function == "sub" || function == "xor" {
			return in.clearSet(s)
		}
		return nil
	}
	defer in.copying(hashesOfBoth(s, other))()
	switch function {
	case "or_":
		return in.mergeSet(s, other)
	case "xor":
		return in.exchange(s, other, other.ordered())
	case "exchange keys":
		return in.exchange(s, other, other.items)
	case "sub":
		err := in.keepItems(s, other, false)
		if s.table != nil {
			s.table.purge()
		}
		return err
	}
	if s.object != nil {
		return in.keepItems(s, other, true)
	}
	result, err := in.setOperator(function, s, other, false)
	if err == nil {
		in.activity++
		s.items, s.index, s.custom, s.table = result.items, result.index, result.custom, result.table
		s.version++
	}
	return err
}

// hashesOfBoth are the hashes that two sets keep of their items.
func hashesOfBoth(a, b *Set) map[*Instance]*customHash {
	stored := storedHashes(a.index)
	for instance, hash := range storedHashes(b.index) {
		stored[instance] = hash
	}
	return stored
}

// mergeSet adds the items of a set (set_merge of CPython's Objects/setobject.c).
func (in *Interpreter) mergeSet(s, other *Set) error {
	if other.table == nil {
		s.table = nil
	}
	whole := false
	if s.table != nil && other.table.used > 0 {
		s.table.reserve(other.table.used)
		whole = s.table.takesWhole(other.table)
	}
	for _, item := range other.ordered() {
		if err := in.setAdd(s, item); err != nil {
			return err
		}
	}
	if whole && s.table != nil {
		finger := s.table.finger
		s.table = other.table.clone()
		s.table.finger = finger
	}
	return nil
}

// exchange removes the items that lie in both sets and adds the others, in the order given.
func (in *Interpreter) exchange(s, other *Set, items []Value) error {
	if other.table == nil {
		s.table = nil
	}
	for _, item := range items {
		inside, err := s.contains(in, item)
		switch {
		case err != nil:
		case inside:
			err = in.removeItem(s, item)
		default:
			err = in.setAdd(s, item)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keepItems removes the items that do not lie in the other set, or those that do.
func (in *Interpreter) keepItems(s, other *Set, common bool) error {
	for _, item := range append([]Value{}, s.items...) {
		inside, err := other.contains(in, item)
		if err == nil && inside != common {
			err = in.removeItem(s, item)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// clearSet empties a set, whose table is then like that of a new one.
func (in *Interpreter) clearSet(s *Set) error {
	err := in.replaceSet(s, nil)
	if s.object == nil {
		s.mixed, s.table = false, newSetTable()
	}
	return err
}

func (in *Interpreter) replaceSet(s *Set, items []Value) error {
	for _, item := range append([]Value{}, s.items...) {
		if err := in.removeItem(s, item); err != nil {
			return err
		}
	}
	for _, item := range items {
		if err := in.setAdd(s, item); err != nil {
			return err
		}
	}
	return nil
}

func (in *Interpreter) setRemove(s *Set, item Value, strict bool) (Value, bool, error) {
	inside, err := s.contains(in, item)
	switch {
	case err != nil:
		return nil, true, err
	case inside:
		return none(), true, in.removeItem(s, item)
	case strict:
		return nil, true, in.raiseKeyError(item)
	}
	return none(), true, nil
}

// removeItem takes a member out of a set.
func (in *Interpreter) removeItem(s *Set, item Value) error {
	position, hashed, err := s.find(in, item)
	if err != nil || position < 0 {
		return err
	}
	in.recordSetChange(s, setChange{s.items[position], true, knownHash(hashed)})
	s.mixed = true
	s.version++
	if s.table != nil {
		s.table.remove(s.items[position])
	}
	s.items = append(append([]Value{}, s.items[:position]...), s.items[position+1:]...)
	for key, at := range s.index {
		if at == position {
			delete(s.index, key)
		} else if at > position {
			s.index[key] = at - 1
		}
	}
	return nil
}

func (in *Interpreter) setRelation(s *Set, method string, argument Value) (Value, bool, error) {
	other, err := in.setOf(argument)
	if err != nil {
		return nil, true, err
	}
	switch method {
	case "issubset":
		return modelled(in.compareSets(comparisons[1], s, other))
	case "issuperset":
		return modelled(in.compareSets(comparisons[1], other, s))
	}
	for _, item := range other.items {
		if inside, err := s.contains(in, item); err != nil || inside {
			return boolean(false), true, err
		}
	}
	return boolean(true), true, nil
}

// setOperator makes a set from two; of two equal items CPython keeps the left one, but of an intersection that of the smaller set.
func (in *Interpreter) setOperator(function string, a, b *Set, frozen bool) (*Set, error) {
	defer in.copying(hashesOfBoth(a, b))()
	var err error
	result := (*Set)(nil)
	switch {
	case function == "or_":
		result = a.copySet(frozen)
		err = in.updateBy(result, function, b)
	case function == "xor":
		result = b.copySet(frozen)
		err = in.updateBy(result, function, a)
	case function == "sub" && len(a.items)>>2 > len(b.items):
		result = a.copySet(frozen)
		err = in.updateBy(result, function, b)
	case function == "sub":
		result, err = in.setWhere(a, a.ordered(), b, false, frozen)
	case function == "pick": // an intersection with an iterable that is no set is picked from that, in its order
		result, err = in.setWhere(b, b.items, a, true, frozen)
	case len(b.items) <= len(a.items):
		result, err = in.setWhere(b, b.ordered(), a, true, frozen)
	default:
		result, err = in.setWhere(a, a.ordered(), b, true, frozen)
	}
	if err == nil {
		result.mixed = true
	}
	return result, err
}

// setWhere makes a set of the items of one that lie in another, or of those that do not, in the order given.
func (in *Interpreter) setWhere(from *Set, items []Value, other *Set, when, frozen bool) (*Set, error) {
	made, err := in.newSet(nil, frozen)
	if err != nil {
		return nil, err
	}
	result := made.(*Set)
	if from.table == nil {
		result.table = nil
	}
	for _, item := range items {
		inside, err := other.contains(in, item)
		if err != nil {
			return nil, err
		}
		if inside != when {
			continue
		}
		if err := in.setAdd(result, item); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// setLike lists the items of sets and of the views of a dict that behave as sets; false for anything else.
func (in *Interpreter) setLike(value Value) ([]Value, bool, error) {
	if set, ok := value.(*Set); ok {
		return set.items, true, nil
	}
	if view, ok := value.(*dictView); ok && view.kind != "values" {
		return modelled(view.items(in))
	}
	return nil, false, nil
}

// setLikeOperator is an operator between sets and views of dicts; done is false where the operands are none.
func (in *Interpreter) setLikeOperator(row operatorRow, left, right Value) (Value, bool, error) {
	a, isSet := left.(*Set)
	b, otherSet := right.(*Set)
	if isSet && otherSet {
		if row.inplace != nil && !a.frozen {
			return a, true, in.updateBy(a, row.function, b)
		}
		return modelled(in.setOperator(row.function, a, b, a.frozen))
	}
	_, leftLike, err := in.setLike(left)
	if err != nil {
		return nil, true, err
	}
	_, rightLike, err := in.setLike(right)
	if err != nil || !leftLike && !rightLike || !isView(left) && !isView(right) || isSet && !a.frozen && row.inplace != nil {
		return nil, err != nil, err
	}
	if a, err = in.setOf(left); err == nil {
		b, err = in.setOf(right)
	}
	if err != nil {
		return nil, true, err
	}
	value, err := in.setOperator(row.function, a, b, false)
	if err == nil {
		value.table = nil // views of dicts have an algorithm of their own
	}
	return value, true, err
}

func isView(value Value) bool {
	_, ok := value.(*dictView)
	return ok
}

// compareSetLike compares sets and views of dicts by their members; done is false where an operand is neither.
func (in *Interpreter) compareSetLike(row comparisonRow, left, right Value) (Value, bool, error) {
	first, leftLike, err := in.setLike(left)
	if err != nil || !leftLike {
		return nil, err != nil, err
	}
	second, rightLike, err := in.setLike(right)
	if err != nil || !rightLike {
		return nil, err != nil, err
	}
	if row.function == "gt" || row.function == "ge" {
		right, first, second = left, second, first
	}
	smaller := len(first) < len(second) || len(first) == len(second) && row.function != "lt" && row.function != "gt"
	if row.function == "eq" || row.function == "ne" {
		smaller = len(first) == len(second)
	}
	contained := smaller
	for _, item := range first {
		if !contained {
			break
		}
		if contained, err = in.contains(right, item); err != nil {
			return nil, true, err
		}
	}
	return boolean(contained == (row.function != "ne")), true, nil
}

// viewMethod runs the methods of views of dicts.
func (in *Interpreter) viewMethod(v *dictView, method string, arguments Arguments) (Value, bool, error) {
	if method == "__reversed__" && len(arguments.Positional) == 0 {
		return in.reverseIterator(v)
	}
	if method != "isdisjoint" || v.kind == "values" || len(arguments.Positional) != 1 {
		return nil, false, nil
	}
	items, err := in.members(arguments.Positional[0])
	if err != nil {
		return nil, true, err
	}
	for _, item := range items {
		if inside, err := v.contains(in, item); err != nil || inside {
			return boolean(false), true, err
		}
	}
	return boolean(true), true, nil
}
