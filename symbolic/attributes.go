package symbolic

import (
	"slices"
	"strings"

	"fusee/bytecode"
	"fusee/trace"
)

func (in *Interpreter) loadAttribute(f *Frame, name string, method bool) error {
	owner, err := in.real(f.pop())
	if err != nil {
		return err
	}
	in.tail = &adapter{nullFirst: method}
	value, err := in.getAttribute(owner, name)
	if err != nil {
		return err
	}
	if method {
		f.push(null{})
	}
	f.push(value)
	return nil
}

// getAttribute is PyObject_GetAttr.
func (in *Interpreter) getAttribute(owner Value, name string) (Value, error) {
	owner, err := in.real(owner)
	if err != nil {
		return nil, err
	}
	if reader, ok := owner.(attributeReader); ok {
		value, err := reader.getAttribute(in, name)
		in.tellAttribute(err, owner, name)
		return value, err
	}
	if name == "__class__" {
		return in.classOf(owner)
	}
	return in.builtinAttribute(owner, name)
}

// tellAttribute notes in an AttributeError that code of the program raised for an instance what was asked for, unless it says so already.
func (in *Interpreter) tellAttribute(err error, owner Value, name string) {
	instance, ok := owner.(*Instance)
	if !ok || !isRaised(err, "AttributeError") {
		return
	}
	raised := err.(*Raised).Exception
	state := raised.exception
	if raised.object != nil || state == nil || state.members["name"] != nil || state.members["obj"] != nil {
		return
	}
	in.setMembers(raised, map[string]Value{"name": text(name), "obj": instance})
}

// hasAttribute is getattr that takes AttributeError for an answer.
func (in *Interpreter) optionalAttribute(owner Value, name string) (Value, error) {
	value, err := in.getAttribute(owner, name)
	if isRaised(err, "AttributeError") {
		return nil, nil
	}
	return value, err
}

func (in *Interpreter) setAttribute(owner Value, name string, value Value) error {
	owner, err := in.real(owner)
	if err != nil {
		return err
	}
	if writer, ok := owner.(attributeWriter); ok {
		return writer.setAttribute(in, name, value)
	}
	return unsupported(reasonMutation, "%s.%s", owner.typeName(), name)
}

// builtinAttribute finds methods of values of builtin types.
func (in *Interpreter) builtinAttribute(owner Value, name string) (Value, error) {
	class, err := in.classOf(owner)
	if err != nil {
		return nil, err
	}
	found, _, err := in.classLookup(class, name)
	if err != nil {
		return nil, err
	}
	if found == nil {
		if tuple, ok := owner.(*Tuple); ok && class.hasDict {
			return in.tupleField(tuple, name)
		}
		return nil, in.raiseAttributeError(owner, name)
	}
	if tuple, ok := owner.(*Tuple); ok && class.hasDict {
		if value, err := in.shadowingField(tuple, found, name); value != nil || err != nil {
			return value, err
		}
	}
	if view, ok := owner.(*dictView); ok && name == "mapping" {
		return in.mappingOfView(view)
	}
	return in.bindDescriptor(found, owner, class)
}

// shadowingField is the attribute of a tuple itself that hides a plain value of its class, nil where there is none.
func (in *Interpreter) shadowingField(t *Tuple, found Value, name string) (Value, error) {
	found, err := in.look(found)
	if err != nil {
		return nil, err
	}
	switch found.(type) {
	case *Function, *Builtin, *descriptorValue, *Instance:
		return nil, nil
	}
	if value := t.fields[name]; value != nil || t.object == nil {
		return value, nil
	}
	return nil, unsupported(reasonAttribute, "%s.%s", t.class.name, name)
}

// tupleField reads an attribute set on an instance of a tuple subclass.
func (in *Interpreter) tupleField(t *Tuple, name string) (Value, error) {
	if value := t.fields[name]; value != nil {
		return value, nil
	}
	if t.object == nil {
		return nil, in.raiseAttributeError(t, name)
	}
	for _, hook := range []string{"__getattr__", "__getattribute__"} {
		found, _, err := in.classLookup(t.class, hook)
		if err != nil {
			return nil, err
		}
		if _, builtin := found.(*Builtin); found != nil && !builtin {
			return nil, unsupported(reasonAttribute, "%s.%s", t.class.name, name)
		}
	}
	return in.existingAttribute(t.object, name)
}

