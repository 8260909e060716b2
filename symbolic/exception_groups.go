package symbolic

import (
	"fmt"

	"github.com/cockroachdb/errors"
)

// groupMembers checks the arguments of an exception group, as BaseExceptionGroup.__new__ does.
func (in *Interpreter) groupMembers(v *Instance, values []Value) error {
	if len(values) != 2 {
		return unsupported(reasonException, "an exception group of %d arguments", len(values))
	}
	message, err := in.real(values[0])
	if err != nil {
		return err
	}
	if _, ok := stringOf(message); !ok {
		return in.raise("TypeError", "argument 1 must be str, not "+shortName(message.typeName()))
	}
	given, err := in.real(values[1])
	if err != nil {
		return err
	}
	switch given.(type) {
	case *List, *Tuple:
	default:
		return in.raise("TypeError", "second argument (exceptions) must be a sequence")
	}
	items, err := in.listOf(given)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		return in.raise("ValueError", "second argument (exceptions) must be a non-empty sequence")
	}
	plain, err := in.checkGrouped(items)
	if err != nil {
		return err
	}
	if !plain && v.class.isSubclassOf("ExceptionGroup") {
		return in.raise("TypeError", "Cannot nest BaseExceptions in an ExceptionGroup")
	}
	if plain && v.class.name == "BaseExceptionGroup" {
		v.class = in.builtinClass("ExceptionGroup")
		if v.class, err = in.namedClass("ExceptionGroup"); err != nil {
			return err
		}
	}
	members := v.exception.members
	members["message"], members["exceptions"] = message, &Tuple{items: append([]Value{}, items...)}
	return nil
}

// checkGrouped tells whether all items are Exceptions; others than exceptions are refused.
func (in *Interpreter) checkGrouped(items []Value) (bool, error) {
	plain := true
	for i, item := range items {
		item, err := in.real(item)
		if err != nil {
			return false, err
		}
		exception, ok := item.(*Instance)
		if !ok || !exception.class.isSubclassOf("BaseException") {
			return false, in.raise("ValueError", fmt.Sprintf("Item %d of second argument (exceptions) is not an exception", i))
		}
		items[i] = item
		plain = plain && exception.class.isSubclassOf("Exception")
	}
	return plain, nil
}

// groupText is BaseExceptionGroup.__str__.
func (in *Interpreter) groupText(v *Instance) (Value, bool, error) {
	message, err := in.stringify(v.exception.members["message"])
	if err != nil {
		return nil, true, err
	}
	written, err := in.textOf(message)
	if err != nil {
		return nil, true, err
	}
	count := len(v.grouped())
	return text(fmt.Sprintf("%s (%d sub-exception%s)", written, count, plural(count))), true, nil
}

// grouped lists the exceptions of a group.
func (v *Instance) grouped() []Value {
	if tuple, ok := v.exception.members["exceptions"].(*Tuple); ok {
		return tuple.items
	}
	return nil
}

// groupMethod runs derive, split and subgroup.
func (in *Interpreter) groupMethod(v *Instance, method string, values []Value) (Value, bool, error) {
	if len(values) != 1 {
		return nil, false, nil
	}
	switch method {
	case "derive":
		class, err := in.namedClass("BaseExceptionGroup")
		if err != nil {
			return nil, true, err
		}
		return modelled(in.newException(class, Arguments{Positional: []Value{v.exception.members["message"], values[0]}}))
	case "split", "subgroup":
		match, rest, err := in.splitGroup(v, in.groupCondition(values[0]))
		if err != nil {
			return nil, true, err
		}
		if method == "subgroup" {
			return orNoException(match), true, nil
		}
		return &Tuple{items: []Value{orNoException(match), orNoException(rest)}}, true, nil
	}
	return nil, false, nil
}

func orNoException(exception *Instance) Value {
	if exception == nil {
		return none()
	}
	return exception
}

// groupCondition is what split and subgroup take: a type, a tuple of types, or a predicate.
func (in *Interpreter) groupCondition(condition Value) func(*Instance) (bool, error) {
	return func(exception *Instance) (bool, error) {
		real, err := in.real(condition)
		if err != nil {
			return false, err
		}
		switch real.(type) {
		case *Class, *Tuple:
			return in.exceptionMatches(exception, real)
		}
		return in.truthOfCall(real, exception)
	}
}

