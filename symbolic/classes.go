package symbolic

import (
	"slices"
	"strings"

	"github.com/cockroachdb/errors"

	"fusee/bytecode"
	"fusee/internal/slice"
	"fusee/trace"
)

// madeClass is what a class carries that the program defines during capture: the host does not know it, so its attributes, its method
// resolution order and its metaclass are all here.
type madeClass struct {
	bases     []*Class
	order     []*Class // the method resolution order, the class itself first
	metaclass *Class
	namespace *Dict
	born      int    // the step that made it, where capture breaks when Python must be given the class
	layout    string // canonical name of the builtin class that lays out the instances
}

// sameClass tells whether two values stand for one class: a builtin class may be known by its name alone.
func sameClass(a, b *Class) bool {
	switch {
	case a == b || a.id != 0 && a.id == b.id:
		return true
	case a.made != nil || b.made != nil:
		return false
	}
	return a.name == b.name && (a.id == 0 || b.id == 0)
}

// mroOf lists the classes along the method resolution order, the class itself first.
func (in *Interpreter) mroOf(class *Class) ([]*Class, error) {
	if class.made != nil {
		return class.made.order, nil
	}
	if class.id == 0 {
		resolved, err := in.namedClass(class.name)
		if err != nil {
			return nil, err
		}
		class = resolved
	}
	return slice.TryMap(class.mro, in.classByID)
}

// ownAttribute is a class's own attribute of a name, nil where only its bases may have it.
func (in *Interpreter) ownAttribute(class *Class, name string) (Value, error) {
	if class.made != nil {
		return class.made.namespace.lookup(in, text(name))
	}
	if class.id == 0 {
		resolved, err := in.namedClass(class.name)
		if err != nil {
			return nil, err
		}
		class = resolved
	}
	if value, written := class.ownAttributes[name]; written {
		return value, nil
	}
	holds, err := in.classHolds(class, name)
	if err != nil || !holds {
		return nil, err
	}
	found, err := in.session.TypeLookup(class.id, name)
	if err != nil || found == nil {
		return nil, err
	}
	return in.classAttribute(class, class, name, found.Value)
}

// lookupAlong is _PyType_Lookup over classes of which some exist only in the capture.
func (in *Interpreter) lookupAlong(order []*Class, name string) (Value, *Class, error) {
	for _, class := range order {
		value, err := in.ownAttribute(class, name)
		if err != nil || value != nil {
			return value, class, err
		}
	}
	return nil, nil, nil
}

// buildClass is builtins.__build_class__(body, name, *bases, metaclass=..., **keywords).
func (in *Interpreter) buildClass(arguments Arguments) (Value, error) {
	if len(arguments.Positional) < 2 {
		return nil, in.raise("TypeError", "__build_class__: not enough arguments")
	}
	body, ok := arguments.Positional[0].(*Function)
	name, isText := stringOf(arguments.Positional[1])
	if !ok || !isText {
		return nil, unsupported(reasonClass, "an unusual class statement")
	}
	original := &Tuple{items: append([]Value{}, arguments.Positional[2:]...)}
	bases, err := in.resolveBases(original)
	if err != nil {
		return nil, err
	}
	metaclass, keywords, err := in.chooseMetaclass(bases.items, arguments.Keywords)
	if err != nil {
		return nil, err
	}
	namespace, err := in.prepareNamespace(metaclass, name, bases, keywords)
	if err != nil {
		return nil, err
	}
	cell, err := in.runClassBody(body, namespace)
	if err != nil {
		return nil, err
	}
	if bases != original {
		if err := namespace.setItem(in, text("__orig_bases__"), original); err != nil {
			return nil, err
		}
	}
	made, err := in.call(metaclass, Arguments{[]Value{text(name), bases, namespace}, keywords})
	if err != nil {
		return nil, err
	}
	return made, in.checkClassCell(cell, made, name)
}

