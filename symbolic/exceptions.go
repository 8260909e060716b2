package symbolic

import (
	"github.com/cockroachdb/errors"

	"fusee/bytecode"
	"fusee/guards"
	"fusee/trace"
)

// exceptionState is what a BaseException instance carries besides its attributes.
type exceptionState struct {
	arguments       []Value
	cause, context  Value // nil is None
	suppressContext bool
	bare            bool  // made by __new__ alone
	raisedAt        int   // the step that raised it; 0 when it was only made
	traceback       Value // nil is None
	members         map[string]Value
	written         []string // members that the program set, in order of first setting
}

// raise makes and raises a builtin exception with one message.
func (in *Interpreter) raise(class, message string) error {
	return in.raiseWith(in.builtinClass(class), text(message))
}

func (in *Interpreter) raiseWith(class *Class, arguments ...Value) error {
	exception, err := in.newException(class, Arguments{Positional: arguments})
	if err != nil {
		return err
	}
	return in.raiseInstance(exception)
}

// raiseInstance raises an exception object, chaining it to the one being handled.
func (in *Interpreter) raiseInstance(exception *Instance) error {
	in.chain(exception, in.handled())
	step := 0
	if in.frame != nil {
		step = in.frame.step
	}
	if exception.exception.raisedAt == 0 {
		exception.exception.raisedAt = step
	}
	if exception.exception.traceback == nil {
		exception.exception.traceback = in.traceback(exception)
	}
	return &Raised{exception, step}
}

// chain makes the exception that is being handled the context of one that is raised; a cycle that this would close is cut, as
// _PyErr_SetObject does.
func (in *Interpreter) chain(exception *Instance, current Value) {
	if current == nil || current == Value(exception) {
		return
	}
	seen := map[Value]bool{}
	for at, _ := current.(*Instance); at != nil && at.exception != nil && !seen[at]; {
		seen[at] = true
		if at.exception.context == Value(exception) {
			at.exception.context = nil
			break
		}
		at, _ = at.exception.context.(*Instance)
	}
	exception.exception.context = current
}

// handled is the exception that sys.exc_info would show, nil for none.
func (in *Interpreter) handled() Value {
	for f := in.frame; f != nil; f = f.back {
		if n := len(f.handling); n > 0 {
			return f.handling[n-1]
		}
	}
	return nil
}

// isCompiling is the answer to is_compiling() at this step.
func (in *Interpreter) isCompiling() bool {
	if in.steps >= in.plainFrom {
		return false
	}
	in.toldCompiling = in.steps
	return true
}

// raisedForCompiler asks for another attempt where an exception of the capture may be there for what the program does where is_compiling() is True,
// and so is not to reach the user: Python would run the function with the answer False.
func (in *Interpreter) raisedForCompiler(exception Value) error {
	instance, made := exception.(*Instance)
	if in.toldCompiling > 0 && made && instance.exception != nil && instance.exception.raisedAt > 0 {
		return &restart{step: in.toldCompiling, plainly: true}
	}
	return nil
}

// nothingHandled guards that no caller of the captured function handles an exception, which bare raise and sys.exc_info() would find.
func (in *Interpreter) nothingHandled() error {
	if in.request.Handling {
		return unsupported(reasonException, "that a caller handles")
	}
	in.program.Root(guards.Accessor{Kind: "handled"}).Require(in.reason(), "is", bytecode.None)
	return nil
}

// isRaised tells whether an error is a Python exception of a class or one derived from it.
func isRaised(err error, class string) bool {
	raised, ok := err.(*Raised)
	return ok && raised.Exception.class.isSubclassOf(class)
}

// outcomeValue turns an answer of the host into a value or a raised exception.
func (in *Interpreter) outcomeValue(outcome *trace.Outcome) (Value, error) {
	if outcome.Unsupported != "" {
		return nil, unsupported(reasonBuiltinCall, "%s", outcome.Unsupported)
	}
	if outcome.Raised != 0 {
		class, err := in.classByID(outcome.Raised)
		if err != nil {
			return nil, err
		}
		arguments := make([]Value, len(outcome.Arguments))
		for i, reference := range outcome.Arguments {
			if arguments[i], err = in.realize(reference, nil); err != nil {
				return nil, err
			}
		}
		return nil, in.raiseWith(class, arguments...)
	}
	return in.answered(outcome.Value)
}

// answered wraps an object that the host made for the capture: containers become new values that the program may change.
func (in *Interpreter) answered(reference trace.Reference) (Value, error) {
	if constant, ok := reference.(trace.Constant); ok {
		return &Constant{constant.Value}, nil
	}
	id := reference.(trace.ObjectID)
	d, err := in.session.Object(id)
	if err != nil {
		return nil, err
	}
	switch d.Kind {
	case "tuple", "list", "set", "frozenset", "dict":
		return in.copyDescribed(d)
	case "object":
		return in.realize(reference, nil) // nobody else has it, so that nothing of it can differ at the next call
	}
	return in.realize(reference, in.objectSource(id))
}

