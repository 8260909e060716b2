package symbolic

import "fusee/bytecode"

// effect is a change to something that outlives the call; rewritten code applies the effects in order, after the graph ran.
type effect interface {
	apply(cg *generator) error
}

// fieldEffect writes an attribute of an existing object.
type fieldEffect struct {
	owner *Instance
	name  string
	// deleted says that the attribute was deleted, and then set by a later effect: it comes behind those that were set meanwhile.
	deleted bool
	// again says that an earlier effect deletes it.
	again bool
}

func (e *fieldEffect) apply(cg *generator) error {
	value := e.owner.fields.values[e.name]
	if value == nil || e.deleted {
		if _, had := e.owner.fields.host[e.name]; !had || e.again {
			return nil // added and deleted again
		}
		return cg.callHelper("delete_field", e.owner, text(e.name))
	}
	return cg.callHelper("set_field", e.owner, text(e.name), value)
}

// tensorFieldEffect writes an attribute in the __dict__ of an existing tensor.
type tensorFieldEffect struct {
	owner *Tensor
	name  string
}

func (e *tensorFieldEffect) apply(cg *generator) error {
	return cg.callHelper("set_field", e.owner, text(e.name), e.owner.attributes[e.name])
}

// tupleFieldEffect writes an attribute in the __dict__ of an existing instance of a tuple subclass.
type tupleFieldEffect struct {
	owner *Tuple
	name  string
}

func (e *tupleFieldEffect) apply(cg *generator) error {
	return cg.callHelper("set_field", e.owner, text(e.name), e.owner.fields[e.name])
}

// classEffect writes an attribute of a class.
type classEffect struct {
	class *Class
	name  string
}

func (e *classEffect) apply(cg *generator) error {
	return cg.storeAttribute(e.class, e.name, e.class.ownAttributes[e.name])
}

// cellEffect writes the contents of an existing closure cell.
type cellEffect struct{ cell *Cell }

func (e *cellEffect) apply(cg *generator) error {
	if e.cell.content != nil {
		return cg.storeAttribute(e.cell, "cell_contents", e.cell.content)
	}
	if err := cg.load(e.cell); err != nil {
		return err
	}
	cg.emitName(bytecode.DeleteAttr, "cell_contents")
	return nil
}

// listEffect brings an existing list to its new contents.
type listEffect struct{ list *List }

func (e *listEffect) apply(cg *generator) error {
	if e.list.changed {
		return cg.callHelper("replace_list", e.list, &Tuple{items: e.list.items})
	}
	return cg.callHelper("extend_list", e.list, &Tuple{items: e.list.appended})
}

// dictEffect sets or deletes one key of an existing dict; the same key may be written several times, as its place may change.
type dictEffect struct {
	dict  *Dict
	entry *dictEntry
	hash  Value // that the key's own method gave; nil where there is none
}

func (e *dictEffect) apply(cg *generator) error {
	if e.entry.deleted {
		if e.hash != nil && e.dict.class == nil {
			return cg.callHelper("delete_by_hash", e.dict, e.entry.key, e.hash)
		}
		return cg.callHelper("delete_item", e.dict, e.entry.key)
	}
	if e.hash != nil && e.dict.class == nil {
		return cg.callHelper("store_by_hashes", e.dict, &Tuple{items: []Value{hashedEntry(e.entry.key, e.hash, e.entry.value)}})
	}
	if class := e.dict.class; e.dict.base || class != nil && userClass(class.name) {
		return cg.callHelper("set_item", e.dict, e.entry.key, e.entry.value)
	}
	if err := cg.load(e.entry.value); err != nil {
		return err
	}
	if err := cg.load(e.dict); err != nil {
		return err
	}
	if err := cg.load(e.entry.key); err != nil {
		return err
	}
	cg.emit(bytecode.StoreSubscr, 0)
	return nil
}

// findEffect finds a change noted before.
func findEffect[E effect](in *Interpreter, test func(E) bool) (found E, ok bool) {
	for _, known := range in.effects {
		if e, fits := known.(E); fits && test(e) {
			return e, true
		}
	}
	return found, false
}

// changeOutside counts a change of what outlives the call, and notes its effect the first time.
func (in *Interpreter) changeOutside(object *existing, changed *bool, first effect) {
	in.activity++
	if object == nil {
		return
	}
	in.outside++
	if !*changed {
		*changed = true
		in.effects = append(in.effects, first)
	}
}
