package symbolic

import (
	"cmp"
	"slices"
	"strings"

	"fusee/bytecode"
	"fusee/trace"
)

// constructBuiltin models calls of builtin classes.
func (in *Interpreter) constructBuiltin(c *Class, arguments Arguments) (Value, bool, error) {
	values := arguments.Positional
	if strings.HasPrefix(c.name, "torch.return_types.") {
		return in.constructStructSequence(c, arguments)
	}
	switch c.name {
	case "list", "tuple", "set", "frozenset":
		return in.constructSequence(c.name, arguments)
	case "dict", "collections.OrderedDict":
		return in.constructDict(c, arguments)
	case "collections.defaultdict":
		return in.constructDefaultDict(c, arguments)
	case "range":
		return in.constructRange(values)
	case "slice":
		return in.constructSlice(values)
	case "bool":
		if value, ok := in.single(arguments); ok {
			truth, err := in.truth(value)
			return boolean(truth), true, err
		}
		return boolean(false), len(values)+len(arguments.Keywords) == 0, nil
	case "type":
		if value, ok := in.single(arguments); ok {
			return modelled(in.classOf(value))
		}
	case "super":
		return in.constructSuper(values)
	case "object":
		return &Instance{class: c, fields: newFieldTable(false)}, len(values)+len(arguments.Keywords) == 0, nil
	case "enumerate", "zip", "map", "filter", "reversed":
		return in.constructIterator(c.name, arguments)
	case "str":
		if value, ok := in.single(arguments); ok {
			return modelled(in.stringify(value))
		}
		return in.evaluateClass(c, arguments)
	case "int", "float", "complex", "bytes":
		return in.constructNumber(c, arguments)
	case "bytearray":
		return in.constructByteArray(arguments)
	case "torch.Size":
		if value, ok := in.single(arguments); ok {
			items, err := in.iterableItems(value)
			return &Tuple{items: items, class: sizeType()}, true, err
		}
		return &Tuple{class: sizeType()}, true, nil
	case "torch.device":
		return in.constructDevice(c, arguments)
	case "torch.finfo", "torch.iinfo", "numpy.finfo", "numpy.iinfo":
		return in.evaluateClass(c, arguments)
	case "numpy.dtype":
		return in.evaluateClass(c, arguments)
	case functionGuardClass:
		return &Instance{class: c, fields: newFieldTable(false)}, len(values)+len(arguments.Keywords) == 0, nil
	case inferenceGuardClass:
		return in.constructInferenceGuard(arguments)
	case profilerLabelClass:
		return in.constructLabel(c, arguments)
	case "mappingproxy":
		return in.constructMappingProxy(arguments)
	case "weakref.ReferenceType":
		return in.constructWeakReference(arguments)
	case "method":
		return in.constructMethod(arguments)
	case "property", "classmethod", "staticmethod":
		return in.constructDescriptor(c.name, arguments)
	case "functools.partial":
		return in.constructPartial(values, arguments.Keywords)
	case "collections.deque":
		return in.constructDeque(arguments)
	case "operator.itemgetter", "operator.attrgetter", "operator.methodcaller":
		return in.constructGetter(c, arguments)
	}
	if _, legacy := legacyTypeName(c); legacy {
		return in.legacyTensor(c, arguments)
	}
	if strings.HasPrefix(c.name, "itertools.") {
		return in.constructItertools(c.name, arguments)
	}
	return nil, false, nil
}

// constructStructSequence is torch.return_types.NAME((item, ...)), with as many items as it has fields.
func (in *Interpreter) constructStructSequence(c *Class, arguments Arguments) (Value, bool, error) {
	argument, ok := in.single(arguments)
	if !ok || c.id == 0 {
		return nil, false, nil
	}
	items, err := in.iterableItems(argument)
	if err != nil {
		return nil, true, err
	}
	for _, name := range []string{"n_sequence_fields", "n_fields"} {
		found, _, err := in.classLookup(c, name)
		if err != nil {
			return nil, true, err
		}
		if n, ok := constantInt(found); !ok || n != int64(len(items)) {
			return nil, true, unsupported(reasonOpaqueCall, "%s of %d items", c.name, len(items))
		}
	}
	return &Tuple{items: items, class: c}, true, nil
}

