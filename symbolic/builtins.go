package symbolic

import (
	"slices"
	"strings"

	"fusee/bytecode"
)

// call of a function written in C: torch operations are captured, some functions are modelled here, pure ones over constants
// run in the host, and everything else is a graph break.
func (b *Builtin) call(in *Interpreter, arguments Arguments) (Value, error) {
	if class, ok := b.self.(*Class); ok && b.name == applyName {
		return in.applyFunction(class, arguments)
	}
	if b.self != nil {
		return in.callMethod(b, arguments)
	}
	if b.flavor == "method" || b.flavor == "wrapper" {
		return in.callUnbound(b, arguments)
	}
	if isTorchName(b.name) {
		return in.callTorchName(b.name, arguments)
	}
	if name, ok := strings.CutPrefix(b.name, "numpy."); ok {
		return in.arrayCall("function", name, arguments)
	}
	value, handled, err := in.builtinFunction(b.name, arguments)
	if handled || err != nil {
		return value, err
	}
	if pureFunction(b.name) {
		if value, err := in.numberFunction(b.name, arguments); value != nil || err != nil {
			return value, err
		}
	}
	return in.evaluateCall(b, arguments)
}

// callUnbound is list.append(items, x): the first argument is the receiver.
func (in *Interpreter) callUnbound(b *Builtin, arguments Arguments) (Value, error) {
	if len(arguments.Positional) == 0 {
		return nil, unsupported(reasonBuiltinCall, "%s without a receiver", b.name)
	}
	if isTorchName(b.name) {
		return in.callTorchName(b.name, arguments)
	}
	self, err := in.real(arguments.Positional[0])
	if err != nil {
		return nil, err
	}
	if err := in.checkReceiver(b, self); err != nil {
		return nil, err
	}
	bound := &Builtin{name: b.name, self: self}
	return in.callMethod(bound, Arguments{arguments.Positional[1:], arguments.Keywords})
}

// checkReceiver refuses an instance as the receiver of a method of a builtin type that its class does not derive from
// (method_check_args and wrapperdescr_call of CPython's descrobject.c).
func (in *Interpreter) checkReceiver(b *Builtin, self Value) error {
	instance, ok := self.(*Instance)
	if !ok || b.flavor != "method" && b.flavor != "wrapper" {
		return nil
	}
	owner, method, _ := strings.Cut(b.name, ".")
	if strings.Contains(method, ".") || instance.class.isSubclassOf(owner) {
		return nil
	}
	if class, err := in.namedClass(owner); err != nil || class.id == 0 {
		return err
	}
	return in.raise("TypeError", "descriptor '"+method+"' requires a '"+owner+"' object but received a '"+instance.class.baseName()+"'")
}

// callMethod runs a bound method of a builtin type.
func (in *Interpreter) callMethod(b *Builtin, arguments Arguments) (Value, error) {
	self, err := in.real(b.self)
	if err != nil {
		return nil, err
	}
	if class, ok := self.(*Class); ok && b.name == "type.__call__" {
		return in.construct(class, arguments) // as a metaclass's own __call__ goes on through super()
	}
	if strings.HasPrefix(self.typeName(), "pybind11_builtins.") && pureFunction(b.name) {
		return in.evaluateCall(&Builtin{name: b.name}, arguments) // it is bound to pybind11's record of it, which it does not take
	}
	if isTorchName(b.name) {
		return in.callTorchName(b.name, Arguments{append([]Value{self}, arguments.Positional...), arguments.Keywords})
	}
	if err := in.checkArity(b.name, arguments); err != nil {
		return nil, err
	}
	method := shortName(b.name)
	var value Value
	handled := false
	switch v := self.(type) {
	case *List:
		value, handled, err = in.listMethod(v, method, arguments)
	case *Dict:
		value, handled, err = in.dictMethod(v, method, arguments)
	case *Set:
		value, handled, err = in.setMethod(v, method, arguments)
	case *Tuple:
		value, handled, err = in.tupleMethod(v, method, arguments)
	case *Deque:
		value, handled, err = in.dequeMethod(v, method, arguments)
	case *descriptorValue:
		value, handled, err = in.descriptorMethod(v, method, arguments)
	case *dictView:
		value, handled, err = in.viewMethod(v, method, arguments)
	case *Class:
		value, handled, err = in.classMethod(v, b.name, arguments)
	case *classDict:
		value, handled, err = v.get(in, arguments)
	case *Generator:
		return v.callMethod(in, method, arguments)
	case *Constant:
		value, handled, err = in.constantMethod(v, method, arguments)
	case *Instance:
		value, handled, err = in.objectMethod(v, b.name, arguments)
	case *superValue:
		value, handled, err = in.objectMethod(v.self, b.name, arguments)
	case *LibraryValue:
		if method == "__reduce_ex__" && v.kind == "dtype" {
			return text(v.text), nil // dtypes are kept by name
		}
	case *fieldsDict:
		value, handled, err = in.fieldsMethod(v, method, arguments)
	case *functionDict:
		value, handled, err = v.update(in, arguments)
	case *Function:
		if method == "__get__" && len(arguments.Positional) > 0 {
			return in.functionGet(v, arguments.Positional)
		}
	}
	if handled || err != nil {
		return value, err
	}
	if value, handled, err = in.protocolMethod(self, method, arguments); handled || err != nil {
		return value, err
	}
	return in.evaluateCall(&Builtin{name: b.name, object: b.object, self: self, toClass: b.toClass}, arguments)
}