// checkClassCell is what CPython demands of __class__ once the class is made.
func (in *Interpreter) checkClassCell(cell, made Value, name string) error {
	held, ok := cell.(*Cell)
	if !ok {
		return nil
	}
	class, isClass := made.(*Class)
	if !isClass {
		return nil
	}
	if held.content == nil {
		return in.raise("RuntimeError", "__class__ not set defining '"+name+"' as <class '"+class.name+"'>. Was __classcell__ propagated to type.__new__?")
	}
	if held.content != made {
		return unsupported(reasonClass, "__class__ of another class")
	}
	return nil
}

// resolveBases replaces bases that are no classes by what their __mro_entries__ return.
func (in *Interpreter) resolveBases(original *Tuple) (*Tuple, error) {
	resolved := &Tuple{}
	changed := false
	for _, item := range original.items {
		base, err := in.real(item)
		if err != nil {
			return nil, err
		}
		if _, isClass := base.(*Class); isClass {
			resolved.items = append(resolved.items, base)
			continue
		}
		hook, err := in.optionalAttribute(base, "__mro_entries__")
		if err != nil {
			return nil, err
		}
		if hook == nil {
			resolved.items = append(resolved.items, base)
			continue
		}
		entries, err := in.call(hook, Arguments{Positional: []Value{original}})
		if err != nil {
			return nil, err
		}
		tuple, ok := entries.(*Tuple)
		if !ok {
			return nil, in.raise("TypeError", "__mro_entries__ must return a tuple")
		}
		resolved.items, changed = append(resolved.items, tuple.items...), true
	}
	if !changed {
		return original, in.realInPlace(original.items)
	}
	return resolved, nil
}

func (in *Interpreter) realInPlace(items []Value) error {
	reals, err := in.realAll(items)
	copy(items, reals)
	return err
}

// chooseMetaclass takes the keyword metaclass away and finds the most derived metaclass among it and those of the bases.
func (in *Interpreter) chooseMetaclass(bases []Value, keywords []KeywordArgument) (Value, []KeywordArgument, error) {
	var given Value
	var rest []KeywordArgument
	for _, keyword := range keywords {
		if keyword.Name != "metaclass" {
			rest = append(rest, keyword)
			continue
		}
		real, err := in.real(keyword.Value)
		if err != nil {
			return nil, nil, err
		}
		given = real
	}
	if given == nil {
		given = in.builtinClass("type")
		if len(bases) > 0 {
			class, err := in.classOf(bases[0])
			if err != nil {
				return nil, nil, err
			}
			given = class
		}
	}
	class, ok := given.(*Class)
	if !ok {
		return given, rest, nil // any callable may stand for a metaclass
	}
	winner, err := in.derivedMetaclass(class, bases)
	return winner, rest, err
}

// derivedMetaclass is _PyType_CalculateMetaclass.
func (in *Interpreter) derivedMetaclass(winner *Class, bases []Value) (*Class, error) {
	for _, base := range bases {
		class, err := in.classOf(base)
		if err != nil {
			return nil, err
		}
		switch {
		case winner.inherits(class):
		case class.inherits(winner):
			winner = class
		default:
			return nil, in.raise("TypeError", "metaclass conflict: the metaclass of a derived class must be a (non-strict) subclass of the metaclasses of all its bases")
		}
	}
	return winner, nil
}

// prepareNamespace is __prepare__: a new dict unless the metaclass has its own.
func (in *Interpreter) prepareNamespace(metaclass Value, name string, bases *Tuple, keywords []KeywordArgument) (*Dict, error) {
	hook, err := in.optionalAttribute(metaclass, "__prepare__")
	if err != nil {
		return nil, err
	}
	if hook == nil {
		return newDict(), nil
	}
	if builtin, ok := hook.(*Builtin); ok && builtin.name == "type.__prepare__" {
		return newDict(), nil
	}
	prepared, err := in.call(hook, Arguments{[]Value{text(name), bases}, keywords})
	if err != nil {
		return nil, err
	}
	if prepared, err = in.real(prepared); err != nil {
		return nil, err
	}
	namespace, ok := prepared.(*Dict)
	if !ok || namespace.class != nil {
		return nil, unsupported(reasonClass, "a namespace of type %s", prepared.typeName())
	}
	return namespace, nil
}