func sizeType() *Class {
	return &Class{name: "torch.Size", baseNames: []string{"torch.Size", "tuple", "object"}}
}

func (in *Interpreter) constructSequence(kind string, arguments Arguments) (Value, bool, error) {
	items := []Value{}
	if len(arguments.Keywords) > 0 {
		return nil, true, in.raise("TypeError", kind+"() takes no keyword arguments")
	}
	if len(arguments.Positional) > 1 {
		return nil, true, in.raise("TypeError", kind+" expected at most 1 argument, got "+integerText(len(arguments.Positional)))
	}
	if kind == "set" || kind == "frozenset" {
		return modelled(in.constructSet(arguments.Positional, kind == "frozenset"))
	}
	if len(arguments.Positional) == 1 {
		if constant, err := in.real(arguments.Positional[0]); err == nil && kind == "tuple" {
			if t, ok := constant.(*Tuple); ok && t.class == nil {
				return t, true, nil
			}
		}
		found, err := in.iterableItems(arguments.Positional[0])
		if err != nil {
			return nil, true, err
		}
		items = append(items, found...)
	}
	if kind == "list" {
		return newList(items), true, nil
	}
	return &Tuple{items: items}, true, nil
}

func integerText(n int) string {
	value := integer(int64(n))
	digits := ""
	for k := value.Value.(int64); k > 0 || digits == ""; k /= 10 {
		digits = string(rune('0'+k%10)) + digits
	}
	return digits
}

func (in *Interpreter) constructDict(c *Class, arguments Arguments) (Value, bool, error) {
	if len(arguments.Positional) > 1 {
		return nil, true, in.raise("TypeError", c.baseName()+" expected at most 1 argument, got "+integerText(len(arguments.Positional)))
	}
	dict := newDict()
	if c.name != "dict" {
		dict.class = c
	}
	return dict, true, in.fillDict(dict, arguments)
}

func (in *Interpreter) constructDefaultDict(c *Class, arguments Arguments) (Value, bool, error) {
	dict := newDict()
	dict.class, dict.factory = c, none()
	if len(arguments.Positional) > 0 {
		dict.factory = arguments.Positional[0]
		arguments.Positional = arguments.Positional[1:]
	}
	return dict, true, in.fillDict(dict, arguments)
}

func (in *Interpreter) constructRange(values []Value) (Value, bool, error) {
	bounds := []int64{0, 0, 1}
	for k, value := range values {
		n, err := in.intArgument(value)
		if err != nil {
			return nil, true, err
		}
		if k < 3 {
			bounds[k] = n
		}
	}
	if !countable(bounds...) {
		return nil, true, unsupported(reasonBuiltinCall, "range of integers that are this large")
	}
	switch len(values) {
	case 1:
		return &Range{0, bounds[0], 1}, true, nil
	case 2, 3:
		if bounds[2] == 0 {
			return nil, true, in.raise("ValueError", "range() arg 3 must not be zero")
		}
		return &Range{bounds[0], bounds[1], bounds[2]}, true, nil
	}
	return nil, true, unsupported(reasonBuiltinCall, "range")
}

func (in *Interpreter) constructSlice(values []Value) (Value, bool, error) {
	switch len(values) {
	case 1:
		return &SliceValue{none(), values[0], none()}, true, nil
	case 2, 3:
		return &SliceValue{values[0], values[1], argumentOr(values, 2, none())}, true, nil
	}
	return nil, true, unsupported(reasonBuiltinCall, "slice")
}

