package symbolic

import (
	"slices"

	"github.com/cockroachdb/errors"

	"fusee/trace"
)

// isHeldGenerator tells generators that were there before the call, as those that an earlier break handed over are. What one does when its last
// variable goes is the program's own code, so that variables keep them as long as Python's would.
func (in *Interpreter) isHeldGenerator(value Value) (bool, error) {
	var id trace.ObjectID
	switch v := value.(type) {
	case *Lazy:
		if v.value != nil {
			return in.isHeldGenerator(v.value)
		}
		id, _ = v.reference.(trace.ObjectID)
	case *Opaque:
		id = v.object.id
	}
	if id == 0 {
		return false, nil
	}
	description, err := in.session.Object(id)
	if err != nil || description.Kind != "opaque" || description.TypeID == 0 {
		return false, err
	}
	class, err := in.classByID(description.TypeID)
	return err == nil && class.name == "generator", err
}

// endsWithVariable tells generators of which more than their memory goes when their last variable does.
func (in *Interpreter) endsWithVariable(value Value) (bool, error) {
	g, ok := value.(*Generator)
	if !ok {
		return in.isHeldGenerator(value)
	}
	if !g.started || g.finished || g.running {
		return false, nil
	}
	quiet, err := in.dropsQuietly(g.frame)
	return !quiet, err
}

// keepGenerators has the variables of frames that hold such generators cross a break though nothing reads them any more. Those that hold
// an object which a weak reference may show do too.
func (in *Interpreter) keepGenerators(frames []*Frame) error {
	for _, f := range frames {
		f.kept = make([]bool, len(f.locals))
		for k, value := range f.locals {
			if value == nil || ownName(f.code.LocalsPlusNames[k]) {
				continue
			}
			kept, err := in.endsWithVariable(value)
			if err != nil {
				return err
			}
			f.kept[k] = kept || in.seenWeakly(value) || onStack(frames, value)
		}
	}
	return nil
}

// seenWeakly tells objects from outside of the capture, of which there may be weak references that the program reads. Tensors go with their last use,
// for their memory, and modules live elsewhere.
func (in *Interpreter) seenWeakly(value Value) bool {
	switch v := value.(type) {
	case *Lazy:
		if v.value != nil {
			return in.seenWeakly(v.value)
		}
		id, _ := v.reference.(trace.ObjectID)
		known := in.session.Known(id)
		return known != nil && weaklySeenKind(known.Kind)
	case *Cell:
		return v.content != nil && in.seenWeakly(v.content)
	case *Instance:
		return v.object != nil && !v.class.isSubclassOf("torch.nn.modules.module.Module") || v.fields != nil && v.fields.watched
	case *List, *Dict, *Set, *Deque, *Opaque:
		return objectOf(value) != nil
	}
	return false
}

// weaklySeenKind tells the kinds of descriptions of objects that are, or hold, what weak references may be made of.
func weaklySeenKind(kind string) bool {
	switch kind {
	case "object", "list", "dict", "set", "deque", "opaque":
		return true
	}
	return false
}

// onStack tells objects that the capture made and that the stack of a frame holds, so that Python gets them and may refer to them weakly.
func onStack(frames []*Frame, value Value) bool {
	if _, isInstance := value.(*Instance); !isInstance {
		return false
	}
	return slices.ContainsFunc(frames, func(f *Frame) bool { return slices.Contains(f.stack, value) })
}

// loses breaks where a variable, or the stack, gives up a generator that was there before.
func (in *Interpreter) loses(value Value, holder string) error {
	if value == nil || in.request.Options.FullGraph {
		return nil
	}
	held, err := in.isHeldGenerator(value)
	if err == nil && held {
		err = unsupported(reasonGenerator, "%s held one", holder)
	}
	return err
}

// losesBy breaks where an exception is raised that takes such a generator off the stack, which ends it ahead of what handles the exception.
func (in *Interpreter) losesBy(raised *Raised, stack []Value) error {
	for _, value := range stack {
		var lost *Unsupported
		if err := in.loses(value, "the stack"); errors.As(err, &lost) {
			return &restart{step: raised.step, reason: lost}
		} else if err != nil {
			return err
		}
	}
	return nil
}

// popTop is POP_TOP. Python itself drops a generator that was there before, as a loop that is left does with the one it walked.
func (in *Interpreter) popTop(f *Frame) error {
	if err := in.loses(f.peek(1), "the stack"); err != nil {
		return err
	}
	f.pop()
	return nil
}

// storeFast is STORE_FAST. Python itself takes a variable from a generator that was there before, which may end with it.
func (in *Interpreter) storeFast(f *Frame, index int) error {
	if err := in.loses(f.locals[index], f.code.LocalsPlusNames[index]); err != nil {
		return err
	}
	in.release(f.locals[index])
	f.locals[index] = f.pop()
	return nil
}

// tracebackWanted is what a break says at which Python raises an exception whose traceback the program looks at.
const tracebackWanted = "a traceback"

// keepForTraceback has the variables of frames that an exception is raised in cross the break though nothing reads them any more: whoever looks at
// the traceback finds them. Those that only exist in the capture are left out where making them might fail.
func keepForTraceback(frames []*Frame) {
	for _, f := range frames {
		for k, value := range f.locals {
			f.kept[k] = f.kept[k] || value != nil && !ownName(f.code.LocalsPlusNames[k]) && easilyMade(value, 0)
		}
	}
}

// easilyMade tells values that rewritten code loads, or puts together from such.
func easilyMade(value Value, nesting int) bool {
	const most = 8
	var items []Value
	switch v := value.(type) {
	case *Lazy:
		return v.value == nil || easilyMade(v.value, nesting)
	case *Constant, *Number:
		return true
	case *Tensor:
		return v.id == 0 && v.class == nil && len(v.attributes) == 0 && !v.madeParameter() || objectOf(v) != nil
	case *Tuple:
		if v.class == nil {
			items = v.items
		}
	case *List:
		items = v.items
	}
	if objectOf(value) != nil {
		return true
	}
	for _, item := range items {
		if nesting == most || !easilyMade(item, nesting+1) {
			return false
		}
	}
	return items != nil
}