// setAttribute writes to the __dict__ of an instance of a tuple subclass.
func (t *Tuple) setAttribute(in *Interpreter, name string, value Value) error {
	if t.class == nil || !t.class.hasDict || value == nil || strings.HasPrefix(name, "__") {
		return unsupported(reasonMutation, "%s.%s", t.typeName(), name)
	}
	hook, _, err := in.classLookup(t.class, "__setattr__")
	if err != nil {
		return err
	}
	if hook, err = in.real(hook); err != nil {
		return err
	}
	if function, ok := hook.(*Function); ok {
		_, err := in.tailCall(function, Arguments{Positional: []Value{t, text(name), value}})
		return err
	}
	if builtin, ok := hook.(*Builtin); !ok || !plainAttributes(builtin.name) {
		return unsupported(reasonMutation, "__setattr__ of %s", t.typeName())
	}
	return in.setTupleField(t, name, value)
}

// setTupleField is object.__setattr__ of an instance of a tuple subclass; what the class describes, such as the items of a named tuple, is
// left to Python.
func (in *Interpreter) setTupleField(t *Tuple, name string, value Value) error {
	found, _, err := in.classLookup(t.class, name)
	if err != nil {
		return err
	}
	if found, err = in.real(found); err != nil {
		return err
	}
	if found != nil && !userAttribute(found) {
		return unsupported(reasonMutation, "%s.%s", t.typeName(), name)
	}
	in.outside++
	if _, again := t.fields[name]; !again && t.object != nil {
		in.effects = append(in.effects, &tupleFieldEffect{t, name})
	}
	in.activity++
	if t.fields == nil {
		t.fields = map[string]Value{}
	}
	t.fields[name] = value
	return nil
}

func (in *Interpreter) raiseAttributeError(owner Value, name string) error {
	return in.raiseMissingAttribute("'"+shortName(owner.typeName())+"' object has no attribute '"+name+"'", owner, name)
}

// raiseMissingAttribute raises AttributeError with the members that tell what was looked for.
func (in *Interpreter) raiseMissingAttribute(message string, owner Value, name string) error {
	exception, err := in.newException(in.builtinClass("AttributeError"), Arguments{Positional: []Value{text(message)}})
	if err != nil {
		return err
	}
	in.setMembers(exception, map[string]Value{"name": text(name), "obj": owner})
	return in.raiseInstance(exception)
}

// raiseNoName is the NameError of a name that is found nowhere.
func (in *Interpreter) raiseNoName(name string) error {
	exception, err := in.newException(in.builtinClass("NameError"), Arguments{Positional: []Value{text("name '" + name + "' is not defined")}})
	if err != nil {
		return err
	}
	in.setMembers(exception, map[string]Value{"name": text(name)})
	return in.raiseInstance(exception)
}

func (in *Interpreter) setMembers(exception *Instance, members map[string]Value) {
	for _, name := range sortedNames(members) {
		exception.exception.members[name] = members[name]
		exception.exception.writeMember(name)
	}
}

// shortName is a class's __name__ from its canonical name.
func shortName(canonical string) string {
	return canonical[strings.LastIndexByte(canonical, '.')+1:]
}

// classLookup is _PyType_Lookup: the raw attribute along the MRO, and the class that holds it.
func (in *Interpreter) classLookup(class *Class, name string) (Value, *Class, error) {
	if class.made != nil {
		return in.lookupAlong(class.made.order, name)
	}
	if value, ok := class.ownAttributes[name]; ok {
		return value, class, nil
	}
	if class.id == 0 {
		resolved, err := in.namedClass(class.name)
		if err != nil || resolved.id == 0 {
			return nil, nil, err
		}
		class = resolved
	}
	found, err := in.session.TypeLookup(class.id, name)
	if err != nil {
		return nil, nil, err
	}
	if written := in.writtenAttribute(class, name, found); written != nil {
		return written.ownAttributes[name], written, nil
	}
	if found == nil {
		return nil, nil, nil
	}
	owner, err := in.classByID(found.Owner)
	if err != nil {
		return nil, nil, err
	}
	value, err := in.classAttribute(class, owner, name, found.Value)
	return value, owner, err
}

// writtenAttribute is the class along the MRO on which the capture set an attribute that comes no later than what the host found.
func (in *Interpreter) writtenAttribute(class *Class, name string, found *trace.Lookup) *Class {
	for _, id := range class.mro {
		if base, ok := in.values[id].(*Class); ok {
			if _, written := base.ownAttributes[name]; written {
				return base
			}
		}
		if found != nil && id == found.Owner {
			return nil
		}
	}
	return nil
}