// constructNumber is int(), float() and the like: instances convert through their special methods, constants in the host.
func (in *Interpreter) constructNumber(c *Class, arguments Arguments) (Value, bool, error) {
	if value, ok := in.single(arguments); ok {
		if converted, err := in.convertSymbolic(c.name, value); converted != nil || err != nil {
			return converted, true, err
		}
		real, err := in.real(value)
		if err != nil {
			return nil, true, err
		}
		switch v := real.(type) {
		case *identityNumber, *addressNumber:
			if c.name == "int" {
				return v, true, nil
			}
		case *Tensor:
			if known := in.knownScalar(v); known != nil {
				return in.constructNumber(c, Arguments{Positional: []Value{known}})
			}
			return nil, true, unsupported(reasonTensorValue, "%s of a tensor", c.name)
		case *Instance:
			if v.base != nil {
				return in.constructNumber(c, Arguments{Positional: []Value{v.base}})
			}
			if method, err := in.specialMethod(v.class, "__"+c.name+"__", v); err != nil || method != nil {
				if err != nil {
					return nil, true, err
				}
				result, err := in.call(method, Arguments{})
				if err != nil {
					return nil, true, err
				}
				return modelled(in.converted(c.name, v, result))
			}
		case *Constant:
			if converted := convertNumber(c.name, v.Value); converted != nil {
				return &Constant{converted}, true, nil
			}
		}
	}
	return in.evaluateClass(c, arguments)
}

// converted is what int(), float() or complex() of an instance make of what its special method gave, which must be a number of that very class.
// Those of a subclass are left to Python, which warns of them.
func (in *Interpreter) converted(class string, v *Instance, result Value) (Value, error) {
	result, err := in.real(result)
	if err != nil {
		return nil, err
	}
	switch given := shortName(result.typeName()); {
	case given == class:
		return result, nil
	case in.numberSubclass(class, result):
		return nil, unsupported(reasonOperator, "__%s__ that gives %s", class, given)
	case class == "float":
		return nil, in.raise("TypeError", shortName(v.typeName())+".__float__ returned non-float (type "+given+")")
	default:
		return nil, in.raise("TypeError", "__"+class+"__ returned non-"+class+" (type "+given+")")
	}
}

// numberSubclass tells values of a class that derives from a class of numbers.
func (in *Interpreter) numberSubclass(class string, value Value) bool {
	if constant, ok := value.(*Constant); ok {
		return class == "int" && constantTypeName(constant.Value) == "bool"
	}
	instance, ok := value.(*Instance)
	return ok && instance.base != nil && instance.base.typeName() == class
}

// convertSymbolic is int() or float() of a number that may differ from call to call; nil for others.
func (in *Interpreter) convertSymbolic(class string, value Value) (Value, error) {
	number, err := in.numberOf(value)
	if number == nil || err != nil {
		return nil, err
	}
	if class == number.typeName() {
		return number, nil
	}
	return in.numberCall("builtins."+class, number)
}

func convertNumber(class string, object bytecode.Object) bytecode.Object {
	switch value := object.(type) {
	case int64:
		if class == "int" {
			return value
		}
		if exact, ok := exactFloat(value); ok && class == "float" {
			return exact
		}
	case float64:
		if class == "float" {
			return value
		}
	}
	return nil
}

// evaluateClass constructs an immutable value in the host.
func (in *Interpreter) evaluateClass(c *Class, arguments Arguments) (Value, bool, error) {
	callee, ok := in.wire(c)
	if !ok {
		return nil, true, unsupported(reasonOpaqueCall, "%s", c.name)
	}
	wired, keywords, unknown := wireArguments(arguments, in.wire)
	if unknown != nil {
		return nil, true, unsupported(reasonOpaqueCall, "%s", c.name)
	}
	return modelled(in.askHost(callee, wired, keywords))
}

// constructDevice makes a device that is no object yet: the rewritten code makes another one at each call.
func (in *Interpreter) constructDevice(c *Class, arguments Arguments) (Value, bool, error) {
	value, known, err := in.evaluateClass(c, arguments)
	if device, ok := value.(*LibraryValue); ok && err == nil {
		return &LibraryValue{kind: device.kind, text: device.text}, known, nil
	}
	return value, known, err
}