// runClassBody executes the statements of the class; a break inside is one at the class statement, as the body's names live in a dict.
func (in *Interpreter) runClassBody(body *Function, namespace *Dict) (Value, error) {
	frame, err := in.newFrame(body)
	if err != nil {
		return nil, err
	}
	frame.namespace = namespace
	in.tail = nil
	in.activity++
	return in.run(frame)
}

// makeClass is type.__new__(metaclass, name, bases, namespace, **keywords).
func (in *Interpreter) makeClass(metaclass *Class, arguments Arguments) (Value, error) {
	if len(arguments.Positional) != 3 {
		return nil, unsupported(reasonClass, "type with %d arguments", len(arguments.Positional))
	}
	values, err := in.realAll(arguments.Positional)
	if err != nil {
		return nil, err
	}
	name, okName := stringOf(values[0])
	tuple, okBases := values[1].(*Tuple)
	given, okNamespace := values[2].(*Dict)
	if !okName || !okBases || !okNamespace {
		return nil, unsupported(reasonClass, "type of %s, %s, %s", values[0].typeName(), values[1].typeName(), values[2].typeName())
	}
	namespace, err := given.copy(in)
	if err != nil {
		return nil, err
	}
	namespace.class = nil
	bases, err := in.basesOf(tuple.items)
	if err != nil {
		return nil, err
	}
	if metaclass, err = in.derivedMetaclass(metaclass, valuesOf(bases)); err != nil {
		return nil, err
	}
	in.classesMade++
	class := &Class{name: name, made: &madeClass{bases: bases, metaclass: metaclass, namespace: namespace, born: in.frame.step}}
	in.activity++
	return class, in.completeClass(class, name, arguments.Keywords)
}

// basesOf checks the bases of a new class; object where there are none.
func (in *Interpreter) basesOf(items []Value) ([]*Class, error) {
	if len(items) == 0 {
		object, err := in.namedClass("object")
		return []*Class{object}, err
	}
	bases := make([]*Class, len(items))
	for i, item := range items {
		item, err := in.real(item)
		if err != nil {
			return nil, err
		}
		class, ok := item.(*Class)
		if !ok {
			return nil, unsupported(reasonClass, "a base of type %s", item.typeName())
		}
		if class.made == nil && class.id == 0 {
			if class, err = in.namedClass(class.name); err != nil {
				return nil, err
			}
		}
		acceptable, err := in.mayBeBase(class)
		if err != nil {
			return nil, err
		}
		if !acceptable {
			return nil, in.raise("TypeError", "type '"+class.name+"' is not an acceptable base type")
		}
		bases[i] = class
	}
	return bases, nil
}

// baseTypeFlag is CPython's Py_TPFLAGS_BASETYPE, heapTypeFlag its Py_TPFLAGS_HEAPTYPE, immutableTypeFlag its Py_TPFLAGS_IMMUTABLETYPE.
const (
	heapTypeFlag      = 1 << 9
	immutableTypeFlag = 1 << 8
	baseTypeFlag      = 1 << 10
)

func (in *Interpreter) mayBeBase(class *Class) (bool, error) {
	if class.made != nil {
		return true, nil
	}
	flags, err := in.classFlags(class)
	return flags&baseTypeFlag != 0, err
}

// completeClass does what type.__new__ does once the parts are known: the order of lookup, the layout, special names, and the hooks.
func (in *Interpreter) completeClass(class *Class, name string, keywords []KeywordArgument) error {
	made := class.made
	if err := in.nameClass(class, name); err != nil {
		return err
	}
	if err := in.orderClass(class); err != nil {
		return err
	}
	if err := in.layOut(class); err != nil {
		return err
	}
	if err := in.wrapSpecialNames(made.namespace); err != nil {
		return err
	}
	if err := in.fillClassCell(class); err != nil {
		return err
	}
	if err := in.announceNames(class); err != nil {
		return err
	}
	return in.initSubclass(class, keywords)
}

