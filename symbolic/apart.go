package symbolic

import (
	"maps"
	"slices"

	"fusee/guards"
)

// Objects that were there before the call are told from each other by their identity. A change of one of them is not seen in what capture knows of
// the others, so at a later call they have to be as many objects again: those of a kind of which one was changed are guarded to be.

// changedApart guards that objects which the capture changed are none of those of their kind that it looked into.
func (in *Interpreter) changedApart() {
	changed := map[string]bool{}
	for _, e := range in.effects {
		if value := changedBy(e); value != nil {
			changed[in.kindApart(value)] = true
		}
	}
	if len(changed) == 0 {
		return
	}
	groups := in.lookedInto(changed)
	for _, kind := range slices.Sorted(maps.Keys(groups)) {
		in.keepApart(groups[kind])
	}
}

// changedBy is the object that an effect writes; nil for one that is guarded by identity.
func changedBy(e effect) Value {
	switch e := e.(type) {
	case *fieldEffect:
		return e.owner
	case *tensorFieldEffect:
		return e.owner
	case *gradientEffect:
		return e.owner
	case *flagEffect:
		return e.owner
	case *tupleFieldEffect:
		return e.owner
	case *cellEffect:
		return e.cell
	case *listEffect:
		return e.list
	case *dictEffect:
		return e.dict
	case *setEffect:
		return e.set
	case *dequeEffect:
		return e.deque
	case *iteratorEffect:
		return e.iterator
	}
	return nil
}

// kindApart names the type of an object, of which no object of another type can be one: that of the live object, where a base stands for it.
func (in *Interpreter) kindApart(value Value) string {
	if object := objectOf(value); object != nil && in.values[object.id] != nil {
		value = in.values[object.id]
	}
	return value.typeName()
}

// lookedInto lists, by kind, the objects that were there before the call and of whose contents capture knows something.
func (in *Interpreter) lookedInto(kinds map[string]bool) map[string][]*guards.Source {
	groups := map[string][]*guards.Source{}
	for _, id := range slices.Sorted(maps.Keys(in.values)) {
		value := in.values[id]
		kind := in.kindApart(value)
		if object := objectOf(value); kinds[kind] && object != nil && object.source != nil && isLookedInto(value) {
			groups[kind] = append(groups[kind], object.source)
		}
	}
	return groups
}

// isLookedInto tells objects of which capture knows more than that they are there.
func isLookedInto(value Value) bool {
	switch v := value.(type) {
	case *List:
		return v.loaded || len(v.appended) > 0
	case *Instance:
		return v.base != nil || len(v.fields.values) > 0
	case *Tensor:
		return v.gradient != nil || len(v.attributes) > 0 || v.meta.RequiresGrad
	}
	return true
}

// keepApart guards sources that gave different objects to do so again, where not all of them are certain to.
func (in *Interpreter) keepApart(sources []*guards.Source) {
	movable := func(source *guards.Source) bool { return source.Accessor.Kind != "object" }
	if len(sources) > 1 && slices.ContainsFunc(sources, movable) {
		in.program.KeepApart(in.reason(), sources)
	}
}