func (in *Interpreter) constructPartial(values []Value, keywords []KeywordArgument) (Value, bool, error) {
	if len(values) == 0 {
		return nil, true, unsupported(reasonBuiltinCall, "functools.partial")
	}
	table, err := in.newDictOf(keywordItems(keywords))
	if err != nil {
		return nil, true, err
	}
	return in.flatPartial(values[0], values[1:], table)
}

// flatPartial makes a partial object; one of another partial takes over that one's function and arguments, as CPython's does.
func (in *Interpreter) flatPartial(function Value, values []Value, table *Dict) (Value, bool, error) {
	function, err := in.real(function)
	if err != nil {
		return nil, true, err
	}
	inner, ok := function.(*descriptorValue)
	if !ok || inner.kind != "partial" {
		return &descriptorValue{kind: "partial", parts: []Value{function, &Tuple{items: append([]Value{}, values...)}, table}}, true, nil
	}
	own, err := in.listOf(inner.parts[1])
	if err != nil {
		return nil, true, err
	}
	merged := newDict()
	if err := in.mergeInto(merged, inner.parts[2]); err != nil {
		return nil, true, err
	}
	if err := in.updateDict(merged, table); err != nil {
		return nil, true, err
	}
	return in.flatPartial(inner.parts[0], append(append([]Value{}, own...), values...), merged)
}

// constructIterator is enumerate, zip, map, filter and reversed.
func (in *Interpreter) constructIterator(kind string, arguments Arguments) (Value, bool, error) {
	values := arguments.Positional
	switch kind {
	case "enumerate":
		return in.constructEnumerate(arguments)
	case "reversed":
		return in.constructReversed(values)
	}
	start := 1
	if kind == "zip" {
		start = 0
	}
	if len(values) < start {
		return nil, true, unsupported(reasonBuiltinCall, "%s", kind)
	}
	if len(arguments.Keywords) > 0 {
		return in.zipWithKeywords(kind, arguments)
	}
	walkers, err := in.walkers(values[start:])
	if err != nil {
		return nil, true, err
	}
	var function Value
	if start == 1 {
		function = values[0]
	}
	again := func() (string, string, []Value) {
		if function != nil {
			return "name", "builtins." + kind, append([]Value{function}, walkers...)
		}
		return "name", "builtins." + kind, walkers
	}
	return &goIterator{kind: kind, step: iteratorStep(kind, function, walkers), again: again, born: in.frame.step}, true, nil
}

func iteratorStep(kind string, function Value, walkers []Value) func(in *Interpreter) (Value, error) {
	return func(in *Interpreter) (Value, error) {
		for {
			items := make([]Value, len(walkers))
			for k, walker := range walkers {
				item, err := in.advance(walker)
				if err != nil || item == nil {
					return nil, err
				}
				items[k] = item
			}
			switch {
			case kind == "zip":
				if len(walkers) == 0 {
					return nil, nil
				}
				return &Tuple{items: items}, nil
			case kind == "map":
				return in.call(function, Arguments{Positional: items})
			}
			keep, err := in.filterKeeps(function, items[0])
			if err != nil {
				return nil, err
			}
			if keep {
				return items[0], nil
			}
		}
	}
}

func (in *Interpreter) filterKeeps(function, item Value) (bool, error) {
	real, err := in.real(function)
	if err != nil {
		return false, err
	}
	if isNone(real) {
		return in.truth(item)
	}
	return in.truthOfCall(real, item)
}