// protocolMethod runs a special method called by name on a builtin value.
func (in *Interpreter) protocolMethod(self Value, method string, arguments Arguments) (Value, bool, error) {
	if _, isInstance := self.(*Instance); isInstance {
		return nil, false, nil // the protocol would only lead back to this method
	}
	if tuple, ok := self.(*Tuple); ok && hasMethods(tuple) {
		var handled bool
		var err error
		if self, arguments, handled, err = in.plainTuples(tuple, arguments); err != nil || handled {
			return self, handled, err
		}
	}
	if dict, ok := self.(*Dict); ok {
		if value, handled, err := in.plainDictMethod(dict, method, arguments.Positional); handled || err != nil {
			return value, handled, err
		}
	}
	if value, done, err := in.plainOperand(self, method, arguments); done || err != nil {
		return value, done, err
	}
	for _, row := range binaryOperators[:13] {
		if constant, ok := self.(*Constant); ok && method == "__mod__" && len(arguments.Positional) == 1 {
			if tuple, ok := arguments.Positional[0].(*Tuple); ok && hasMethods(tuple) { // text formats any tuple's items
				return modelled(in.binary(binaryOperators[6], constant, &Tuple{items: tuple.items}))
			}
		}
		if row.method == method && len(arguments.Positional) == 1 {
			return modelled(in.binary(row, self, arguments.Positional[0]))
		}
	}
	for _, row := range comparisons {
		if row.method == method && len(arguments.Positional) == 1 {
			return modelled(in.compare(row, self, arguments.Positional[0]))
		}
	}
	switch method {
	case "__len__":
		n, err := in.length(self)
		return integer(int64(n)), true, err
	case "__iter__":
		return modelled(in.iterate(self))
	case "__next__":
		value, err := in.advance(self)
		if err == nil && value == nil {
			err = in.raiseStop(nil)
		}
		return value, true, err
	case "__contains__":
		found, err := in.contains(self, arguments.Positional[0])
		return boolean(found), true, err
	case "__getitem__":
		return modelled(in.getItem(self, arguments.Positional[0]))
	case "__setitem__":
		if len(arguments.Positional) == 2 {
			return none(), true, in.setItem(self, arguments.Positional[0], arguments.Positional[1])
		}
	case "__delitem__":
		return none(), true, in.setItem(self, arguments.Positional[0], nil)
	}
	return nil, false, nil
}

// plainOperand runs a builtin type's own operator with an operand that has methods of its own, which it must not lead back to: a named tuple
// counts as its items, an instance over a builtin value as that value, and any other is refused. done is false for other operands.
func (in *Interpreter) plainOperand(self Value, method string, arguments Arguments) (Value, bool, error) {
	if len(arguments.Positional) != 1 || hasMethods(self) || !isOperatorMethod(method) {
		return nil, false, nil
	}
	operand, err := in.look(arguments.Positional[0])
	if err != nil || !hasMethods(operand) {
		return nil, false, err
	}
	plain := baseValue(operand)
	if plain == nil {
		return notImplementedValue(), true, nil
	}
	if _, isText := stringOf(self); isText && method == "__mod__" {
		if _, isTuple := plain.(*Tuple); !isTuple {
			return nil, true, unsupported(reasonFormatting, "%s", operand.typeName())
		}
	}
	return in.protocolMethod(self, method, Arguments{Positional: []Value{plain}})
}

