package symbolic

import (
	"fusee/bytecode"
	"fusee/guards"
	"fusee/trace"
)

// Sets that existed before and hold objects are not read whole: what is asked of them is guarded, so that other members may come and go.

// heldSet is the description of an existing set that capture did not read; nil for other objects and for subclasses.
func (in *Interpreter) heldSet(v *Opaque) (*trace.Description, error) {
	if v.object == nil || v.kind != "set" && v.kind != "frozenset" {
		return nil, nil
	}
	d, err := in.session.Object(v.object.id)
	if err != nil {
		return nil, err
	}
	class, err := in.subclassOf(d.TypeID, d.Kind)
	if _, absent := d.Payload.(bytecode.NoneType); absent || err != nil || class != nil {
		return nil, err
	}
	return d, nil
}

// holdsObjects tells sets with members that are not read, before any of them is.
func (in *Interpreter) holdsObjects(d *trace.Description) (bool, error) {
	for _, item := range trace.Items(d.Payload) {
		id, isObject := item.(int64)
		if !isObject {
			continue
		}
		member, err := in.session.Object(trace.ObjectID(id))
		if err != nil {
			return false, err
		}
		if member.Kind == "object" || member.Kind == "tensor" || member.Kind == "module_tree" {
			return true, nil
		}
	}
	return false, nil
}

// heldSetContains is the `in` operator for an existing set. It is not known where only code of the program could tell: the __eq__ or __hash__ of
// an item or a member.
func (in *Interpreter) heldSetContains(v *Opaque, item Value) (found, known bool, err error) {
	d, err := in.heldSet(v)
	if d == nil || err != nil {
		return false, false, err
	}
	if item, err = in.real(item); err != nil {
		return false, false, err
	}
	if _, isSet := item.(*Set); isSet {
		return false, false, nil // Python looks a frozen copy of it up
	}
	hashed, err := in.hashKey(item)
	if err != nil || isCustomHash(hashed) {
		return false, false, err
	}
	constant, isConstant := constantObject(item)
	object := objectOf(item)
	if !isConstant && object == nil {
		return false, madeInCapture(item) && hashed == any(item), nil
	}
	var wire bytecode.Object
	if !isConstant {
		wire = int64(object.id)
	} else if wire, known = in.wire(item); !known {
		return false, false, nil
	}
	found, known, err = in.lookUp(v.object, wire)
	if known && isConstant {
		in.sourceOf(v.object).Require(in.reason(), byAnswer(found, "contains", "lacks"), bytecode.Tuple{constant})
	} else if known {
		in.pinFunction(item)
		in.program.Relate(in.reason(), byAnswer(found, "member", "no_member"), in.sourceOf(v.object), in.sourceOf(object))
	}
	return found, known, err
}

func byAnswer(found bool, holds, lacks string) string {
	if found {
		return holds
	}
	return lacks
}

// lookUp asks the host whether a set holds an item, as guards will.
func (in *Interpreter) lookUp(set *existing, item bytecode.Object) (found, known bool, err error) {
	outcome, err := in.session.Evaluate(nameWire("fusee._helpers.set_holds"), []bytecode.Object{int64(set.id), item}, nil)
	if err != nil || outcome.Raised != 0 {
		return false, false, err
	}
	value, err := in.outcomeValue(outcome)
	if err != nil {
		return false, false, err
	}
	answer, _ := constantObject(value)
	found, known = answer.(bool)
	return found, known, nil
}

// heldSetLength is len() of an existing set.
func (in *Interpreter) heldSetLength(v *Opaque) (length int, known bool, err error) {
	d, err := in.heldSet(v)
	if d == nil || err != nil {
		return 0, false, err
	}
	length = len(trace.Items(d.Payload))
	in.sourceOf(v.object).Require(in.reason(), "len", int64(length))
	return length, true, nil
}

// sourceOf is where guards read an existing object; the object itself where it was met without a path to it.
func (in *Interpreter) sourceOf(object *existing) *guards.Source {
	if object.source != nil {
		return object.source
	}
	return in.objectSource(object.id)
}