// zipWithKeywords is zip(..., strict=...).
func (in *Interpreter) zipWithKeywords(kind string, arguments Arguments) (Value, bool, error) {
	named, ok := bindNamed(Arguments{Keywords: arguments.Keywords}, "strict")
	if kind != "zip" || !ok {
		return nil, true, unsupported(reasonBuiltinCall, "%s with these keywords", kind)
	}
	strict, err := in.truth(named[0])
	if err != nil || !strict {
		if err != nil {
			return nil, true, err
		}
		return in.constructIterator(kind, Arguments{Positional: arguments.Positional})
	}
	walkers, err := in.walkers(arguments.Positional)
	again := func() (string, string, []Value) { return "helper", "zip_strict", walkers }
	step := func(in *Interpreter) (Value, error) { return in.zipStrictly(walkers) }
	return &goIterator{kind: kind, step: step, again: again, born: in.frame.step}, true, err
}

// zipStrictly is the step of a strict zip, as zip_next of CPython's bltinmodule.c: where one iterator is at its end, all must be.
func (in *Interpreter) zipStrictly(walkers []Value) (Value, error) {
	items := make([]Value, len(walkers))
	for k, walker := range walkers {
		item, err := in.advance(walker)
		switch {
		case err != nil:
			return nil, err
		case item == nil && k > 0:
			return nil, in.raiseUnlikeLengths(k, "shorter")
		case item == nil:
			return nil, in.endTogether(walkers)
		}
		items[k] = item
	}
	if len(walkers) == 0 {
		return nil, nil
	}
	return &Tuple{items: items}, nil
}

// endTogether raises where one of the iterators behind the first, which has ended, gives another item.
func (in *Interpreter) endTogether(walkers []Value) error {
	for k, walker := range walkers[1:] {
		item, err := in.advance(walker)
		if err != nil {
			return err
		}
		if item != nil {
			return in.raiseUnlikeLengths(k+1, "longer")
		}
	}
	return nil
}

// raiseUnlikeLengths is the ValueError of a strict zip whose k-th argument, from 0 on, is not as long as those before.
func (in *Interpreter) raiseUnlikeLengths(k int, how string) error {
	before := " "
	if k > 1 {
		before = "s 1-"
	}
	return in.raise("ValueError", "zip() argument "+integerText(k+1)+" is "+how+" than argument"+before+integerText(k))
}

func (in *Interpreter) constructEnumerate(arguments Arguments) (Value, bool, error) {
	values := arguments.Positional
	for _, keyword := range arguments.Keywords {
		if keyword.Name == "start" {
			values = append(append([]Value{}, values...), keyword.Value)
		}
	}
	if len(values) == 0 {
		return nil, true, unsupported(reasonBuiltinCall, "enumerate")
	}
	position := int64(0)
	if len(values) > 1 {
		n, err := in.intArgument(values[1])
		if err != nil {
			return nil, true, err
		}
		position = n
	}
	walker, err := in.iterate(values[0])
	if err != nil {
		return nil, true, err
	}
	step := func(in *Interpreter) (Value, error) {
		item, err := in.advance(walker)
		if err != nil || item == nil {
			return nil, err
		}
		position++
		return &Tuple{items: []Value{integer(position - 1), item}}, nil
	}
	again := func() (string, string, []Value) {
		return "name", "builtins.enumerate", []Value{walker, integer(position)}
	}
	return &goIterator{kind: "enumerate", born: in.frame.step, step: step, again: again}, true, nil
}

func (in *Interpreter) constructReversed(values []Value) (Value, bool, error) {
	if len(values) != 1 {
		return nil, true, unsupported(reasonBuiltinCall, "reversed")
	}
	subject, err := in.real(values[0])
	if err != nil {
		return nil, true, err
	}
	if fields, ok := subject.(*fieldsDict); ok {
		if subject, err = fields.snapshot(in); err != nil {
			return nil, true, err
		}
	}
	if instance, ok := subject.(*Instance); ok {
		method, err := in.specialMethod(instance.class, "__reversed__", instance)
		if err != nil {
			return nil, true, err
		}
		if method == nil {
			return modelled(in.reverseInstance(instance))
		}
		return modelled(in.call(method, Arguments{}))
	}
	return in.reverseIterator(subject)
}