// classAttribute wraps a raw class attribute. What users define may be rebound, so it is guarded; what torch and the standard library define is not.
func (in *Interpreter) classAttribute(class, owner *Class, name string, reference trace.Reference) (Value, error) {
	if id, ok := reference.(trace.ObjectID); ok {
		d, err := in.session.Object(id)
		if err != nil {
			return nil, err
		}
		if d.Kind == "property" || d.Kind == "staticmethod" || d.Kind == "classmethod" || d.Kind == "descriptor" || !userClass(owner.name) {
			return in.realize(reference, in.objectSource(id))
		}
		in.guardUnshadowed(class, owner, name)
		if d.Kind == "function" {
			in.objectSource(in.plainClass(class, owner).id).Child("attr", name).Require(in.reason(), "is", objectWire(id))
			return in.realize(reference, in.objectSource(id))
		}
		if d.Kind == "object" || name == "__class__" {
			// It may be a descriptor, which getattr would run, or hidden by one that type itself has.
			return in.found(&Lazy{reference: reference, source: in.objectSource(owner.id).Child("dict", nil).Child("key", name)}), nil
		}
	}
	constant, _ := reference.(trace.Constant)
	if _, number := constant.Value.(int64); !userClass(owner.name) && !(number && in.writtenInPython(owner)) {
		return in.realize(reference, nil) // numbers may count what the program does, as the handles of hooks are counted
	}
	in.guardUnshadowed(class, owner, name)
	return in.found(&Lazy{reference: reference, source: in.objectSource(in.plainClass(class, owner).id).Child("attr", name)}), nil
}

// guardUnshadowed guards that no class between the one that was asked and the owner of an attribute gets one of that name, where the
// attribute is read from the owner.
func (in *Interpreter) guardUnshadowed(class, owner *Class, name string) {
	if in.plainClass(class, owner) != owner {
		return
	}
	for _, id := range class.mro {
		if id == owner.id {
			return
		}
		if between, err := in.classByID(id); err == nil && userClass(between.name) {
			in.objectSource(id).Child("dict", nil).Require(in.reason(), "absent", name)
		}
	}
}

// plainClass is the class to read an attribute from again: the one that was asked, so that an attribute set on it later is seen, or the
// owner where a metaclass might answer in its place.
func (in *Interpreter) plainClass(class, owner *Class) *Class {
	meta, err := in.metaclassOf(class)
	if err != nil || class.id == 0 || meta.name != "type" && meta.name != "abc.ABCMeta" {
		return owner
	}
	return class
}

// guardNoAttribute keeps an attribute absent from a class that a program may change.
func (in *Interpreter) guardNoAttribute(class *Class, name string) {
	if class.made != nil || !userClass(class.name) || class.isSubclassOf("torch.nn.modules.module.Module") || in.plainClass(class, nil) == nil || strings.HasPrefix(name, "__") {
		return // modules find their parameters behind a failed lookup: those are guarded themselves
	}
	meta, err := in.metaclassOf(class)
	if err != nil {
		return
	}
	if found, err := in.session.TypeLookup(meta.id, name); err == nil && found == nil {
		in.objectSource(class.id).Require(in.reason(), "no_attr", name)
	}
}

// impostor stands before the names of classes that say they are one of a library's and are not it.
const impostor = "?."

// userClass tells classes that a program may rebind attributes of from those of libraries.
func userClass(name string) bool {
	if strings.HasPrefix(name, impostor) {
		return true
	}
	for _, prefix := range []string{"torch.", "collections.", "enum.", "functools.", "contextlib.", "typing.", "abc.", "dataclasses.", "types.", "numpy."} {
		if strings.HasPrefix(name, prefix) {
			return false
		}
	}
	return strings.Contains(name, ".")
}

// namedClass resolves a builtin class known by name only.
func (in *Interpreter) namedClass(name string) (*Class, error) {
	if known := in.classes[name]; known != nil && known.id != 0 {
		return known, nil
	}
	return in.resolveClass(name)
}

func nameWire(canonical string) bytecode.Tuple { return bytecode.Tuple{"name", canonical} }

// qualifiedName puts the module before the name of a builtin type.
func qualifiedName(class string) string {
	if strings.Contains(class, ".") {
		return class
	}
	if types := typesNames[class]; types != "" {
		return "types." + types
	}
	return "builtins." + class
}

