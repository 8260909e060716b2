package symbolic

import (
	"strings"

	"fusee/bytecode"
	"fusee/internal/slice"
	"fusee/trace"
)

// operatorGetter is an operator.itemgetter, attrgetter or methodcaller.
type operatorGetter struct {
	class     *Class
	arguments Arguments
	object    *existing
}

func (v *operatorGetter) typeName() string { return v.class.name }

func (in *Interpreter) constructGetter(c *Class, arguments Arguments) (Value, bool, error) {
	fits := len(arguments.Positional) > 0 && (len(arguments.Keywords) == 0 || c.name == "operator.methodcaller")
	names := arguments.Positional
	switch c.name {
	case "operator.itemgetter":
		names = nil
	case "operator.methodcaller":
		names = names[:min(1, len(names))]
	}
	for k, name := range names {
		real, err := in.real(name)
		if err != nil {
			return nil, true, err
		}
		_, isText := stringOf(real)
		names[k], fits = real, fits && isText
	}
	if !fits {
		return nil, true, unsupported(reasonBuiltinCall, "%s with these arguments", c.name)
	}
	return &operatorGetter{class: c, arguments: arguments}, true, nil
}

// describedGetter reads the arguments of an existing getter, which never change, through its __reduce__.
func (in *Interpreter) describedGetter(class *Class, object *existing) (Value, error) {
	if class.name == "operator.methodcaller" {
		return &Opaque{object, class.name}, nil // __reduce__ shows a partial object where it has keywords
	}
	outcome, err := in.session.Evaluate(nameWire(class.name+".__reduce__"), []bytecode.Object{int64(object.id)}, nil)
	if err != nil {
		return nil, err
	}
	value, err := in.outcomeValue(outcome)
	if err != nil {
		return nil, err
	}
	parts, ok := value.(*Tuple)
	if !ok || len(parts.items) != 2 {
		return &Opaque{object, class.name}, nil
	}
	positional, err := in.listOf(parts.items[1])
	if err != nil {
		return nil, err
	}
	if object.source != nil && object.source.Accessor.Kind != "object" {
		object.source.Require(in.reason(), "is", objectWire(object.id))
	}
	return &operatorGetter{class: class, arguments: Arguments{Positional: positional}, object: object}, nil
}

func (v *operatorGetter) call(in *Interpreter, arguments Arguments) (Value, error) {
	if len(arguments.Positional) != 1 || len(arguments.Keywords) > 0 {
		return nil, in.raise("TypeError", shortName(v.class.name)+" expected 1 argument, got "+integerText(len(arguments.Positional)))
	}
	owner := arguments.Positional[0]
	if v.class.name == "operator.methodcaller" {
		name, _ := stringOf(v.arguments.Positional[0])
		in.tail = nil
		method, err := in.getAttribute(owner, name)
		if err != nil {
			return nil, err
		}
		return in.call(method, Arguments{v.arguments.Positional[1:], v.arguments.Keywords})
	}
	in.tail = nil
	found, err := slice.TryMap(v.arguments.Positional, func(key Value) (Value, error) { return v.get(in, owner, key) })
	if err != nil {
		return nil, err
	}
	if len(found) == 1 {
		return found[0], nil
	}
	return &Tuple{items: found}, nil
}

// get reads an item, or an attribute along a dotted name.
func (v *operatorGetter) get(in *Interpreter, owner, key Value) (Value, error) {
	if v.class.name == "operator.itemgetter" {
		return in.getItem(owner, key)
	}
	path, _ := stringOf(key)
	for _, name := range strings.Split(path, ".") {
		value, err := in.getAttribute(owner, name)
		if err != nil {
			return nil, err
		}
		owner = value
	}
	return owner, nil
}