// reverseInstance walks a container of modules backwards by its __len__ and __getitem__, which Python may call again as nothing shows it.
func (in *Interpreter) reverseInstance(v *Instance) (Value, error) {
	getter, err := in.specialMethod(v.class, "__getitem__", v)
	if err != nil {
		return nil, err
	}
	if getter == nil || !strings.HasPrefix(v.class.name, "torch.nn.modules.container.") {
		return nil, unsupported(reasonIteration, "reversed %s", v.class.name)
	}
	length, err := in.length(v)
	if err != nil {
		return nil, err
	}
	taken := 0
	step := func(in *Interpreter) (Value, error) {
		if taken == length {
			return nil, nil
		}
		taken++
		item, err := in.call(getter, Arguments{Positional: []Value{integer(int64(length - taken))}})
		if isRaised(err, "IndexError") {
			taken = length
			return nil, nil
		}
		return item, err
	}
	again := func() (string, string, []Value) {
		return "helper", "make_reversed", []Value{v, integer(int64(taken))}
	}
	return &goIterator{kind: "reversed", step: step, again: again, born: in.frame.step}, nil
}

// reverseIterator walks a sequence backwards from the end that it has now; a list may shrink meanwhile.
func (in *Interpreter) reverseIterator(subject Value) (Value, bool, error) {
	switch s := subject.(type) {
	case *List, *Tuple, *Range, *Dict, *dictView, *Constant:
	case *Deque:
		return s.iterator(in, true), true, nil
	case *Set:
		return nil, true, in.raise("TypeError", "'"+subject.typeName()+"' object is not reversible")
	default:
		return nil, true, unsupported(reasonIteration, "reversed %s", subject.typeName())
	}
	items, err := in.iterableItems(subject)
	if err != nil {
		return nil, true, err
	}
	taken := 0
	step := func(in *Interpreter) (Value, error) {
		now := items
		if list, ok := subject.(*List); ok {
			var err error
			if now, err = list.contents(in); err != nil {
				return nil, err
			}
		}
		position := len(items) - 1 - taken
		if position < 0 || position >= len(now) {
			taken = len(items)
			return nil, nil
		}
		taken++
		return now[position], nil
	}
	again := func() (string, string, []Value) {
		return "helper", "make_reversed", []Value{subject, integer(int64(taken))}
	}
	return &goIterator{kind: "reversed", step: step, again: again, born: in.frame.step}, true, nil
}

// superValue is a super object: attributes are looked up behind a class in the MRO of self's class.
type superValue struct {
	start *Class
	self  *Instance
	class *Class // where the MRO is taken from
	bound Value
}

func (v *superValue) typeName() string { return "super" }

func (in *Interpreter) constructSuper(values []Value) (Value, bool, error) {
	if len(values) == 0 {
		return in.implicitSuper()
	}
	if len(values) != 2 {
		return nil, true, unsupported(reasonBuiltinCall, "super with one argument")
	}
	reals, err := in.realAll(values)
	if err != nil {
		return nil, true, err
	}
	start, ok := reals[0].(*Class)
	if !ok {
		return nil, true, in.raise("TypeError", "super() argument 1 must be a type, not "+shortName(reals[0].typeName()))
	}
	return modelled(in.makeSuper(start, reals[1]))
}

// implicitSuper is super() without arguments: __class__ from the closure, self from the first parameter.
func (in *Interpreter) implicitSuper() (Value, bool, error) {
	f := in.frame
	index := indexOf(f.code.LocalsPlusNames, "__class__")
	if index < 0 || f.code.ArgCount == 0 {
		return nil, true, in.raise("RuntimeError", "super(): no arguments")
	}
	cell, err := in.cellAt(f, index)
	if err != nil {
		return nil, true, err
	}
	if cell.content == nil {
		return nil, true, in.raise("RuntimeError", "super(): empty __class__ cell")
	}
	start, err := in.real(cell.content)
	if err != nil {
		return nil, true, err
	}
	class, ok := start.(*Class)
	if !ok {
		return nil, true, unsupported(reasonBuiltinCall, "super")
	}
	self, err := in.real(f.locals[0])
	if err != nil {
		return nil, true, err
	}
	if held, ok := self.(*Cell); ok {
		if self, err = in.real(held.content); err != nil {
			return nil, true, err
		}
	}
	return modelled(in.makeSuper(class, self))
}