// resolveClass asks the host for a class by canonical name.
func (in *Interpreter) resolveClass(name string) (*Class, error) {
	id, err := in.findNamed(qualifiedName(name), unsupported(reasonAttribute, "type %s", name))
	if err != nil {
		return nil, err
	}
	return in.classByID(id)
}

// typesNames maps builtin types without a builtin name to their names in the module types.
var typesNames = map[string]string{"NoneType": "NoneType", "function": "FunctionType", "method": "MethodType", "cell": "CellType", "module": "ModuleType",
	"ellipsis": "EllipsisType", "NotImplementedType": "NotImplementedType", "builtin_function_or_method": "BuiltinFunctionType", "method_descriptor": "MethodDescriptorType",
	"wrapper_descriptor": "WrapperDescriptorType", "getset_descriptor": "GetSetDescriptorType", "member_descriptor": "MemberDescriptorType", "mappingproxy": "MappingProxyType",
	"generator": "GeneratorType", "method-wrapper": "MethodWrapperType"}

// classOf is type(value).
func (in *Interpreter) classOf(value Value) (*Class, error) {
	value, err := in.look(value)
	if err != nil {
		return nil, err
	}
	switch v := value.(type) {
	case *Instance:
		return v.class, nil
	case *Tensor:
		in.observeClass(v)
		if v.class != nil {
			return v.class, nil
		}
	case *Tuple:
		if v.class != nil && (v.class.id != 0 || v.class.made != nil) {
			return v.class, nil
		}
	case *Dict:
		if v.class != nil {
			return v.class, nil
		}
	case *Class:
		return in.metaclassOf(v)
	case *Opaque:
		return in.classOfOpaque(v)
	case *chosenNumber:
		return nil, v.toldApart()
	case *arrayNumber, *arrayScalar:
		return in.resolveClass(value.typeName())
	case *PythonModule:
		if v.class != nil {
			return v.class, nil
		}
	}
	return in.builtinClass(value.typeName()), nil
}

func (in *Interpreter) metaclassOf(class *Class) (*Class, error) {
	if class.made != nil {
		return class.made.metaclass, nil
	}
	if class.id != 0 {
		if d, err := in.session.Object(class.id); err == nil && d.TypeID != 0 {
			return in.classByID(d.TypeID)
		}
	}
	return in.builtinClass("type"), nil
}

// classOfObject is the class of a live object.
func (in *Interpreter) classOfObject(id trace.ObjectID) (*Class, error) {
	d, err := in.session.Object(id)
	if err != nil {
		return nil, err
	}
	return in.classByID(d.TypeID)
}

func (in *Interpreter) classOfOpaque(v *Opaque) (*Class, error) {
	d, err := in.session.Object(v.object.id)
	if err != nil {
		return nil, err
	}
	if v.object.source != nil && v.object.source.Accessor.Kind != "object" {
		v.object.source.Require(in.reason(), "type", objectWire(d.TypeID))
	}
	return in.classByID(d.TypeID)
}

// builtinClass is a builtin class by name; it is resolved only when its attributes are needed.
func (in *Interpreter) builtinClass(name string) *Class {
	if known := in.classes[name]; known != nil {
		return known
	}
	class := &Class{name: name, baseNames: builtinBases(name)}
	in.classes[name] = class
	return class
}

// bindDescriptor is the __get__ of what a class holds: functions become methods, properties run, plain values stay.
func (in *Interpreter) bindDescriptor(found, owner Value, class *Class) (Value, error) {
	found, err := in.look(found)
	if err != nil {
		return nil, err
	}
	switch v := found.(type) {
	case *Function:
		return &Method{self: owner, function: v}, nil
	case *Builtin:
		return in.bindBuiltin(v, owner)
	case *descriptorValue:
		return in.bindWrapper(v, owner, class)
	case *Instance:
		return in.bindUserDescriptor(v, owner, class)
	case *Opaque:
		return v, in.bindsNothing(v)
	}
	return found, nil
}

// bindsNothing breaks at objects of unknown kinds that are descriptors, such as an unbound super object.
func (in *Interpreter) bindsNothing(v *Opaque) error {
	if v.kind != "super" {
		return nil
	}
	return unsupported(reasonAttribute, "%s.__get__", v.kind)
}

func (in *Interpreter) bindBuiltin(v *Builtin, owner Value) (Value, error) {
	switch v.flavor {
	case "method", "wrapper":
		return &Builtin{name: v.name, self: owner, descriptor: v.object}, nil
	case "getset", "member":
		if noWeakReference(v.name, owner) {
			return none(), nil
		}
		return in.readGetset(v.name, owner)
	case "classmethod":
		class, err := in.classOf(owner)
		return &Builtin{name: v.name, self: class, descriptor: v.object, toClass: true}, err
	}
	return v, nil
}

