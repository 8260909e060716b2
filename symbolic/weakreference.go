package symbolic

import (
	"strings"

	"github.com/cockroachdb/errors"

	"fusee/trace"
)

// weakReference is a weakref.ref without callback.
type weakReference struct{ target Value }

func (v *weakReference) typeName() string { return "weakref.ReferenceType" }

// call gives the referent where the capture knows that it lives, as objects do that existed before the call; others may have died.
func (v *weakReference) call(in *Interpreter, arguments Arguments) (Value, error) {
	if object := objectOf(v.target); object == nil || in.released[object.id] || len(arguments.Positional)+len(arguments.Keywords) > 0 {
		return nil, unsupported(reasonOpaqueCall, "a weak reference to %s", v.target.typeName())
	}
	return v.target, nil
}

// release notes that a variable no longer holds an object that existed before the call: it may have held the last reference to it, so that
// only Python can say what weak references give from then on.
func (in *Interpreter) release(before Value) {
	if lazy, isLazy := before.(*Lazy); isLazy && lazy.value == nil {
		if id, isObject := lazy.reference.(trace.ObjectID); isObject {
			in.released[id] = true
		}
		return
	} else if isLazy {
		before = lazy.value
	}
	if object := objectOf(before); object != nil {
		in.released[object.id] = true
	}
}

// noWeakReference tells instances made during capture that nothing refers to weakly: their __weakref__ is None.
func noWeakReference(name string, owner Value) bool {
	instance, ok := owner.(*Instance)
	return ok && strings.HasSuffix(name, ".__weakref__") && instance.object == nil && !instance.fields.watched
}

// constructWeakReference models weakref.ref of objects that anything may refer to weakly.
func (in *Interpreter) constructWeakReference(arguments Arguments) (Value, bool, error) {
	argument, ok := in.single(arguments)
	if !ok {
		return nil, false, nil
	}
	target, err := in.real(argument)
	if err != nil {
		return nil, true, err
	}
	switch v := target.(type) {
	case *Tensor, *Function, *Class:
		return &weakReference{target}, true, nil
	case *Dict:
		if v.object != nil && v.class != nil && v.class.name == "collections.OrderedDict" {
			return &weakReference{target}, true, nil
		}
	case *Instance:
		if v.fields.hasDict && v.base == nil {
			v.fields.watched = true
			return &weakReference{target}, true, nil
		}
	}
	return nil, true, unsupported(reasonOpaqueCall, "weakref.ref of %s", target.typeName())
}

// referent is what a weak reference that was there before the call refers to: the same object for its whole life, and None from then on. The
// guards hold for no call any more once the object is gone.
func (in *Interpreter) referent(reference *existing) (Value, error) {
	in.pin(reference)
	outcome, err := in.session.Evaluate(int64(reference.id), nil, nil)
	if err != nil {
		return nil, err
	}
	if outcome.Raised != 0 {
		return nil, errors.New("a weak reference raised an exception")
	}
	if id, ok := outcome.Value.(trace.ObjectID); ok && in.released[id] {
		return nil, unsupported(reasonOpaqueCall, "a weak reference to what a variable held")
	} else if ok {
		return &Lazy{reference: id, source: in.objectSource(id)}, nil
	}
	return none(), nil
}