// nameClass takes __qualname__ out of the namespace and finds the canonical name.
func (in *Interpreter) nameClass(class *Class, name string) error {
	namespace := class.made.namespace
	qualified, err := namespace.lookup(in, text("__qualname__"))
	if err != nil {
		return err
	}
	class.qualified = name
	if qualified != nil {
		given, ok := stringOf(qualified)
		if !ok {
			return in.raise("TypeError", "type __qualname__ must be a str, not "+shortName(qualified.typeName()))
		}
		class.qualified = given
		if err := namespace.setItem(in, text("__qualname__"), nil); err != nil {
			return err
		}
	}
	module, err := namespace.lookup(in, text("__module__"))
	if err != nil {
		return err
	}
	if module == nil {
		if module, err = in.frame.function.globals.lookup(in, text("__name__")); err != nil {
			return err
		}
		if module != nil {
			if err := namespace.setItem(in, text("__module__"), module); err != nil {
				return err
			}
		}
	}
	if module, err = in.real(orNone(module)); err != nil {
		return err
	}
	prefix, _ := stringOf(module)
	class.name, class.shortName = prefix+"."+class.qualified, name
	return nil
}

// orderClass merges the bases' orders of lookup (the C3 linearisation of Python's documentation on the MRO).
func (in *Interpreter) orderClass(class *Class) error {
	made := class.made
	if hook, owner, err := in.classLookup(made.metaclass, "mro"); err != nil || hook != nil && owner.name != "type" {
		if err == nil {
			err = unsupported(reasonClass, "a metaclass with an mro of its own")
		}
		return err
	}
	var sequences [][]*Class
	for i, base := range made.bases {
		for _, other := range made.bases[:i] {
			if sameClass(base, other) {
				return in.raise("TypeError", "duplicate base class "+base.baseName())
			}
		}
		order, err := in.mroOf(base)
		if err != nil {
			return err
		}
		sequences = append(sequences, append([]*Class{}, order...))
	}
	sequences = append(sequences, append([]*Class{}, made.bases...))
	merged := mergeOrders(sequences)
	if merged == nil {
		names := slice.Map(made.bases, (*Class).baseName)
		return in.raise("TypeError", "Cannot create a consistent method resolution\norder (MRO) for bases "+strings.Join(names, ", "))
	}
	made.order = append([]*Class{class}, merged...)
	for _, base := range made.order {
		class.baseNames = append(class.baseNames, base.name)
	}
	return nil
}

// mergeOrders is the merge step of C3; nil where the sequences contradict each other.
func mergeOrders(sequences [][]*Class) []*Class {
	merged := []*Class{}
	for {
		var head *Class
		empty := true
		for _, sequence := range sequences {
			if len(sequence) == 0 {
				continue
			}
			empty = false
			if !inTail(sequences, sequence[0]) {
				head = sequence[0]
				break
			}
		}
		if empty {
			return merged
		}
		if head == nil {
			return nil
		}
		merged = append(merged, head)
		for i, sequence := range sequences {
			if len(sequence) > 0 && sameClass(sequence[0], head) {
				sequences[i] = sequence[1:]
			}
		}
	}
}

func inTail(sequences [][]*Class, class *Class) bool {
	return slices.ContainsFunc(sequences, func(sequence []*Class) bool {
		return len(sequence) > 0 && slices.ContainsFunc(sequence[1:], func(later *Class) bool { return sameClass(later, class) })
	})
}

// layOut finds the builtin class that lays out the instances, and makes descriptors for __slots__.
func (in *Interpreter) layOut(class *Class) error {
	made := class.made
	for _, base := range made.bases {
		layout, err := in.layoutOf(base)
		if err != nil {
			return err
		}
		switch {
		case made.layout == "" || made.layout == "object":
			made.layout = layout
		case layout != "object" && layout != made.layout:
			if base.isSubclassOf(made.layout) {
				made.layout = layout
			} else if !in.builtinClassInherits(made.layout, layout) {
				return unsupported(reasonClass, "bases laid out as %s and %s", made.layout, layout)
			}
		}
		class.hasDict = class.hasDict || base.hasDict
	}
	slots, err := made.namespace.lookup(in, text("__slots__"))
	if err != nil {
		return err
	}
	if slots == nil {
		class.hasDict = true
		return nil
	}
	return in.makeSlots(class, slots)
}