func (in *Interpreter) bindWrapper(v *descriptorValue, owner Value, class *Class) (Value, error) {
	switch v.kind {
	case "staticmethod":
		return v.parts[0], nil
	case "classmethod":
		return in.bindClassMethod(v, class)
	case "property":
		getter, err := in.real(v.parts[0])
		if err != nil {
			return nil, err
		}
		if isNone(getter) {
			return nil, in.raisePropertyGap(v, owner, "getter")
		}
		return in.tailCall(getter, Arguments{Positional: []Value{owner}})
	}
	return v, nil
}

// bindClassMethod is classmethod.__get__: what it wraps is bound to the class as that type's own descriptors are, if it has any.
func (in *Interpreter) bindClassMethod(v *descriptorValue, class *Class) (Value, error) {
	wrapped, err := in.real(v.parts[0])
	if err != nil {
		return nil, err
	}
	switch inner := wrapped.(type) {
	case *descriptorValue:
		if inner.kind != "partial" {
			meta, err := in.metaclassOf(class)
			if err != nil {
				return nil, err
			}
			return in.bindWrapper(inner, class, meta)
		}
	case *Instance:
		getter, _, err := in.classLookup(inner.class, "__get__")
		if err != nil {
			return nil, err
		}
		if getter != nil {
			return in.tailCall(getter, Arguments{Positional: []Value{inner, class, class}})
		}
	case *Constant, *Tuple, *List, *Dict, *Set:
		return nil, unsupported(reasonOpaqueCall, "a class method of what cannot be called") // types.MethodType makes none of it
	}
	return &Method{self: class, function: v.parts[0]}, nil
}

func (in *Interpreter) bindUserDescriptor(v *Instance, owner Value, class *Class) (Value, error) {
	if tuple, ok := owner.(*Tuple); ok && v.class.name == "_collections._tuplegetter" {
		return in.namedField(v, tuple)
	}
	if v.class.name == "functools._lru_cache_wrapper" {
		return &Method{self: owner, function: v}, nil
	}
	getter, _, err := in.classLookup(v.class, "__get__")
	if err != nil || getter == nil {
		return v, err
	}
	return in.tailCall(getter, Arguments{Positional: []Value{v, owner, class}})
}

// namedField reads a field of a named tuple: its class holds a getter for each, which only tells its index when it is pickled.
func (in *Interpreter) namedField(getter *Instance, tuple *Tuple) (Value, error) {
	outcome, err := in.session.Evaluate(nameWire("_collections._tuplegetter.__reduce__"), []bytecode.Object{int64(getter.object.id)}, nil)
	if err != nil {
		return nil, err
	}
	reduced, err := in.outcomeValue(outcome)
	if err != nil {
		return nil, err
	}
	if pair, ok := reduced.(*Tuple); ok && len(pair.items) == 2 {
		if arguments, ok := pair.items[1].(*Tuple); ok && len(arguments.items) > 0 {
			if index, ok := constantInt(arguments.items[0]); ok && index >= 0 && index < int64(len(tuple.items)) {
				return tuple.items[index], nil
			}
		}
	}
	return nil, unsupported(reasonAttribute, "a field of %s", tuple.typeName())
}

// isDataDescriptor tells descriptors that come before an instance's own attributes.
func (in *Interpreter) isDataDescriptor(found Value) (bool, error) {
	found, err := in.look(found)
	if err != nil {
		return false, err
	}
	switch v := found.(type) {
	case *descriptorValue:
		return v.kind == "property", nil
	case *Builtin:
		return v.flavor == "getset" || v.flavor == "member", nil
	case *Instance:
		setter, _, err := in.classLookup(v.class, "__set__")
		return setter != nil, err
	}
	return false, nil
}

// getAttribute of a Python module.
func (v *PythonModule) getAttribute(in *Interpreter, name string) (Value, error) {
	if value := v.read[name]; value != nil {
		return value, nil
	}
	if !libraryModule(v.name) {
		namespace, err := v.namespace(in)
		if err != nil {
			return nil, err
		}
		if value, err := namespace.lookup(in, text(name)); err != nil || value != nil {
			return value, err
		}
	}
	reference, err := in.session.ModuleGet(v.id, name)
	if err != nil {
		return nil, err
	}
	if reference == nil {
		return v.computedAttribute(in, name)
	}
	if !libraryModule(v.name) { // the module's __getattr__ made it
		return in.found(&Lazy{reference: reference, source: in.objectSource(v.id).Child("attr", name)}), nil
	}
	value := in.found(&Lazy{reference: reference, source: in.objectSource(v.id).Child("dict", nil).Child("key", name)})
	v.read[name] = value
	return value, nil
}

