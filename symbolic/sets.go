package symbolic

import (
	"fusee/bytecode"
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
}

func (e *setEffect) apply(cg *generator) error {
	changes := &Tuple{}
	for _, change := range e.changes {
		changes.items = append(changes.items, &Tuple{items: []Value{boolean(change.removed), change.item}})
	}
	return cg.callHelper("change_set", e.set, changes)
}

// recordSetChange notes a change of a set that outlives the call.
func (in *Interpreter) recordSetChange(s *Set, item Value, removed bool) {
	in.activity++
	if s.object == nil {
		return
	}
	for _, known := range in.effects {
		if e, ok := known.(*setEffect); ok && e.set == s {
			e.changes = append(e.changes, setChange{item, removed})
			return
		}
	}
	in.effects = append(in.effects, &setEffect{s, []setChange{{item, removed}}})
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
	set := &Set{frozen: d.Kind == "frozenset", index: map[any]int{}, mixed: true}
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
	case *Dict:
		defer in.copying(storedHashes(v.index))()
	case *Instance:
		if set, ok := in.plainBase(v).(*Set); ok {
			return set, nil
		}
	}
	items, err := in.iterableItems(value)
	if err != nil {
		return nil, err
	}
	made, err := in.newSet(items, false)
	if err != nil {
		return nil, err
	}
	return made.(*Set), nil
}

// copySet is a set with the same items, whose table is laid out in a way that only Python knows.
func (s *Set) copySet(frozen bool) *Set {
	copied := &Set{items: append([]Value{}, s.items...), index: map[any]int{}, frozen: frozen, mixed: true, custom: s.custom}
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
		set.frozen, set.mixed = frozen, true
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
		if _, isText := stringOf(item); isText {
			return false // the order of text differs from process to process
		}
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
		err := in.replaceSet(s, nil)
		s.mixed = s.object != nil // an empty table like that of a new set
		return none(), true, err
	case "pop":
		switch len(s.items) {
		case 0:
			return nil, true, in.raise("KeyError", "pop from an empty set")
		case 1:
			item := s.items[0]
			return item, true, in.removeItem(s, item)
		}
		return nil, true, unsupported(reasonIteration, "a set whose order only Python knows")
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

func (in *Interpreter) allMembers(values []Value) ([]Value, error) {
	var all []Value
	for _, value := range values {
		items, err := in.members(value)
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
	}
	return append([]Value{}, all...), nil
}

// setCombination is union, intersection, difference or symmetric_difference with any number of iterables.
func (in *Interpreter) setCombination(s *Set, method string, values []Value) (Value, bool, error) {
	functions := map[string]string{"union": "or_", "intersection": "and_", "difference": "sub", "symmetric_difference": "xor"}
	if method == "symmetric_difference" && len(values) != 1 {
		return nil, false, nil
	}
	result := s.copySet(s.frozen)
	for _, value := range values {
		other, err := in.setOf(value)
		if err != nil {
			return nil, true, err
		}
		function := functions[method]
		if real, err := in.real(value); method == "intersection" && err == nil && real != Value(other) {
			function = "pick"
		}
		if result, err = in.setOperator(function, result, other, s.frozen); err != nil {
			return nil, true, err
		}
	}
	return result, true, nil
}

// updateSet is a method that ends in update; intersection_update of several iterables keeps what lies in all of them.
func (in *Interpreter) updateSet(s *Set, method string, values []Value) error {
	functions := map[string]string{"update": "or_", "intersection_update": "and_", "difference_update": "sub", "symmetric_difference_update": "xor"}
	for _, value := range values {
		real, err := in.real(value)
		if err != nil {
			return err
		}
		if _, isSet := real.(*Set); method == "update" && !isSet {
			s.mixed = true
			if err := in.eachItem(real, func(item Value) error { return in.setAdd(s, item) }); err != nil {
				return err
			}
			continue
		}
		other, err := in.setOf(value)
		if err != nil {
			return err
		}
		if err := in.updateBy(s, functions[method], other); err != nil {
			return err
		}
	}
	return nil
}

// updateBy changes a set in place, item by item.
func (in *Interpreter) updateBy(s *Set, function string, other *Set) error {
	s.mixed = true
	defer in.copying(storedHashes(other.index))()
	if function == "or_" || function == "xor" {
		for _, item := range append([]Value{}, other.items...) {
			inside, err := s.contains(in, item)
			switch {
			case err != nil:
			case !inside:
				err = in.setAdd(s, item)
			case function == "xor":
				err = in.removeItem(s, item)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	for _, item := range append([]Value{}, s.items...) {
		inside, err := other.contains(in, item)
		if err == nil && inside == (function == "sub") {
			err = in.removeItem(s, item)
		}
		if err != nil {
			return err
		}
	}
	return nil
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
	if err != nil {
		return nil, true, err
	}
	if inside {
		return none(), true, in.removeItem(s, item)
	}
	if !strict {
		return none(), true, nil
	}
	real, err := in.real(item)
	if err != nil {
		return nil, true, err
	}
	return nil, true, in.raiseWith(in.builtinClass("KeyError"), real)
}

// removeItem takes a member out of a set.
func (in *Interpreter) removeItem(s *Set, item Value) error {
	position, _, err := s.find(in, item)
	if err != nil || position < 0 {
		return err
	}
	in.recordSetChange(s, item, true)
	s.mixed = true
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
		result, err := in.compareSets(comparisons[1], s, other)
		return result, true, err
	case "issuperset":
		result, err := in.compareSets(comparisons[1], other, s)
		return result, true, err
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
	stored := storedHashes(a.index)
	for instance, hash := range storedHashes(b.index) {
		stored[instance] = hash
	}
	defer in.copying(stored)()
	var kept []Value
	walk := func(from, other *Set, when bool) error {
		for _, item := range from.items {
			inside, err := other.contains(in, item)
			if err != nil {
				return err
			}
			if inside == when {
				kept = append(kept, item)
			}
		}
		return nil
	}
	var err error
	switch function {
	case "and_":
		if len(b.items) > len(a.items) {
			a, b = b, a
		}
		err = walk(b, a, true)
	case "pick": // of an intersection with an iterable that is no set
		err = walk(b, a, true)
	case "or_":
		kept = append(kept, a.items...)
		err = walk(b, a, false)
	case "xor":
		if err = walk(b, a, false); err == nil {
			err = walk(a, b, false)
		}
	default:
		err = walk(a, b, false)
	}
	if err != nil {
		return nil, err
	}
	made, err := in.newSet(kept, frozen)
	if err != nil {
		return nil, err
	}
	made.(*Set).mixed = true
	return made.(*Set), nil
}

// setLike lists the items of sets and of the views of a dict that behave as sets; false for anything else.
func (in *Interpreter) setLike(value Value) ([]Value, bool, error) {
	switch v := value.(type) {
	case *Set:
		return v.items, true, nil
	case *dictView:
		if v.kind != "values" {
			items, err := v.items(in)
			return items, true, err
		}
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
		value, err := in.setOperator(row.function, a, b, a.frozen)
		return value, true, err
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