// splitGroup is exceptiongroup_split_recursive: the parts of an exception that satisfy a condition, and the rest; nil for none.
func (in *Interpreter) splitGroup(v *Instance, holds func(*Instance) (bool, error)) (match, rest *Instance, err error) {
	found, err := holds(v)
	if err != nil {
		return nil, nil, err
	}
	if found {
		return v, nil, nil
	}
	if !v.class.isSubclassOf("BaseExceptionGroup") {
		return nil, v, nil
	}
	if v.exception == nil {
		return nil, nil, unsupported(reasonException, "an existing exception group")
	}
	var matched, left []Value
	for _, item := range v.grouped() {
		inner, other, err := in.splitGroup(item.(*Instance), holds)
		if err != nil {
			return nil, nil, err
		}
		if inner != nil {
			matched = append(matched, inner)
		}
		if other != nil {
			left = append(left, other)
		}
	}
	if match, err = in.subsetOf(v, matched); err != nil {
		return nil, nil, err
	}
	rest, err = in.subsetOf(v, left)
	return match, rest, err
}

// subsetOf makes a group of some of a group's exceptions, through derive(), with the links of the whole.
func (in *Interpreter) subsetOf(v *Instance, items []Value) (*Instance, error) {
	if len(items) == 0 {
		return nil, nil
	}
	derive, err := in.getAttribute(v, "derive")
	if err != nil {
		return nil, err
	}
	made, err := in.call(derive, Arguments{Positional: []Value{newList(items)}})
	if err != nil {
		return nil, err
	}
	subset, ok := made.(*Instance)
	if !ok || !subset.class.isSubclassOf("BaseExceptionGroup") {
		return nil, in.raise("TypeError", "derive must return an instance of BaseExceptionGroup")
	}
	if subset.exception == nil {
		return nil, errors.New("a derived exception group exists already")
	}
	state := v.exception
	subset.exception.context, subset.exception.cause, subset.exception.traceback = state.context, state.cause, state.traceback
	subset.exception.suppressContext = state.suppressContext || state.cause != nil
	return subset, in.copyNotes(v, subset)
}

func (in *Interpreter) copyNotes(from, to *Instance) error {
	notes, err := in.optionalAttribute(from, "__notes__")
	if err != nil || notes == nil {
		return err
	}
	items, err := in.listOf(notes)
	if err != nil {
		return err
	}
	return in.setAttribute(to, "__notes__", newList(append([]Value{}, items...)))
}

// checkGroupMatch is CHECK_EG_MATCH: the type on top of the stack takes its part of the exception below, and the rest stays.
func (in *Interpreter) checkGroupMatch(f *Frame) error {
	match, err := in.real(f.pop())
	if err != nil {
		return err
	}
	value, err := in.real(f.pop())
	if err != nil {
		return err
	}
	if isNone(value) {
		f.push(none())
		f.push(none())
		return nil
	}
	exception, ok := value.(*Instance)
	if !ok || exception.exception == nil {
		return unsupported(reasonException, "except* of %s", value.typeName())
	}
	if err := in.checkGroupTypes(match); err != nil {
		return err
	}
	found, err := in.exceptionMatches(exception, match)
	if err != nil {
		return err
	}
	if found {
		if !exception.class.isSubclassOf("BaseExceptionGroup") {
			if exception, err = in.wrapInGroup(exception); err != nil {
				return err
			}
		}
		f.push(none())
		f.push(exception)
		in.setHandled(f, exception)
		return nil
	}
	part, rest := (*Instance)(nil), exception
	if exception.class.isSubclassOf("BaseExceptionGroup") {
		if part, rest, err = in.splitGroup(exception, in.groupCondition(match)); err != nil {
			return err
		}
	}
	f.push(orNoException(rest))
	f.push(orNoException(part))
	if part != nil {
		in.setHandled(f, part)
	}
	return nil
}

// setHandled makes a part of the group the exception that the handler handles.
func (in *Interpreter) setHandled(f *Frame, exception *Instance) {
	if n := len(f.handling); n > 0 {
		in.activity++
		f.handling = append(append([]Value{}, f.handling[:n-1]...), exception)
	}
}