func isOperatorMethod(method string) bool {
	return slices.ContainsFunc(binaryOperators[:13], func(row operatorRow) bool { return row.method == method }) ||
		slices.ContainsFunc(comparisons, func(row comparisonRow) bool { return row.method == method })
}

// plainTuples takes a tuple's own method to the items alone: it was reached through the class, whose methods it must not lead back to.
func (in *Interpreter) plainTuples(self *Tuple, arguments Arguments) (Value, Arguments, bool, error) {
	positional, err := in.realAll(arguments.Positional)
	if err != nil {
		return nil, arguments, false, err
	}
	for i, argument := range positional {
		switch other := argument.(type) {
		case *Tuple:
			if hasMethods(other) {
				positional[i] = &Tuple{items: other.items}
			}
		case *Instance:
			return nil, arguments, false, unsupported(reasonOperator, "%s and %s", self.typeName(), other.typeName())
		}
	}
	return &Tuple{items: self.items}, Arguments{positional, arguments.Keywords}, false, nil
}

// evaluateCall runs a pure C function in the host when every argument is a constant.
func (in *Interpreter) evaluateCall(b *Builtin, arguments Arguments) (Value, error) {
	if !pureFunction(b.name) {
		return nil, unsupported(reasonBuiltinCall, "%s", b.name)
	}
	var callee bytecode.Object = nameWire(b.name)
	positional := arguments.Positional
	class, isClass := b.self.(*Class)
	switch {
	case isClass && b.toClass:
		if userClass(class.name) { // whose own methods make the result
			return nil, unsupported(reasonBuiltinCall, "%s of %s", b.name, class.name)
		}
		callee = nameWire(class.name + "." + shortName(b.name)) // found bound to the class
	case b.self != nil:
		positional = append([]Value{b.self}, positional...)
		if _, isInstance := b.self.(*Instance); isInstance {
			return nil, unsupported(reasonBuiltinCall, "%s", b.name)
		}
	case b.object != nil:
		callee = int64(b.object.id)
	}
	wired, keywords, unknown := wireArguments(Arguments{positional, arguments.Keywords}, in.wire)
	if unknown != nil {
		return nil, unsupported(reasonBuiltinCall, "%s", b.name)
	}
	return in.askHost(callee, wired, keywords)
}

// pureFamilies are the beginnings of names of C functions whose result depends on their arguments alone.
var pureFamilies = []string{
	"math.", "cmath.", "operator.", "_operator.", "str.", "int.", "float.", "complex.", "bytes.", "tuple.", "frozenset.", "range.",
	"slice.", "bool.", "torch.Size.", "numbers.", "re.Pattern.", "re.Match.",
}

// pureFunctions are others of that kind.
var pureFunctions = []string{
	"builtins.abs", "builtins.ascii", "builtins.bin", "builtins.chr", "builtins.divmod", "builtins.format", "builtins.hex",
	"builtins.len", "builtins.max", "builtins.min", "builtins.oct", "builtins.ord", "builtins.pow", "builtins.repr", "builtins.round",
	"builtins.sorted", "builtins.sum", "builtins.any", "builtins.all", "torch.result_type", "torch.promote_types", "torch.can_cast",
	"torch._C._get_privateuse1_backend_name", "torch._C._is_autocast_available", "torch._C._accelerator_getAccelerator",
}

