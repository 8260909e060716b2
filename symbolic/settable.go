package symbolic

import (
	"slices"

	"fusee/bytecode"
)

// setTable is the hash table of a set as CPython 3.11 lays it out (Objects/setobject.c), by which a set's order is known after any operations
// on it. A set has one as long as the hash of each of its items is a matter of the item's value.
type setTable struct {
	slots      []setSlot
	fill, used int // fill counts the slots of removed items too
	finger     int // where pop looks on
}

// setSlot is unused where there is no item and none was removed.
type setSlot struct {
	item    Value
	hash    uint64
	removed bool
}

const (
	smallestSet  = 8     // PySet_MINSIZE
	linearProbes = 9     // slots behind the first that are tried before the next jump
	perturbShift = 5     // bits of the hash that each jump uses up
	largeSet     = 50000 // items from which on a table doubles instead of growing fourfold
)

func newSetTable() *setTable { return &setTable{slots: make([]setSlot, smallestSet)} }

func (t *setTable) clone() *setTable {
	copied := *t
	copied.slots = slices.Clone(t.slots)
	return &copied
}

// items lists the items in order of iteration.
func (t *setTable) items() []Value {
	found := make([]Value, 0, t.used)
	for _, slot := range t.slots {
		if slot.item != nil {
			found = append(found, slot.item)
		}
	}
	return found
}

// add puts in an item that is not there yet, in place of the last removed one on its way (set_add_entry).
func (t *setTable) add(item Value, hash uint64) {
	at, removed := t.unused(hash)
	t.used++
	if removed >= 0 {
		t.slots[removed] = setSlot{item: item, hash: hash}
		return
	}
	t.slots[at] = setSlot{item: item, hash: hash}
	t.fill++
	if t.fill*5 >= (len(t.slots)-1)*3 {
		t.grow()
	}
}

func (t *setTable) grow() {
	if t.used > largeSet {
		t.resize(t.used * 2)
		return
	}
	t.resize(t.used * 4)
}

// unused finds the first slot for a hash that was never used, and the last one on the way there whose item was removed, else -1.
func (t *setTable) unused(hash uint64) (at, removed int) {
	mask := uint64(len(t.slots) - 1)
	perturb := hash
	removed = -1
	for first := hash & mask; ; {
		last := first
		if first+linearProbes <= mask {
			last = first + linearProbes
		}
		for i := first; i <= last; i++ {
			switch slot := t.slots[i]; {
			case slot.removed:
				removed = int(i)
			case slot.item == nil:
				return int(i), removed
			}
		}
		perturb >>= perturbShift
		first = (first*5 + 1 + perturb) & mask
	}
}

// resize lays the table out anew, without the removed items (set_table_resize).
func (t *setTable) resize(least int) {
	size := smallestSet
	for size <= least {
		size *= 2
	}
	if size == smallestSet && len(t.slots) == smallestSet && t.fill == t.used {
		return
	}
	old := t.slots
	t.slots = make([]setSlot, size)
	t.fill = t.used
	for _, slot := range old {
		if slot.item != nil {
			at, _ := t.unused(slot.hash)
			t.slots[at] = slot
		}
	}
}

// reserve makes room for that many more items before they come, as merging a set or a dict does.
func (t *setTable) reserve(more int) {
	if (t.fill+more)*5 >= (len(t.slots)-1)*3 {
		t.resize((t.used + more) * 2)
	}
}

// remove takes an item out and leaves a mark in its slot.
func (t *setTable) remove(item Value) {
	for i := range t.slots {
		if t.slots[i].item == item {
			t.slots[i] = setSlot{removed: true}
			t.used--
			return
		}
	}
}

// purge lays the table out anew where more than a quarter of it are removed items, as difference_update does.
func (t *setTable) purge() {
	if t.fill-t.used > (len(t.slots)-1)/4 {
		t.grow()
	}
}

// takesWhole tells a merge that copies the other table slot by slot.
func (t *setTable) takesWhole(other *setTable) bool {
	return t.fill == 0 && len(t.slots) == len(other.slots) && other.fill == other.used
}

// spacious tells tables in which each item lies in the first slot that its hash names: in whatever order they came, that is where they are.
func (t *setTable) spacious() bool {
	for i, slot := range t.slots {
		if slot.item != nil && int(slot.hash&uint64(len(t.slots)-1)) != i {
			return false
		}
	}
	return true
}

// merged is the table of a copy of a set.
func (t *setTable) merged() *setTable {
	copied := newSetTable()
	if t.used == 0 {
		return copied
	}
	copied.reserve(t.used)
	if copied.takesWhole(t) {
		return t.clone()
	}
	for _, slot := range t.slots {
		if slot.item != nil {
			copied.add(slot.item, slot.hash)
		}
	}
	return copied
}