func (in *Interpreter) copyDescribed(d *trace.Description) (Value, error) {
	if d.Kind == "dict" {
		return in.copyDescribedDict(d)
	}
	var items []Value
	for _, item := range trace.Items(d.Payload) {
		reference, err := trace.ParseReference(item)
		if err != nil {
			return nil, err
		}
		value, err := in.answered(reference)
		if err != nil {
			return nil, err
		}
		items = append(items, value)
	}
	switch d.Kind {
	case "list":
		return newList(items), nil
	case "tuple":
		class, err := in.subclassOf(d.TypeID, "tuple")
		return &Tuple{items: items, class: class}, err
	}
	set, err := in.newSet(items, d.Kind == "frozenset")
	if err == nil {
		set.(*Set).mixed, set.(*Set).table = true, nil // the host's own one has another history
	}
	return set, err
}

func (in *Interpreter) copyDescribedDict(d *trace.Description) (Value, error) {
	class, err := in.subclassOf(d.TypeID, "dict")
	if err != nil {
		return nil, err
	}
	if class != nil && userClass(class.name) {
		return nil, unsupported(reasonOpaqueCall, "a result of type %s", class.name)
	}
	dict := newDict()
	dict.class = class
	for _, item := range trace.Items(d.Payload) {
		pair, ok := item.(bytecode.Tuple)
		if !ok || len(pair) != 2 {
			return nil, errors.New("a dict's item is malformed")
		}
		var parts [2]Value
		for k := range parts {
			reference, err := trace.ParseReference(pair[k])
			if err != nil {
				return nil, err
			}
			if parts[k], err = in.answered(reference); err != nil {
				return nil, err
			}
		}
		if err := dict.setItem(in, parts[0], parts[1]); err != nil {
			return nil, err
		}
	}
	return dict, nil
}

func orNone(value Value) Value {
	if value == nil {
		return none()
	}
	return value
}

func (in *Interpreter) raiseVarargs(f *Frame, count int) error {
	if count == 0 {
		current := in.handled()
		if current == nil {
			if err := in.nothingHandled(); err != nil {
				return err
			}
			return in.raise("RuntimeError", "No active exception to reraise")
		}
		exception, err := in.exceptionOf(current)
		if err != nil {
			return err
		}
		return &Raised{exception, exception.exception.raisedAt}
	}
	var cause Value
	if count == 2 {
		cause = f.pop()
	}
	exception, err := in.exceptionOf(f.pop())
	if err != nil {
		return err
	}
	if cause != nil {
		if cause, err = in.real(cause); err != nil {
			return err
		}
		exception.exception.suppressContext = true
		if !isNone(cause) {
			linked, err := in.causeOf(cause)
			if err != nil {
				return err
			}
			exception.exception.cause = linked
		} else {
			exception.exception.cause = nil
		}
	}
	in.activity++
	return in.raiseInstance(exception)
}

// causeOf is what stands behind from: an exception, or a class of one, which it instantiates.
func (in *Interpreter) causeOf(cause Value) (Value, error) {
	if class, ok := cause.(*Class); ok && class.isSubclassOf("BaseException") {
		made, err := in.call(class, Arguments{})
		if err != nil {
			return nil, err
		}
		cause = made
	}
	if instance, ok := cause.(*Instance); ok && instance.class.isSubclassOf("BaseException") {
		return cause, nil
	}
	return nil, in.raise("TypeError", "exception causes must derive from BaseException")
}

// exceptionOf accepts an exception or an exception class, which it instantiates.
func (in *Interpreter) exceptionOf(value Value) (*Instance, error) {
	value, err := in.real(value)
	if err != nil {
		return nil, err
	}
	if class, ok := value.(*Class); ok && class.isSubclassOf("BaseException") {
		if value, err = in.call(class, Arguments{}); err != nil {
			return nil, err
		}
		if made, ok := value.(*Instance); !ok || !made.class.isSubclassOf("BaseException") {
			shown, err := in.representClass(class)
			if err != nil {
				return nil, err
			}
			got, err := in.classOf(value)
			if err != nil {
				return nil, err
			}
			return nil, in.raise("TypeError", "calling "+shown+" should have returned an instance of BaseException, not <class '"+got.name+"'>")
		}
	}
	if exception, ok := value.(*Instance); ok {
		if exception.exception != nil {
			return exception, nil
		}
		if exception.class.isSubclassOf("BaseException") {
			return nil, unsupported(reasonException, "%s", exception.class.name)
		}
	}
	if _, ok := value.(*Opaque); ok {
		return nil, unsupported(reasonException, "%s", value.typeName())
	}
	return nil, in.raise("TypeError", "exceptions must derive from BaseException")
}

func (in *Interpreter) reraise(f *Frame, arg int) error {
	exception, ok := f.pop().(*Instance)
	if !ok {
		return unsupported(reasonException, "reraise")
	}
	return &Raised{exception, exception.exception.raisedAt}
}

func (in *Interpreter) pushExceptionInfo(f *Frame) {
	exception := f.pop()
	f.push(&exceptionMarker{exception})
	f.push(exception)
	f.handling = append(f.handling, exception)
}