// pureFunction tells C functions whose result depends on their arguments alone and that change nothing.
func pureFunction(name string) bool {
	return slices.Contains(pureFunctions, name) || slices.ContainsFunc(pureFamilies, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

func (in *Interpreter) single(arguments Arguments) (Value, bool) {
	if len(arguments.Positional) != 1 || len(arguments.Keywords) > 0 {
		return nil, false
	}
	return arguments.Positional[0], true
}

// singleReal is the one argument of a call, looked into.
func (in *Interpreter) singleReal(arguments Arguments) (value Value, ok bool, err error) {
	if value, ok = in.single(arguments); !ok {
		return nil, false, nil
	}
	return modelled(in.real(value))
}

// singleFlag is the one argument of a call where that is True or False.
func (in *Interpreter) singleFlag(arguments Arguments) (flag, ok bool, err error) {
	real, ok, err := in.singleReal(arguments)
	if !ok || err != nil {
		return false, false, err
	}
	flag, ok = constantAs[bool](real)
	return flag, ok, nil
}

// modelled gives the result of what capture models: nothing else needs to be tried.
func modelled[T any](result T, err error) (T, bool, error) { return result, true, err }

// builtinFunction models the functions of the modules builtins, operator and a few more.
func (in *Interpreter) builtinFunction(name string, arguments Arguments) (Value, bool, error) {
	if row, ok := strings.CutPrefix(strings.TrimPrefix(name, "_"), "operator."); ok {
		return in.operatorFunction(row, arguments)
	}
	if len(arguments.Keywords) > 0 && positionalOnly(name) {
		return nil, true, in.raise("TypeError", shortName(name)+"() takes no keyword arguments")
	}
	switch name {
	case "builtins.isinstance":
		return in.isInstanceCall(arguments)
	case "builtins.issubclass":
		return in.isSubclassCall(arguments)
	case "builtins.getattr":
		return in.getattrCall(arguments)
	case "builtins.hasattr":
		return in.hasattrCall(arguments)
	case "builtins.setattr", "builtins.delattr":
		return in.setattrCall(arguments)
	case "builtins.print":
		return nil, true, unsupported(reasonOutput, "")
	case "builtins.callable":
		if value, ok := in.single(arguments); ok {
			return in.callableCall(value)
		}
	case "builtins.iter":
		if value, ok := in.single(arguments); ok {
			return modelled(in.iterate(value))
		}
		if len(arguments.Positional) == 2 {
			return in.sentinelIterator(arguments.Positional[0], arguments.Positional[1])
		}
	case "builtins.next":
		return in.nextCall(arguments)
	case "builtins.any", "builtins.all":
		return in.anyAll(name == "builtins.any", arguments)
	case "builtins.sum":
		return in.sumCall(arguments)
	case "builtins.sorted":
		return in.sortedCall(arguments)
	case "builtins.min", "builtins.max":
		return in.extremeCall(name == "builtins.max", arguments)
	case "sys.exc_info":
		return modelled(in.exceptionInfo())
	case "sys.exception":
		return orNone(in.handled()), true, nil
	case "_abc._abc_init":
		if value, ok := in.single(arguments); ok {
			real, err := in.real(value)
			if class, isClass := real.(*Class); err != nil || isClass && class.made != nil {
				return none(), true, err // what it computes is worked out where it is asked for
			}
		}
	case "builtins.__build_class__":
		return modelled(in.buildClass(arguments))
	case "functools.reduce":
		return in.reduceCall(arguments)
	case "_warnings.warn":
		return modelled(in.warnCall(arguments))
	case "_warnings._filters_mutated":
		in.activity++
		in.outside++
		in.effects = append(in.effects, &callEffect{function: name})
		return none(), true, nil
	case "itertools.tee":
		return in.teeCall(arguments)
	case "sys.intern":
		return in.internCall(arguments)
	case "builtins.locals":
		return modelled(in.localVariables())
	case "builtins.dir", "builtins.vars":
		if len(arguments.Positional)+len(arguments.Keywords) == 0 {
			return modelled(in.variablesByName(name))
		}
	case "builtins.hash":
		if value, ok := in.single(arguments); ok {
			return in.hashCall(value)
		}
	case "builtins.id":
		if value, ok := in.single(arguments); ok {
			return modelled(in.identityOf(value))
		}
	}
	return in.builtinFunctionOfOne(name, arguments)
}

// positionalOnly tells functions that CPython gives no keywords.
func positionalOnly(name string) bool {
	switch strings.TrimPrefix(name, "builtins.") {
	case "isinstance", "issubclass", "getattr", "hasattr", "setattr", "delattr", "callable", "iter", "next", "any", "all", "id", "hash", "len", "abs", "repr", "ascii", "vars":
		return true
	}
	return false
}

// builtinFunctionOfOne models functions of exactly one positional argument.
func (in *Interpreter) builtinFunctionOfOne(name string, arguments Arguments) (Value, bool, error) {
	argument, ok := in.single(arguments)
	if !ok {
		return nil, false, nil
	}
	switch name {
	case "builtins.len":
		if size, found, err := in.tensorLength(argument); found || err != nil {
			return size, true, err
		}
		n, err := in.length(argument)
		return integer(int64(n)), true, err
	case "builtins.abs":
		return modelled(in.unaryNamed([2]string{"abs", "__abs__"}, argument))
	case "builtins.vars":
		return modelled(in.variablesOf(argument))
	case "builtins.oct", "builtins.hex", "builtins.bin":
		if real, err := in.real(argument); err != nil || !hasMethods(real) {
			return nil, false, err
		}
		index, err := in.indexValue(argument)
		if err != nil {
			return nil, true, err
		}
		return modelled(in.evaluated(name, index))
	case "builtins.repr", "builtins.ascii":
		if name == "builtins.repr" {
			return modelled(in.representAny(argument))
		}
	}
	return nil, false, nil
}

// variablesOf is vars() of an object.
func (in *Interpreter) variablesOf(owner Value) (Value, error) {
	variables, err := in.optionalAttribute(owner, "__dict__")
	if err == nil && variables == nil {
		err = in.raise("TypeError", "vars() argument must have __dict__ attribute")
	}
	return variables, err
}

// operatorFunction models the functions of the module operator that take any objects.
func (in *Interpreter) operatorFunction(name string, arguments Arguments) (Value, bool, error) {
	values := arguments.Positional
	switch len(values) {
	case 1:
		for _, names := range [][2]string{{"neg", "__neg__"}, {"pos", "__pos__"}, {"invert", "__invert__"}, {"abs", "__abs__"}} {
			if names[0] == name {
				return modelled(in.unaryNamed(names, values[0]))
			}
		}
		if name == "not_" || name == "truth" {
			truth, err := in.truth(values[0])
			return boolean(truth == (name == "truth")), true, err
		}
		if name == "index" {
			return modelled(in.indexValue(values[0]))
		}
	case 2:
		return in.operatorOfTwo(name, values[0], values[1])
	case 3:
		if name == "setitem" {
			return none(), true, in.setItem(values[0], values[1], values[2])
		}
	}
	return nil, false, nil
}

func (in *Interpreter) operatorOfTwo(name string, left, right Value) (Value, bool, error) {
	for _, row := range binaryOperators {
		if row.inplace == nil && row.function == name || row.inplace != nil && row.inplace.function == name {
			return modelled(in.binary(row, left, right))
		}
	}
	for _, row := range comparisons {
		if row.function == name {
			return modelled(in.compare(row, left, right))
		}
	}
	switch name {
	case "getitem":
		return modelled(in.getItem(left, right))
	case "contains":
		found, err := in.contains(left, right)
		return boolean(found), true, err
	case "is_", "is_not":
		same, err := in.identical(left, right)
		return boolean(same == (name == "is_")), true, err
	case "delitem":
		return none(), true, in.setItem(left, right, nil)
	}
	return nil, false, nil
}

// indexValue is operator.index: an exact int from an int-like.
func (in *Interpreter) indexValue(value Value) (Value, error) {
	value, err := in.real(value)
	if err != nil {
		return nil, err
	}
	if n, ok := constantInt(value); ok {
		return integer(n), nil
	}
	if instance, ok := value.(*Instance); ok {
		if instance.base != nil {
			return in.indexValue(instance.base)
		}
		if method, err := in.specialMethod(instance.class, "__index__", instance); err != nil || method != nil {
			if err != nil {
				return nil, err
			}
			result, err := in.call(method, Arguments{})
			if err != nil {
				return nil, err
			}
			return in.indexOf(result)
		}
	}
	if constant, ok := value.(*Constant); ok && constantTypeName(constant.Value) == "int" {
		return constant, nil
	}
	if tensor, ok := value.(*Tensor); ok {
		return in.scalarIndex(tensor)
	}
	return nil, in.raise("TypeError", "'"+shortName(value.typeName())+"' object cannot be interpreted as an integer")
}

// indexOf checks what a class's __index__ gave.
func (in *Interpreter) indexOf(result Value) (Value, error) {
	result, err := in.real(result)
	if err != nil {
		return nil, err
	}
	switch given := shortName(result.typeName()); {
	case given == "int":
		return result, nil
	case in.numberSubclass("int", result):
		return nil, unsupported(reasonOperator, "__index__ that gives %s", given)
	default:
		return nil, in.raise("TypeError", "__index__ returned non-int (type "+given+")")
	}
}

func (in *Interpreter) getattrCall(arguments Arguments) (Value, bool, error) {
	if len(arguments.Positional) < 2 {
		return nil, false, nil
	}
	key, err := in.real(arguments.Positional[1])
	if err != nil {
		return nil, true, err
	}
	name, ok := stringOf(key)
	if !ok {
		return nil, true, in.raise("TypeError", "attribute name must be string, not '"+shortName(key.typeName())+"'")
	}
	if len(arguments.Positional) == 2 {
		return modelled(in.getAttribute(arguments.Positional[0], name))
	}
	in.tail = nil
	value, err := in.optionalAttribute(arguments.Positional[0], name)
	if err == nil && value == nil {
		value = arguments.Positional[2]
	}
	return value, true, err
}

func (in *Interpreter) hasattrCall(arguments Arguments) (Value, bool, error) {
	if len(arguments.Positional) != 2 {
		return nil, false, nil
	}
	name, _, err := in.textIn(arguments.Positional[1])
	if err != nil {
		return nil, true, err
	}
	in.tail = nil
	value, err := in.optionalAttribute(arguments.Positional[0], name)
	return boolean(value != nil), true, err
}

func (in *Interpreter) setattrCall(arguments Arguments) (Value, bool, error) {
	key, err := in.real(arguments.Positional[1])
	if err != nil {
		return nil, true, err
	}
	name, ok := stringOf(key)
	if !ok {
		return nil, true, in.raise("TypeError", "attribute name must be string, not '"+shortName(key.typeName())+"'")
	}
	in.tail = nil
	var value Value
	if len(arguments.Positional) > 2 {
		value = arguments.Positional[2]
	}
	return none(), true, in.setAttribute(arguments.Positional[0], name, value)
}

func (in *Interpreter) callableCall(value Value) (Value, bool, error) {
	value, err := in.real(value)
	if err != nil {
		return nil, true, err
	}
	if instance, ok := value.(*Instance); ok {
		hook, _, err := in.classLookup(instance.class, "__call__")
		return boolean(hook != nil), true, err
	}
	if _, opaque := value.(*Opaque); opaque {
		return nil, true, unsupported(reasonOpaqueCall, "callable of %s", value.typeName())
	}
	_, ok := value.(callable)
	return boolean(ok), true, nil
}

func (in *Interpreter) nextCall(arguments Arguments) (Value, bool, error) {
	if len(arguments.Positional) == 0 {
		return nil, false, nil
	}
	iterator, err := in.real(arguments.Positional[0])
	if err != nil {
		return nil, true, err
	}
	item, err := in.advance(iterator)
	if err != nil || item != nil {
		return item, true, err
	}
	if len(arguments.Positional) > 1 {
		return arguments.Positional[1], true, nil
	}
	if generator, ok := iterator.(*Generator); ok {
		return nil, true, in.raiseStop(generator.returned)
	}
	return nil, true, in.raiseStop(nil)
}

func (in *Interpreter) anyAll(isAny bool, arguments Arguments) (Value, bool, error) {
	argument, ok := in.single(arguments)
	if !ok {
		return nil, false, nil
	}
	iterator, err := in.iterate(argument)
	if err != nil {
		return nil, true, err
	}
	for {
		item, err := in.advance(iterator)
		if err != nil || item == nil {
			return boolean(!isAny), true, err
		}
		truth, err := in.truth(item)
		if err != nil || truth == isAny {
			return boolean(isAny), true, err
		}
	}
}

func (in *Interpreter) sumCall(arguments Arguments) (Value, bool, error) {
	values := arguments.Positional
	for _, keyword := range arguments.Keywords {
		if keyword.Name == "start" && len(values) == 1 {
			values = append(append([]Value{}, values...), keyword.Value)
		}
	}
	if len(values) == 0 || len(values) > 2 {
		return nil, false, nil
	}
	items, err := in.iterableItems(values[0])
	if err != nil {
		return nil, true, err
	}
	var total Value = integer(0)
	if len(values) == 2 {
		total = values[1]
	}
	for _, item := range items {
		if total, err = in.binary(binaryOperators[0], total, item); err != nil {
			return nil, true, err
		}
	}
	return total, true, nil
}

// extremeCall is min and max: the first of equal items wins.
func (in *Interpreter) extremeCall(largest bool, arguments Arguments) (Value, bool, error) {
	items := arguments.Positional
	if len(items) == 1 {
		var err error
		if items, err = in.comparable(arguments); err != nil {
			return nil, true, err
		}
	}
	var key, fallback Value
	for _, keyword := range arguments.Keywords {
		if keyword.Name == "key" {
			key = keyword.Value
		} else {
			fallback = keyword.Value
		}
	}
	if len(items) == 0 {
		if fallback != nil {
			return fallback, true, nil
		}
		name := "min"
		if largest {
			name = "max"
		}
		return nil, true, in.raise("ValueError", name+"() arg is an empty sequence")
	}
	if key == nil || isNone(key) {
		if value, err := in.numberExtreme(largest, items); value != nil || err != nil {
			return value, true, err
		}
		if value, err := in.tensorExtreme(largest, items); value != nil || err != nil {
			return value, true, err
		}
		if value, err := in.mixedExtreme(largest, items); value != nil || err != nil {
			return value, true, err
		}
	}
	row := comparisons[0]
	if largest {
		row = comparisons[4]
	}
	var best, bestRank Value
	for _, item := range items {
		rank, err := in.rank(key, item)
		if err != nil {
			return nil, true, err
		}
		if best == nil {
			best, bestRank = item, rank
			continue
		}
		better, err := in.compare(row, rank, bestRank)
		if err != nil {
			return nil, true, err
		}
		truth, err := in.truth(better)
		if err != nil {
			return nil, true, err
		}
		if truth {
			best, bestRank = item, rank
		}
	}
	return best, true, nil
}

func (in *Interpreter) rank(key, item Value) (Value, error) {
	if key == nil || isNone(key) {
		return item, nil
	}
	return in.call(key, Arguments{Positional: []Value{item}})
}

func (in *Interpreter) sortedCall(arguments Arguments) (Value, bool, error) {
	if len(arguments.Positional) != 1 {
		return nil, false, nil
	}
	items, err := in.comparable(arguments)
	if err != nil {
		return nil, true, err
	}
	sorted, err := in.sortItems(items, arguments.Keywords)
	return newList(sorted), true, err
}

// comparable lists what sorted(), min() and max() are given; a set's order does not show where its members are all ints or all text, which differ from each other.
func (in *Interpreter) comparable(arguments Arguments) ([]Value, error) {
	value, err := in.real(arguments.Positional[0])
	if err != nil {
		return nil, err
	}
	set, ok := value.(*Set)
	for _, keyword := range arguments.Keywords {
		ok = ok && keyword.Name != "key"
	}
	if ok {
		texts, ints := 0, 0
		for _, item := range set.items {
			if _, isText := stringOf(item); isText {
				texts++
			}
			if _, isInt := constantInt(item); isInt {
				ints++
			}
		}
		if max(texts, ints) == len(set.items) {
			return set.items, nil
		}
	}
	return in.iterableItems(value)
}

// sortItems is a stable insertion by binary search: it compares with < only, as CPython does.
func (in *Interpreter) sortItems(items []Value, keywords []KeywordArgument) ([]Value, error) {
	var key Value
	reverse := false
	for _, keyword := range keywords {
		var err error
		if keyword.Name == "key" {
			key, err = in.real(keyword.Value)
		} else {
			reverse, err = in.truth(keyword.Value)
		}
		if err != nil {
			return nil, err
		}
	}
	if reverse {
		items = reversedValues(items)
	}
	var sorted, ranks []Value
	for _, item := range items {
		rank, err := in.rank(key, item)
		if err != nil {
			return nil, err
		}
		position, err := in.insertionPoint(ranks, rank)
		if err != nil {
			return nil, err
		}
		sorted = insertValue(sorted, position, item)
		ranks = insertValue(ranks, position, rank)
	}
	if reverse {
		sorted = reversedValues(sorted)
	}
	if sorted == nil {
		sorted = []Value{}
	}
	return sorted, nil
}

func (in *Interpreter) insertionPoint(ranks []Value, rank Value) (int, error) {
	low, high := 0, len(ranks)
	for low < high {
		middle := (low + high) / 2
		less, err := in.compare(comparisons[0], rank, ranks[middle])
		if err != nil {
			return 0, err
		}
		truth, err := in.truth(less)
		if err != nil {
			return 0, err
		}
		if truth {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low, nil
}

func insertValue(values []Value, position int, value Value) []Value {
	values = append(values, nil)
	copy(values[position+1:], values[position:])
	values[position] = value
	return values
}

func reversedValues(values []Value) []Value {
	reversed := make([]Value, len(values))
	for i, value := range values {
		reversed[len(values)-1-i] = value
	}
	return reversed
}