// popped is the item that pop takes out next.
func (t *setTable) popped() Value {
	mask := len(t.slots) - 1
	at := t.finger & mask
	for t.slots[at].item == nil {
		at = (at + 1) & mask
	}
	t.finger = at + 1
	return t.slots[at].item
}

// copiedTable is the table of a copy of the set; nil where it is not known.
func (s *Set) copiedTable() *setTable {
	if s.table == nil {
		return nil
	}
	return s.table.merged()
}

// addToTable notes a new item, under the key that it goes by.
func (in *Interpreter) addToTable(s *Set, item Value, hashed any) error {
	if s.table == nil {
		return nil
	}
	hash, known, err := in.settledHash(item, hashed)
	switch {
	case err != nil:
	case known:
		s.table.add(item, hash)
	default:
		s.table = nil
	}
	return err
}

// settledHash is the hash of an item that is the same in each process: of numbers, tuples of them, and objects whose class computes it.
func (in *Interpreter) settledHash(item Value, hashed any) (uint64, bool, error) {
	if custom, ok := hashed.(*customHash); ok {
		number, ok := custom.number.(int64) // as __hash__ gives it
		return uint64(number), ok, nil
	}
	item, err := in.real(item)
	if err != nil {
		return 0, false, err
	}
	if instance, ok := item.(*Instance); ok && instance.base != nil && hashed != any(instance) {
		item = instance.base
	}
	tuple, ok := item.(*Tuple)
	if !ok {
		object, _ := constantObject(item)
		hash, known := bytecode.NumberHash(object)
		return hash, known, nil
	}
	items := make(bytecode.Tuple, len(tuple.items))
	for i, part := range tuple.items {
		real, err := in.real(part)
		if err != nil {
			return 0, false, err
		}
		items[i], _ = constantObject(real)
	}
	hash, known := bytecode.NumberHash(items)
	return hash, known && tuple.class == nil, nil
}

// ordered lists the items as CPython iterates over them where that is known, else as they came.
func (s *Set) ordered() []Value {
	if s.table != nil {
		return s.table.items()
	}
	return s.items
}

// asBuilt lists the items in an order in which a new set of them iterates as this one does, where there is one.
func (s *Set) asBuilt() (items []Value, same bool) {
	if s.table == nil {
		return s.items, !s.arbitrary
	}
	hashes := map[Value]uint64{}
	for _, slot := range s.table.slots {
		if slot.item != nil {
			hashes[slot.item] = slot.hash
		}
	}
	wanted := s.table.items()
	for _, order := range [][]Value{s.items, wanted} {
		built := newSetTable()
		for _, item := range order {
			built.add(item, hashes[item])
		}
		if slices.Equal(built.items(), wanted) {
			return order, true
		}
	}
	return s.items, false
}

// anyOrder tells sets of nothing but objects that the capture made and that hash by identity: their addresses may be in any order.
func (s *Set) anyOrder() bool {
	for _, item := range s.items {
		instance, ok := item.(*Instance)
		if !ok || instance.object != nil {
			return false
		}
		if _, byIdentity := s.index[instance]; !byIdentity {
			return false
		}
	}
	return s.object == nil
}

// orderUnseen says whether the running function walks sets of names whose order its result does not follow: it makes a dict by which a module's
// tensors are replaced and put back, one place at a time.
func (in *Interpreter) orderUnseen() bool {
	f := in.frame.function
	return f != nil && f.module == "torch.nn.utils.stateless" && f.qualname == "_untie_named_tensors_map"
}

// setIterator walks the table of a set, which must keep its size.
type setIterator struct {
	set      *Set
	used     int
	position int // in the table
	given    int
	version  int // of the set at the start
	born     int
}

func (v *setIterator) typeName() string { return "set_iterator" }

func (v *setIterator) next(in *Interpreter) (Value, error) {
	if v.used < 0 {
		return nil, nil
	}
	if len(v.set.items) != v.used {
		v.used = -1
		return nil, in.raise("RuntimeError", "Set changed size during iteration")
	}
	table := v.set.table
	if table == nil {
		return nil, unsupported(reasonIteration, "a set that changes meanwhile")
	}
	in.activity++
	for ; v.position < len(table.slots); v.position++ {
		if item := table.slots[v.position].item; item != nil {
			v.position++
			v.given++
			return item, nil
		}
	}
	v.used = -1
	return nil, nil
}

// buildSetIterator makes an iterator over what is left, as long as the set is what it was.
func (cg *generator) buildSetIterator(v *setIterator) error {
	if v.used < 0 {
		return cg.helper("make_iterator", newList(nil), integer(0))
	}
	if v.version != v.set.version {
		return &cannotRebuild{v.born, v.typeName()}
	}
	return cg.helper("make_iterator", v.set, integer(int64(v.given)))
}