// reduceCall is functools.reduce.
func (in *Interpreter) reduceCall(arguments Arguments) (Value, bool, error) {
	values := arguments.Positional
	if len(values) < 2 || len(values) > 3 || len(arguments.Keywords) > 0 {
		return nil, false, nil
	}
	walker, err := in.iterate(values[1])
	if err != nil {
		return nil, true, err
	}
	var total Value
	if len(values) == 3 {
		total = values[2]
	}
	for {
		item, err := in.advance(walker)
		switch {
		case err != nil:
			return nil, true, err
		case item == nil && total == nil:
			return nil, true, in.raise("TypeError", "reduce() of empty iterable with no initial value")
		case item == nil:
			return total, true, nil
		case total == nil:
			total = item
			continue
		}
		if total, err = in.call(values[0], Arguments{Positional: []Value{total, item}}); err != nil {
			return nil, true, err
		}
	}
}

// classMethod runs a class method written in C, or __new__ called by name.
func (in *Interpreter) classMethod(c *Class, name string, arguments Arguments) (Value, bool, error) {
	switch {
	case name == "itertools.chain.from_iterable" && c.name == "itertools.chain":
		return modelled(in.chainFromIterable(arguments))
	case name == "type.__subclasses__" && len(arguments.Positional) == 0:
		return modelled(in.subclassesOf(c))
	case shortName(name) == "fromkeys":
		return in.dictFromKeys(c, arguments)
	case shortName(name) == "__new__" && len(arguments.Positional) > 0:
		return modelled((&newMethod{&Builtin{name: name}}).call(in, arguments))
	}
	return nil, false, nil
}

// subclassesOf is a new list of the classes that derive from a class directly; the guard is that there are as many, read again from it.
func (in *Interpreter) subclassesOf(c *Class) (Value, error) {
	if c.id == 0 || in.classesMade > 0 {
		return nil, unsupported(reasonBuiltinCall, "type.__subclasses__")
	}
	outcome, err := in.session.Evaluate(nameWire("type.__subclasses__"), []bytecode.Object{int64(c.id)}, nil)
	if err != nil {
		return nil, err
	}
	id, ok := outcome.Value.(trace.ObjectID)
	if !ok {
		return in.outcomeValue(outcome)
	}
	description, err := in.session.Object(id)
	if err != nil {
		return nil, err
	}
	source := in.objectSource(c.id).Child("subclasses", nil)
	items := []Value{}
	for i, item := range trace.Items(description.Payload) {
		reference, err := trace.ParseReference(item)
		if err != nil {
			return nil, err
		}
		items = append(items, &Lazy{reference: reference, source: source.Child("item", int64(i))})
	}
	source.Require(in.reason(), "len", int64(len(items)))
	return newList(items), nil
}

// dictFromKeys is dict.fromkeys of the dict types of the standard library.
func (in *Interpreter) dictFromKeys(c *Class, arguments Arguments) (Value, bool, error) {
	switch c.name {
	case "dict", "collections.OrderedDict", "collections.defaultdict":
	default:
		return nil, false, nil
	}
	if len(arguments.Positional) < 1 || len(arguments.Positional) > 2 || len(arguments.Keywords) > 0 {
		return nil, false, nil
	}
	keys, err := in.iterableItems(arguments.Positional[0])
	if err != nil {
		return nil, true, err
	}
	value := Value(none())
	if len(arguments.Positional) == 2 {
		value = arguments.Positional[1]
	}
	made, _, err := in.constructBuiltin(c, Arguments{})
	if err != nil {
		return nil, true, err
	}
	dict := made.(*Dict)
	if source, err := in.real(arguments.Positional[0]); err == nil {
		if set, ok := source.(*Set); ok {
			defer in.copying(storedHashes(set.index))()
		}
		if from, ok := source.(*Dict); ok {
			defer in.copying(storedHashes(from.index))()
		}
	}
	for _, key := range keys {
		if err := dict.setItem(in, key, value); err != nil {
			return nil, true, err
		}
	}
	return dict, true, nil
}

// internCall is sys.intern: equal text of one capture is one object anyway.
func (in *Interpreter) internCall(arguments Arguments) (Value, bool, error) {
	real, ok, err := in.singleReal(arguments)
	if !ok || err != nil {
		return nil, ok, err
	}
	_, isText := stringOf(real)
	return real, isText, nil
}