func (in *Interpreter) popExcept(f *Frame) error {
	if _, ok := f.pop().(*exceptionMarker); !ok || len(f.handling) == 0 {
		return errors.New("POP_EXCEPT without an exception")
	}
	f.handling = f.handling[:len(f.handling)-1]
	return nil
}

func (in *Interpreter) checkExceptionMatch(f *Frame) error {
	match, err := in.real(f.pop())
	if err != nil {
		return err
	}
	exception, ok := f.peek(1).(*Instance)
	if !ok {
		return unsupported(reasonException, "match")
	}
	if err := in.checkExceptionTypes(match); err != nil {
		return err
	}
	found, err := in.exceptionMatches(exception, match)
	if err == nil {
		f.push(boolean(found))
	}
	return err
}

// caughtTypes are the types that an except clause names: one, or those of a tuple.
func (in *Interpreter) caughtTypes(match Value) ([]Value, error) {
	if tuple, ok := match.(*Tuple); ok {
		return in.realAll(tuple.items)
	}
	return in.realAll([]Value{match})
}

// checkExceptionTypes refuses what except cannot catch, in the whole of a tuple before any of it is compared
// (check_except_type_valid of CPython's ceval.c).
func (in *Interpreter) checkExceptionTypes(match Value) error {
	types, err := in.caughtTypes(match)
	if err != nil {
		return err
	}
	for _, item := range types {
		if class, ok := item.(*Class); !ok || !class.isSubclassOf("BaseException") {
			return in.raise("TypeError", "catching classes that do not inherit from BaseException is not allowed")
		}
	}
	return nil
}

func (in *Interpreter) exceptionMatches(exception *Instance, match Value) (bool, error) {
	switch m := match.(type) {
	case *Class:
		return exception.class.inherits(m), nil
	case *Tuple:
		for _, item := range m.items {
			item, err := in.real(item)
			if err != nil {
				return false, err
			}
			if found, err := in.exceptionMatches(exception, item); found || err != nil {
				return found, err
			}
		}
		return false, nil
	}
	return false, in.raise("TypeError", "catching classes that do not inherit from BaseException is not allowed")
}

// beforeWith looks up __exit__ and runs __enter__; the exit method stays on the stack under the result.
func (in *Interpreter) beforeWith(f *Frame) error {
	manager, err := in.real(f.pop())
	if err != nil {
		return err
	}
	class, err := in.classOf(manager)
	if err != nil {
		return err
	}
	enter, err := in.specialMethod(class, "__enter__", manager)
	if err != nil {
		return err
	}
	exit, err := in.specialMethod(class, "__exit__", manager)
	if err != nil {
		return err
	}
	if enter == nil || exit == nil {
		return in.raise("TypeError", "'"+shortName(class.name)+"' object does not support the context manager protocol")
	}
	f.push(exit)
	in.tail = &adapter{}
	result, err := in.tailCall(enter, Arguments{})
	if err != nil {
		return err
	}
	f.push(result)
	return nil
}

// specialMethod looks a dunder up on the class and binds it; nil when absent.
func (in *Interpreter) specialMethod(class *Class, name string, owner Value) (Value, error) {
	found, _, err := in.classLookup(class, name)
	if err != nil || found == nil {
		return nil, err
	}
	if builtin, ok := found.(*Builtin); ok {
		if err := in.checkReceiver(builtin, owner); err != nil {
			return nil, err
		}
	}
	return in.bindDescriptor(found, owner, class)
}

// neededMethod looks a dunder up on the class of a value, which cannot do without.
func (in *Interpreter) neededMethod(class *Class, name string, owner Value, lack string) (Value, error) {
	method, err := in.specialMethod(class, name, owner)
	if err == nil && method == nil {
		err = in.raise("TypeError", "'"+shortName(class.name)+"' object "+lack)
	}
	return method, err
}

// withExceptStart calls the exit method with the exception: the stack holds exit, lasti, the saved exception and the exception.
func (in *Interpreter) withExceptStart(f *Frame) error {
	exception, ok := f.peek(1).(*Instance)
	if !ok {
		return unsupported(reasonContext, "exception")
	}
	exit := f.peek(4)
	in.tail = &adapter{}
	return in.pushResult(f)(in.tailCall(exit, Arguments{Positional: []Value{exception.class, exception, orNone(exception.exception.traceback)}}))
}

// traceback stands for an exception's traceback: it can be passed on, not looked into.
func (in *Interpreter) traceback(exception *Instance) Value {
	return &tracebackValue{exception}
}

type tracebackValue struct{ exception *Instance }

func (v *tracebackValue) typeName() string { return "traceback" }

// exceptionInfo is sys.exc_info().
func (in *Interpreter) exceptionInfo() (Value, error) {
	exception, ok := in.handled().(*Instance)
	if !ok {
		return &Tuple{items: []Value{none(), none(), none()}}, in.nothingHandled()
	}
	return &Tuple{items: []Value{exception.class, exception, orNone(exception.exception.traceback)}}, nil
}