// checkGroupTypes refuses exception groups as types of except*.
func (in *Interpreter) checkGroupTypes(match Value) error {
	if err := in.checkExceptionTypes(match); err != nil {
		return err
	}
	types, err := in.caughtTypes(match)
	if err != nil {
		return err
	}
	for _, item := range types {
		if class, ok := item.(*Class); ok && class.isSubclassOf("BaseExceptionGroup") {
			return in.raise("TypeError", "catching ExceptionGroup with except* is not allowed. Use except instead.")
		}
	}
	return nil
}

// wrapInGroup makes a group of a lone exception that except* caught.
func (in *Interpreter) wrapInGroup(exception *Instance) (*Instance, error) {
	class, err := in.namedClass("BaseExceptionGroup")
	if err != nil {
		return nil, err
	}
	return in.newException(class, Arguments{Positional: []Value{text(""), &Tuple{items: []Value{exception}}}})
}

// prepareReraise is PREP_RERAISE_STAR: what is raised at the end of the except* clauses, None for nothing.
func (in *Interpreter) prepareReraise(f *Frame) error {
	raised, err := in.listOf(f.pop())
	if err != nil {
		return err
	}
	value, err := in.real(f.pop())
	if err != nil {
		return err
	}
	original, ok := value.(*Instance)
	if !ok || original.exception == nil {
		return unsupported(reasonException, "except* of %s", value.typeName())
	}
	return in.pushResult(f)(in.reraiseOf(original, raised))
}

// reraiseOf is _PyExc_PrepReraiseStar: exceptions that the clauses raised join those that nothing caught, which keep their nesting.
func (in *Interpreter) reraiseOf(original *Instance, results []Value) (Value, error) {
	var raised, unhandled []Value
	for _, item := range results {
		item, err := in.real(item)
		if err != nil {
			return nil, err
		}
		exception, ok := item.(*Instance)
		if ok && exception.exception == nil {
			return nil, unsupported(reasonException, "an existing exception")
		}
		switch {
		case !ok: // None: the clause ended well
		case sharesOrigin(exception, original):
			unhandled = append(unhandled, exception)
		default:
			raised = append(raised, exception)
		}
	}
	if !original.class.isSubclassOf("BaseExceptionGroup") {
		if len(raised) > 0 {
			return raised[0], nil
		}
		if len(unhandled) > 0 {
			return unhandled[0], nil
		}
		return none(), nil
	}
	kept, err := in.keepLeaves(original, unhandled)
	if err != nil {
		return nil, err
	}
	if len(raised) == 0 {
		return orNoException(kept), nil
	}
	if kept != nil {
		raised = append(raised, kept)
	}
	if len(raised) == 1 {
		return raised[0], nil
	}
	class, err := in.namedClass("BaseExceptionGroup")
	if err != nil {
		return nil, err
	}
	return in.newException(class, Arguments{Positional: []Value{text(""), newList(raised)}})
}

// sharesOrigin tells parts of the original group, which are raised again, from exceptions that a clause raised anew.
func sharesOrigin(exception, original *Instance) bool {
	a, b := exception.exception, original.exception
	if exception == original {
		return true
	}
	return exception.class.isSubclassOf("BaseExceptionGroup") && a.traceback == b.traceback && a.cause == b.cause && a.context == b.context && sameNotes(exception, original)
}

func sameNotes(a, b *Instance) bool {
	return (a.fields.values["__notes__"] == nil) == (b.fields.values["__notes__"] == nil)
}

// keepLeaves is the part of a group whose leaves occur in the given groups.
func (in *Interpreter) keepLeaves(original *Instance, groups []Value) (*Instance, error) {
	leaves := map[*Instance]bool{}
	for _, group := range groups {
		collectLeaves(group.(*Instance), leaves)
	}
	if len(leaves) == 0 {
		return nil, nil
	}
	match, _, err := in.splitGroup(original, func(exception *Instance) (bool, error) { return leaves[exception], nil })
	return match, err
}

func collectLeaves(exception *Instance, leaves map[*Instance]bool) {
	if !exception.class.isSubclassOf("BaseExceptionGroup") {
		leaves[exception] = true
		return
	}
	if exception.exception == nil {
		return // it was no part of the group that was split
	}
	for _, item := range exception.grouped() {
		collectLeaves(item.(*Instance), leaves)
	}
}