// computedAttribute is one that a module's class or its __getattr__ gives, as torch.backends.cudnn.enabled.
func (v *PythonModule) computedAttribute(in *Interpreter, name string) (Value, error) {
	switch {
	case v.class != nil && libraryModule(v.name):
		return in.existingAttribute(&existing{v.id, v.source}, name)
	case v.class != nil:
		return nil, unsupported(reasonAttribute, "%s.%s", shortName(v.class.name), name)
	}
	namespace, err := v.namespace(in)
	if err != nil {
		return nil, err
	}
	fallback, err := namespace.lookup(in, text("__getattr__"))
	if err != nil || fallback == nil {
		if err == nil {
			err = in.raiseMissingAttribute("module '"+v.name+"' has no attribute '"+name+"'", v, name)
		}
		return nil, err
	}
	return in.tailCall(fallback, Arguments{Positional: []Value{text(name)}})
}

// namespace is the module's dict, which is also the globals of its functions.
func (v *PythonModule) namespace(in *Interpreter) (*Dict, error) {
	if v.globals == nil {
		outcome, err := in.session.GetAttribute(v.id, "__dict__")
		if err != nil {
			return nil, err
		}
		id, ok := outcome.Value.(trace.ObjectID)
		if !ok {
			return nil, unsupported(reasonAttribute, "module %s without a __dict__", v.name)
		}
		v.globals = in.globalsDict(id)
	}
	return v.globals, nil
}

// libraryModule tells modules whose attributes a program does not rebind.
func libraryModule(name string) bool {
	root, _, _ := strings.Cut(name, ".")
	switch root {
	case "torch", "math", "operator", "functools", "itertools", "collections", "builtins", "typing", "contextlib", "copy", "types", "numpy", "enum", "dataclasses", "abc", "random", "time", "os", "sys":
		return true
	}
	return false
}

func (v *PythonModule) setAttribute(in *Interpreter, name string, value Value) error {
	if libraryModule(v.name) || name == "__dict__" || name == "__class__" {
		return unsupported(reasonMutation, "module attribute %s.%s", v.name, name)
	}
	namespace, err := v.namespace(in)
	if err != nil {
		return err
	}
	if value == nil {
		if known, err := namespace.lookup(in, text(name)); err != nil || known == nil {
			if err == nil {
				err = unsupported(reasonMutation, "module attribute %s.%s", v.name, name)
			}
			return err
		}
	}
	return namespace.setItem(in, text(name), value)
}

// getAttribute of a class: metaclass data descriptors are left to Python, then the class's own MRO, then the metaclass.
func (c *Class) getAttribute(in *Interpreter, name string) (Value, error) {
	if c.made != nil {
		if value, err := c.madeAttribute(in, name); value != nil || err != nil {
			return value, err
		}
	}
	switch name {
	case "__name__":
		return in.nameOfClass(c)
	case "__class__":
		return in.metaclassOf(c)
	case "__dict__":
		if c.made == nil && c.id != 0 {
			return &classDict{c}, nil
		}
	}
	found, owner, err := in.classLookup(c, name)
	if err != nil {
		return nil, err
	}
	if found == nil {
		in.guardNoAttribute(c, name)
		return in.metaclassAttribute(c, name)
	}
	found, err = in.look(found)
	if err != nil {
		return nil, err
	}
	_ = owner
	switch v := found.(type) {
	case *descriptorValue:
		if v.kind == "staticmethod" {
			return v.parts[0], nil
		}
		if v.kind == "classmethod" {
			return in.bindClassMethod(v, c)
		}
	case *Builtin:
		if v.flavor == "classmethod" {
			return &Builtin{name: v.name, self: c, descriptor: v.object, toClass: true}, nil
		}
		if (v.flavor == "getset" || v.flavor == "member") && c.id != 0 {
			return in.plainGetAttribute(c.id, name) // a metaclass has those of type itself
		}
	case *Instance:
		if v.class.name == "functools._lru_cache_wrapper" {
			return v, nil
		}
		if getter, _, err := in.classLookup(v.class, "__get__"); err != nil || getter != nil {
			if err != nil {
				return nil, err
			}
			return in.tailCall(getter, Arguments{Positional: []Value{v, none(), c}})
		}
	}
	return found, nil
}