// makeSuper is CPython's supercheck: self must be the class, one that derives from it, or an instance of one.
func (in *Interpreter) makeSuper(start *Class, self Value) (Value, error) {
	if class, ok := self.(*Class); ok {
		if derives, err := in.derives(class, start); derives || err != nil {
			return &superValue{start: start, class: class, bound: class}, err
		}
	}
	class, err := in.classOf(self)
	if err != nil {
		return nil, err
	}
	if derives, err := in.derives(class, start); !derives || err != nil {
		if err == nil {
			err = in.raise("TypeError", "super(type, obj): obj must be an instance or subtype of type")
		}
		return nil, err
	}
	instance, _ := self.(*Instance)
	return &superValue{start: start, self: instance, class: class, bound: self}, nil
}

// derives tells whether a class is another one or derives from it.
func (in *Interpreter) derives(class, from *Class) (bool, error) {
	order, err := in.mroOf(class)
	return slices.ContainsFunc(order, func(base *Class) bool { return sameClass(base, from) }), err
}

func (v *superValue) getAttribute(in *Interpreter, name string) (Value, error) {
	passed := false
	order, err := in.mroOf(v.class)
	if err != nil {
		return nil, err
	}
	for _, class := range order {
		if !passed {
			passed = sameClass(class, v.start)
			continue
		}
		found, err := in.ownAttribute(class, name)
		if err != nil {
			return nil, err
		}
		if found == nil {
			continue
		}
		if class, isClass := v.bound.(*Class); isClass && class == v.class {
			return in.bindToClass(found, class)
		}
		return in.bindDescriptor(found, v.bound, v.class)
	}
	return nil, in.raise("AttributeError", "'super' object has no attribute '"+name+"'")
}

// bindToClass binds what super found for a class rather than an instance: __new__ and class methods.
func (in *Interpreter) bindToClass(found Value, class *Class) (Value, error) {
	found, err := in.real(found)
	if err != nil {
		return nil, err
	}
	switch v := found.(type) {
	case *descriptorValue:
		if v.kind == "classmethod" {
			return in.bindClassMethod(v, class)
		}
		if v.kind == "staticmethod" {
			return v.parts[0], nil
		}
	case *Builtin:
		if v.flavor == "classmethod" {
			return &Builtin{name: v.name, self: class, descriptor: v.object, toClass: true}, nil
		}
		if shortName(v.name) == "__new__" {
			return &newMethod{v}, nil
		}
	}
	return found, nil
}

// newMethod is object.__new__ reached through super: it is called with the class as first argument.
type newMethod struct{ hook *Builtin }

func (v *newMethod) typeName() string { return "builtin_function_or_method" }

func (v *newMethod) call(in *Interpreter, arguments Arguments) (Value, error) {
	if len(arguments.Positional) == 0 {
		return nil, unsupported(reasonOpaqueCall, "%s", v.hook.name)
	}
	class, ok, err := as[*Class](in.real(arguments.Positional[0]))
	if !ok {
		return nil, cmp.Or(err, unsupported(reasonOpaqueCall, "%s", v.hook.name))
	}
	return in.builtinNew(v.hook, class, Arguments{arguments.Positional[1:], arguments.Keywords})
}

// classHolds tells whether a class's own __dict__ has a name.
func (in *Interpreter) classHolds(class *Class, name string) (bool, error) {
	if _, ok := class.ownAttributes[name]; ok {
		return true, nil
	}
	d, err := in.session.Object(class.id)
	return err == nil && slices.Contains(trace.Items(trace.Field(d.Payload, "names")), bytecode.Object(name)), err
}