// constantCall calls a function that gives the same for the same arguments as long as the process lives: of a library, or so marked by the
// program. The callable is the function, or what wraps it.
func (in *Interpreter) constantCall(callable *existing, name string, arguments Arguments) (Value, error) {
	positional, keywords, unknown := wireArguments(arguments, in.wireUnchanged)
	if unknown != nil {
		return nil, unsupported(reasonOpaqueCall, "%s of %s", name, unknown.typeName())
	}
	if callable == nil {
		return nil, unsupported(reasonOpaqueCall, "%s, which was made in the same call", name)
	}
	return in.askHost(int64(callable.id), positional, keywords)
}

// wireUnchanged writes an argument for the host: objects of the program go as they are while the capture has changed nothing outside of it.
func (in *Interpreter) wireUnchanged(value Value) (bytecode.Object, bool) {
	value, err := in.real(value)
	if err != nil {
		return nil, false
	}
	if instance, ok := value.(*Instance); ok && instance.object != nil && in.outside == 0 {
		in.pin(instance.object)
		return int64(instance.object.id), true
	}
	return in.wire(value)
}

// wireArguments writes the arguments of a call for the host; otherwise unknown is the first that cannot be written.
func wireArguments(arguments Arguments, wire func(Value) (bytecode.Object, bool)) (positional, keywords []bytecode.Object, unknown Value) {
	for _, argument := range arguments.Positional {
		wired, ok := wire(argument)
		if !ok {
			return nil, nil, argument
		}
		positional = append(positional, wired)
	}
	for _, keyword := range arguments.Keywords {
		wired, ok := wire(keyword.Value)
		if !ok {
			return nil, nil, keyword.Value
		}
		keywords = append(keywords, bytecode.Tuple{keyword.Name, wired})
	}
	return positional, keywords, nil
}

// callCached calls a function through functools.lru_cache. The cache itself is beyond capture: a library's functions are called past it, which
// shows nowhere; the program's own only where it wants one graph at any price, with a warning, as what they return may be told from a cached value.
func (in *Interpreter) callCached(v *Instance, arguments Arguments) (Value, error) {
	wrapped, err := v.field(in, "__wrapped__")
	if err != nil {
		return nil, err
	}
	if wrapped, err = in.real(orNone(wrapped)); err != nil {
		return nil, err
	}
	function, ok := wrapped.(*Function)
	if !ok {
		return nil, unsupported(reasonBuiltinCall, "functools.lru_cache of %s", wrapped.typeName())
	}
	if function.treat == "constant" {
		return in.constantCall(v.object, function.qualname, arguments)
	}
	if !libraryModule(function.module) {
		if !in.request.Options.FullGraph {
			return nil, unsupported(reasonBuiltinCall, "%s, whose results functools.lru_cache keeps", function.qualname)
		}
		in.warn(function.qualname + " is called past its functools.lru_cache: inside a compiled function nothing is cached")
	}
	return in.tailCall(function, arguments)
}

// warn notes something that people should hear once.
func (in *Interpreter) warn(message string) {
	for _, known := range in.warnings {
		if known == message {
			return
		}
	}
	in.warnings = append(in.warnings, message)
}

// namedTupleCall is collections.namedtuple of constants. Every call makes another class: the host makes one to look at, Python makes them anew
// each time, with the module that namedtuple would find in its caller's frame.
func (in *Interpreter) namedTupleCall(arguments Arguments) (Value, bool, error) {
	module, err := in.frame.function.globals.lookup(in, text("__name__"))
	if err != nil {
		return nil, true, err
	}
	if module, err = in.real(orNone(module)); err != nil {
		return nil, true, err
	}
	given := Arguments{Positional: arguments.Positional}
	named := false
	for _, keyword := range arguments.Keywords {
		given.Keywords = append(given.Keywords, keyword)
		named = named || keyword.Name == "module"
	}
	if !named {
		given.Keywords = append(given.Keywords, KeywordArgument{"module", module})
	}
	positional, keywords, unknown := wireArguments(given, in.wire)
	if unknown != nil {
		return nil, true, unsupported(reasonClass, "a named tuple of %s", unknown.typeName())
	}
	value, err := in.askHost(nameWire("collections.namedtuple"), positional, keywords)
	if class, ok := value.(*Class); ok && err == nil {
		class.remake = &given
		in.templates = append(in.templates, class.id)
		in.activity++
	}
	return value, true, err
}