// plainGetAttribute asks the host for a full getattr.
func (in *Interpreter) plainGetAttribute(id trace.ObjectID, name string) (Value, error) {
	outcome, err := in.session.GetAttribute(id, name)
	if err != nil {
		return nil, err
	}
	if reference, ok := outcome.Value.(trace.ObjectID); ok && outcome.Raised == 0 && outcome.Unsupported == "" {
		return &Lazy{reference: reference, source: in.objectSource(id).Child("attr", name)}, nil
	}
	return in.outcomeValue(outcome)
}

func (in *Interpreter) metaclassAttribute(c *Class, name string) (Value, error) {
	meta, err := in.metaclassOf(c)
	if err != nil {
		return nil, err
	}
	found, _, err := in.classLookup(meta, name)
	if err != nil {
		return nil, err
	}
	if found == nil {
		fallback, _, err := in.classLookup(meta, "__getattr__")
		if err != nil || fallback == nil {
			if err == nil {
				err = in.raiseMissingAttribute("type object '"+c.baseName()+"' has no attribute '"+name+"'", c, name)
			}
			return nil, err
		}
		return in.tailCall(fallback, Arguments{Positional: []Value{c, text(name)}})
	}
	if builtin, ok := found.(*Builtin); ok && (builtin.flavor == "getset" || builtin.flavor == "member") {
		if c.id == 0 {
			if c, err = in.namedClass(c.name); err != nil {
				return nil, err
			}
		}
		return in.plainGetAttribute(c.id, name)
	}
	return in.bindDescriptor(found, c, meta)
}

// nameOfClass is __name__ of a class that lives outside the capture; a program sets that of its own classes anew, apart from __qualname__.
func (in *Interpreter) nameOfClass(c *Class) (Value, error) {
	if c.id == 0 || !userClass(c.name) {
		return text(shortName(c.name)), nil
	}
	return in.metaclassAttribute(c, "__name__")
}

// setAttribute of a class that lives outside the capture.
func (c *Class) setAttribute(in *Interpreter, name string, value Value) error {
	if c.made != nil {
		return c.setMadeAttribute(in, name, value)
	}
	meta, err := in.metaclassOf(c)
	if err != nil {
		return err
	}
	if c.id == 0 || meta.name != "type" || value == nil || strings.HasPrefix(name, "__") || !in.maySet(c, value) {
		return unsupported(reasonMutation, "class attribute %s.%s", c.name, name)
	}
	if flags, err := in.classFlags(c); err != nil {
		return err
	} else if flags&(heapTypeFlag|immutableTypeFlag) != heapTypeFlag {
		return unsupported(reasonMutation, "attribute %s of the immutable class %s", name, c.name)
	}
	in.activity++
	in.outside++
	if c.ownAttributes == nil {
		c.ownAttributes = map[string]Value{}
	}
	if _, again := c.ownAttributes[name]; !again {
		in.effects = append(in.effects, &classEffect{c, name})
	}
	c.ownAttributes[name] = value
	return nil
}

// maySet tells classes whose attributes are guarded where they are read: the program's, and of others those that count.
func (in *Interpreter) maySet(c *Class, value Value) bool {
	return userClass(c.name) || value.typeName() == "int" && in.writtenInPython(c)
}

// getAttribute of a bound method.
func (m *Method) getAttribute(in *Interpreter, name string) (Value, error) {
	switch name {
	case "__self__":
		return m.self, nil
	case "__func__":
		return m.function, nil
	}
	return in.getAttribute(m.function, name)
}

// getAttribute of a builtin function.
func (b *Builtin) getAttribute(in *Interpreter, name string) (Value, error) {
	switch name {
	case "__class__":
		return in.classOf(b)
	case "__name__":
		return text(shortName(b.name)), nil
	case "__self__":
		if b.self != nil {
			return b.self, nil
		}
	case "__call__":
		return b, nil
	}
	if b.object != nil {
		return in.plainGetAttribute(b.object.id, name)
	}
	return nil, unsupported(reasonAttribute, "%s.%s", b.name, name)
}

func (v *descriptorValue) getAttribute(in *Interpreter, name string) (Value, error) {
	if k := slices.Index(wrapperParts[v.kind], name); k >= 0 && k < len(v.parts) {
		return v.parts[k], nil
	}
	if name == "__wrapped__" && (v.kind == "staticmethod" || v.kind == "classmethod") {
		return v.parts[0], nil
	}
	if v.kind == "partial" {
		return in.partialAttribute(v, name)
	}
	return in.wrapperAttribute(v, name)
}