// builtinClassInherits tells whether a builtin class, known by name, derives from another.
func (in *Interpreter) builtinClassInherits(name, base string) bool {
	class, err := in.namedClass(name)
	return err == nil && class.isSubclassOf(base)
}

// layoutOf is the first class along the order that is written in C.
func (in *Interpreter) layoutOf(class *Class) (string, error) {
	if class.made != nil {
		return class.made.layout, nil
	}
	order, err := in.mroOf(class)
	if err != nil {
		return "", err
	}
	for _, base := range order {
		flags, err := in.classFlags(base)
		if err != nil {
			return "", err
		}
		if flags&heapTypeFlag == 0 || !in.writtenInPython(base) {
			return base.name, nil
		}
	}
	return "object", nil
}

// writtenInPython tells classes of class statements from heap types of C: only those have a __module__ and __dict__ or __weakref__ of their own,
// or inherit these from a class that has.
func (in *Interpreter) writtenInPython(class *Class) bool {
	order, err := in.mroOf(class)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(order, in.marksInstances)
}

// marksInstances tells heap types whose own namespace says how their instances are laid out.
func (in *Interpreter) marksInstances(class *Class) bool {
	flags, err := in.classFlags(class)
	return err == nil && flags&heapTypeFlag != 0 && slices.ContainsFunc([]string{"__dict__", "__weakref__", "__slots__"}, func(name string) bool {
		holds, err := in.classHolds(class, name)
		return err == nil && holds
	})
}

func (in *Interpreter) makeSlots(class *Class, slots Value) error {
	items, err := in.slotNames(slots)
	if err != nil {
		return err
	}
	if err := in.unusualSlots(class, items); err != nil {
		return err
	}
	for _, name := range items {
		switch name {
		case "__dict__":
			class.hasDict = true
			continue
		case "__weakref__":
			continue
		}
		if known, err := class.made.namespace.lookup(in, text(name)); err != nil || known != nil {
			if err == nil {
				err = in.raise("ValueError", "'"+name+"' in __slots__ conflicts with class variable")
			}
			return err
		}
		member := &Builtin{name: class.name + "." + mangle(class.shortName, name), flavor: "member"}
		if err := class.made.namespace.setItem(in, text(mangle(class.shortName, name)), member); err != nil {
			return err
		}
	}
	return nil
}

// unusualSlots leaves to Python what type.__new__ refuses or treats in a way of its own.
func (in *Interpreter) unusualSlots(class *Class, names []string) error {
	layout, seen := class.made.layout, map[string]bool{}
	for _, name := range names {
		switch {
		case seen[name], name == "" || !isIdentifier(name), name == "__dict__" && class.hasDict, name == "__weakref__" && len(class.made.order) > 2,
			slices.Contains([]string{"int", "tuple", "bytes", "type"}, layout):
			return unsupported(reasonClass, "the slot %q", name)
		}
		seen[name] = true
	}
	return nil
}