// wrapperAttribute reads the other attributes of a property, a class method or a static method.
func (in *Interpreter) wrapperAttribute(v *descriptorValue, name string) (Value, error) {
	if v.kind == "property" {
		switch name {
		case "getter", "setter", "deleter", "__get__":
			return &Builtin{name: "property." + name, self: v}, nil
		case "__doc__":
			if v.object == nil {
				return in.docOfProperty(v)
			}
		}
	} else if v.object == nil {
		switch name {
		case "__name__", "__qualname__", "__doc__", "__module__", "__annotations__", "__isabstractmethod__":
			return in.getAttribute(v.parts[0], name)
		case "__get__":
			return &Builtin{name: v.kind + "." + name, self: v}, nil
		}
	}
	if v.object != nil {
		return in.existingAttribute(v.object, name)
	}
	return nil, unsupported(reasonAttribute, "%s.%s", v.typeName(), name)
}

// partialAttribute reads other attributes of a partial object: a new one has only those of its class, an existing one also a __dict__.
func (in *Interpreter) partialAttribute(v *descriptorValue, name string) (Value, error) {
	class, err := in.namedClass(v.typeName())
	if err != nil {
		return nil, err
	}
	found, _, err := in.classLookup(class, name)
	if err != nil {
		return nil, err
	}
	if builtin, ok := found.(*Builtin); ok && name != "__class__" && (builtin.flavor == "getset" || builtin.flavor == "member") {
		return nil, unsupported(reasonAttribute, "functools.partial.%s", name)
	}
	if name == "__class__" {
		return class, nil
	}
	if found != nil {
		return in.bindDescriptor(found, v, class)
	}
	if v.object == nil {
		return nil, in.raise("AttributeError", "'functools.partial' object has no attribute '"+name+"'")
	}
	return in.existingAttribute(v.object, name)
}

// existingAttribute reads an attribute of a live object whose getattr runs no code of the program, and guards it.
func (in *Interpreter) existingAttribute(object *existing, name string) (Value, error) {
	outcome, err := in.session.GetAttribute(object.id, name)
	if err != nil {
		return nil, err
	}
	source := object.source
	if source == nil {
		source = in.objectSource(object.id)
	}
	if outcome.Raised != 0 {
		source.Require(in.reason(), "no_attr", name)
		return in.outcomeValue(outcome)
	}
	if outcome.Unsupported != "" || outcome.Value == nil {
		return in.outcomeValue(outcome)
	}
	return in.found(&Lazy{reference: outcome.Value, source: source.Child("attr", name)}), nil
}

func (v *LibraryValue) getAttribute(in *Interpreter, name string) (Value, error) {
	if v.id == 0 {
		resolved, err := in.resolveLibrary(v)
		if err != nil {
			return nil, err
		}
		v.id = resolved
	}
	return in.hostAttribute(v.id, name)
}

// getAttribute of an object of a kind that capture does not know: only its class can be told.
func (v *Opaque) getAttribute(in *Interpreter, name string) (Value, error) {
	if name == "__class__" {
		return in.classOfOpaque(v)
	}
	if immutableObject(v.kind) {
		return in.immutableAttribute(v, name)
	}
	return nil, unsupported(reasonAttribute, "%s.%s", v.kind, name)
}

// immutableAttribute reads an attribute of an object that never changes: a method of its class, or a value of its own.
func (in *Interpreter) immutableAttribute(v *Opaque, name string) (Value, error) {
	class, err := in.classOfOpaque(v)
	if err != nil {
		return nil, err
	}
	found, _, err := in.classLookup(class, name)
	if err != nil {
		return nil, err
	}
	builtin, isBuiltin := found.(*Builtin)
	wrapper, isWrapper := found.(*descriptorValue)
	if isBuiltin && (builtin.flavor == "member" || builtin.flavor == "getset") || isWrapper && wrapper.kind == "property" {
		value, err := in.hostAttribute(v.object.id, name)
		if err != nil {
			return nil, err
		}
		return in.proxied(value)
	}
	return in.builtinAttribute(v, name)
}

func (c *Cell) getAttribute(_ *Interpreter, name string) (Value, error) {
	if name == "cell_contents" && c.content != nil {
		return c.content, nil
	}
	return nil, unsupported(reasonAttribute, "cell.%s", name)
}