// isIdentifier tells ASCII names that Python accepts.
func isIdentifier(name string) bool {
	for k, c := range name {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (k == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

func (in *Interpreter) slotNames(slots Value) ([]string, error) {
	slots, err := in.real(slots)
	if err != nil {
		return nil, err
	}
	if name, ok := stringOf(slots); ok {
		return []string{name}, nil
	}
	items, err := in.listOf(slots)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, item := range items {
		if item, err = in.real(item); err != nil {
			return nil, err
		}
		name, ok := stringOf(item)
		if !ok {
			return nil, in.raise("TypeError", "__slots__ items must be strings, not '"+shortName(item.typeName())+"'")
		}
		names = append(names, name)
	}
	return names, nil
}

// mangle is Python's name mangling of private names.
func mangle(class, name string) string {
	stripped := strings.TrimLeft(class, "_")
	if !strings.HasPrefix(name, "__") || strings.HasSuffix(name, "__") || stripped == "" {
		return name
	}
	return "_" + stripped + name
}

// wrapSpecialNames makes __new__ a static method, __init_subclass__ and __class_getitem__ class methods, and a class with __eq__ but no
// __hash__ unhashable.
func (in *Interpreter) wrapSpecialNames(namespace *Dict) error {
	for _, row := range [][2]string{{"__new__", "staticmethod"}, {"__init_subclass__", "classmethod"}, {"__class_getitem__", "classmethod"}} {
		value, err := namespace.lookup(in, text(row[0]))
		if err != nil {
			return err
		}
		if function, ok := value.(*Function); ok {
			if err := namespace.setItem(in, text(row[0]), &descriptorValue{kind: row[1], parts: []Value{function}}); err != nil {
				return err
			}
		}
	}
	equal, err := namespace.lookup(in, text("__eq__"))
	if err != nil || equal == nil {
		return err
	}
	if hash, err := namespace.lookup(in, text("__hash__")); err != nil || hash != nil {
		return err
	}
	return namespace.setItem(in, text("__hash__"), none())
}

// fillClassCell gives methods their __class__.
func (in *Interpreter) fillClassCell(class *Class) error {
	namespace := class.made.namespace
	value, err := namespace.lookup(in, text("__classcell__"))
	if err != nil || value == nil {
		return err
	}
	cell, ok := value.(*Cell)
	if !ok {
		return in.raise("TypeError", "type.__new__ got invalid __classcell__")
	}
	in.storeCell(cell, class)
	return namespace.setItem(in, text("__classcell__"), nil)
}

// announceNames calls __set_name__ of the attributes that have it.
func (in *Interpreter) announceNames(class *Class) error {
	entries, err := class.made.namespace.live(in)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		value, err := in.real(entry.value)
		if err != nil {
			return err
		}
		if property, isProperty := value.(*descriptorValue); isProperty && property.object == nil {
			property.name, _ = stringOf(entry.key)
		}
		holder, ok := value.(*Instance)
		if !ok {
			continue
		}
		hook, err := in.specialMethod(holder.class, "__set_name__", holder)
		if err != nil {
			return err
		}
		if hook == nil {
			continue
		}
		if _, err := in.call(hook, Arguments{Positional: []Value{class, entry.key}}); err != nil {
			return err
		}
	}
	return nil
}

// initSubclass is super(class, class).__init_subclass__(**keywords).
func (in *Interpreter) initSubclass(class *Class, keywords []KeywordArgument) error {
	hook, owner, err := in.lookupAlong(class.made.order[1:], "__init_subclass__")
	if err != nil || hook == nil {
		return err
	}
	if owner.name == "object" {
		if len(keywords) > 0 {
			return in.raise("TypeError", class.shortName+".__init_subclass__() takes no keyword arguments")
		}
		return nil
	}
	bound, err := in.bindToClass(hook, class)
	if err != nil {
		return err
	}
	_, err = in.call(bound, Arguments{Keywords: keywords})
	return err
}

// madeAttribute reads what type's own descriptors show of a class made during capture; nil where an ordinary lookup decides.
func (c *Class) madeAttribute(in *Interpreter, name string) (Value, error) {
	switch name {
	case "__name__":
		return text(c.shortName), nil
	case "__qualname__":
		return text(c.qualified), nil
	case "__mro__":
		return &Tuple{items: valuesOf(c.made.order)}, nil
	case "__bases__":
		return &Tuple{items: valuesOf(c.made.bases)}, nil
	case "__base__":
		return c.made.bases[0], nil
	case "__dict__":
		return &mappingProxy{c.made.namespace, c.made.born}, nil
	case "__doc__", "__annotations__", "__module__":
		value, err := c.made.namespace.lookup(in, text(name))
		if value != nil || err != nil {
			return nil, err
		}
		if name == "__annotations__" {
			made := newDict()
			return made, c.made.namespace.setItem(in, text(name), made)
		}
		return none(), nil
	}
	return nil, nil
}

// mappingProxy is a view of a dict that cannot be written, such as a class's __dict__.
type mappingProxy struct {
	dict *Dict
	born int // the step that made the class, 0 for the view of another dict
}

// constructMappingProxy is types.MappingProxyType(mapping), of a dict.
func (in *Interpreter) constructMappingProxy(arguments Arguments) (Value, bool, error) {
	mapping, ok, err := in.singleReal(arguments)
	if !ok || err != nil {
		return nil, ok, err
	}
	dict, ok := mapping.(*Dict)
	if !ok {
		return nil, true, unsupported(reasonOpaqueCall, "a mappingproxy of a %s", mapping.typeName())
	}
	return &mappingProxy{dict: dict}, true, nil
}

// mappingOfView is the mapping that a view of a dict shows.
func (in *Interpreter) mappingOfView(view *dictView) (Value, error) {
	if view.dict.class != nil {
		return nil, unsupported(reasonAttribute, "%s.mapping of a %s", view.typeName(), view.dict.typeName())
	}
	return &mappingProxy{dict: view.dict}, nil
}

func (v *mappingProxy) typeName() string { return "mappingproxy" }

func (v *mappingProxy) getItem(in *Interpreter, key Value) (Value, error) {
	return v.dict.getItem(in, key)
}

func (v *mappingProxy) length(in *Interpreter) (int, error) { return v.dict.length(in) }

func (v *mappingProxy) contains(in *Interpreter, item Value) (bool, error) {
	return v.dict.contains(in, item)
}

func (v *mappingProxy) iterate(in *Interpreter) (iterator, error) {
	walked, ok, err := as[iterator](in.iterateDict(v.dict, v, "keys"))
	if err == nil && !ok {
		err = errors.New("a dict's iterator is none")
	}
	return walked, err
}

func (v *mappingProxy) getAttribute(in *Interpreter, name string) (Value, error) {
	switch name {
	case "get", "keys", "values", "items", "copy":
		return in.builtinAttribute(v.dict, name)
	}
	return nil, unsupported(reasonAttribute, "mappingproxy.%s", name)
}

// setMadeAttribute sets an attribute of a class made during capture; nil deletes it.
func (c *Class) setMadeAttribute(in *Interpreter, name string, value Value) error {
	switch name {
	case "__name__", "__qualname__", "__mro__", "__bases__", "__base__", "__dict__", "__abstractmethods__":
		return unsupported(reasonMutation, "class attribute %s.%s", c.name, name) // descriptors of type itself
	}
	meta := c.made.metaclass
	hook, _, err := in.classLookup(meta, name)
	if err != nil {
		return err
	}
	if hook != nil {
		if hook, err = in.real(hook); err != nil {
			return err
		}
		if data, err := in.isDataDescriptor(hook); err != nil || data {
			if err == nil {
				err = unsupported(reasonMutation, "class attribute %s.%s", c.name, name)
			}
			return err
		}
	}
	if value == nil {
		if known, err := c.made.namespace.lookup(in, text(name)); err != nil || known == nil {
			if err == nil {
				err = in.raise("AttributeError", "type object '"+c.shortName+"' has no attribute '"+name+"'")
			}
			return err
		}
	}
	return c.made.namespace.setItem(in, text(name), value)
}

// baseName is a class's __name__.
func (c *Class) baseName() string {
	if c.made != nil {
		return c.shortName
	}
	return shortName(c.name)
}

// classFlags is CPython's tp_flags.
func (in *Interpreter) classFlags(class *Class) (int64, error) {
	d, err := in.session.Object(class.id)
	if err != nil {
		return 0, err
	}
	flags, _ := fieldInt(d.Payload, "flags")
	return flags, nil
}

func fieldInt(payload bytecode.Object, name string) (int64, bool) {
	n, ok := trace.Field(payload, name).(int64)
	return n, ok
}

// setupAnnotations is SETUP_ANNOTATIONS: the names of a class body get a dict of annotations.
func (in *Interpreter) setupAnnotations(f *Frame) error {
	if f.namespace == nil {
		return unsupported(reasonInstruction, "annotations outside a class body")
	}
	known, err := f.namespace.lookup(in, text("__annotations__"))
	if err != nil || known != nil {
		return err
	}
	return f.namespace.setItem(in, text("__annotations__"), newDict())
}
