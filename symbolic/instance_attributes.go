package symbolic

import (
	"slices"
	"strings"

	"fusee/trace"
)

// getAttribute of an instance of a Python class: __getattribute__, data descriptors, own attributes, other class attributes, __getattr__.
func (v *Instance) getAttribute(in *Interpreter, name string) (Value, error) {
	custom, _, err := in.classLookup(v.class, "__getattribute__")
	if err != nil {
		return nil, err
	}
	if custom, err = in.real(custom); err != nil {
		return nil, err
	}
	if function, ok := custom.(*Function); ok {
		return in.attributeOrFallback(v, name, func() (Value, error) {
			return in.tailCall(function, Arguments{Positional: []Value{v, text(name)}})
		})
	}
	if v.isThreadLocal() {
		return in.threadAttribute(v, name)
	}
	switch hook := custom.(type) {
	case *Builtin:
		if !plainAttributes(hook.name) {
			return nil, unsupported(reasonUserAttribute, "%s", hook.name)
		}
	case *Instance, *descriptorValue:
		return in.attributeOrFallback(v, name, func() (Value, error) { return in.callBound(hook, v, text(name)) })
	}
	return in.attributeOrFallback(v, name, func() (Value, error) { return in.genericGetAttribute(v, name) })
}

// isThreadLocal tells a plain threading.local, whose attributes are those of the running thread.
func (v *Instance) isThreadLocal() bool { return v.class.name == "_thread._local" && v.object != nil }

// threadAttribute reads an attribute of a threading.local, in whatever thread the call runs.
func (in *Interpreter) threadAttribute(v *Instance, name string) (Value, error) {
	switch name {
	case "__class__":
		return v.class, nil
	case "__dict__":
		return &fieldsDict{v}, nil
	}
	if value, known := v.fields.values[name]; value != nil {
		return value, nil
	} else if known {
		return nil, in.raiseAttributeError(v, name)
	}
	if strings.HasPrefix(name, "__") {
		return nil, unsupported(reasonAttribute, "_thread._local.%s", name)
	}
	value, err := in.existingAttribute(v.object, name)
	if err == nil {
		v.fields.values[name] = value
		v.fields.host[name] = nil // it is there, wherever the running thread keeps it
	}
	return value, err
}

// threadField is a key of a threading.local's __dict__; nil where the running thread has none of that name.
func (in *Interpreter) threadField(v *Instance, name string) (Value, error) {
	value, err := in.threadAttribute(v, name)
	if isRaised(err, "AttributeError") {
		return nil, nil
	}
	return value, err
}

// attributeOrFallback is slot_tp_getattr_hook: where reading raises AttributeError, a class's __getattr__ is asked.
func (in *Interpreter) attributeOrFallback(v *Instance, name string, read func() (Value, error)) (Value, error) {
	tail := in.tail
	in.tail = tail.asking(v.class)
	value, err := read()
	if !isRaised(err, "AttributeError") {
		return value, err
	}
	fallback, _, lookupErr := in.classLookup(v.class, "__getattr__")
	if lookupErr != nil || fallback == nil {
		if lookupErr == nil {
			lookupErr = err
		}
		return nil, lookupErr
	}
	if value, handled, err := in.moduleAttribute(v, fallback, name); handled || err != nil {
		return value, err
	}
	in.tail = tail
	if fallback, err = in.real(fallback); err != nil {
		return nil, err
	}
	if _, plain := fallback.(*Function); !plain {
		in.tail = nil
		return in.callBound(fallback, v, text(name))
	}
	return in.tailCall(fallback, Arguments{Positional: []Value{v, text(name)}})
}

// callBound calls a special method of a class that may be any descriptor, such as an object with a __get__.
func (in *Interpreter) callBound(method Value, owner *Instance, arguments ...Value) (Value, error) {
	bound, err := in.bindDescriptor(method, owner, owner.class)
	if err != nil {
		return nil, err
	}
	return in.call(bound, Arguments{Positional: arguments})
}

// moduleAttribute answers nn.Module.__getattr__ directly: parameters, buffers and submodules are found in their dicts.
func (in *Interpreter) moduleAttribute(v *Instance, fallback Value, name string) (Value, bool, error) {
	fallback, err := in.real(fallback)
	if err != nil {
		return nil, false, err
	}
	function, ok := fallback.(*Function)
	if !ok || function.module != "torch.nn.modules.module" || function.qualname != "Module.__getattr__" {
		return nil, false, nil
	}
	for _, part := range []string{"_parameters", "_buffers", "_modules"} {
		table, err := v.field(in, part)
		if err != nil {
			return nil, false, err
		}
		if table, err = in.real(table); err != nil {
			return nil, false, err
		}
		dict, ok := table.(*Dict)
		if !ok {
			return nil, false, nil
		}
		if found, err := dict.lookup(in, text(name)); err != nil || found != nil {
			return found, true, err
		}
	}
	return nil, true, in.raise("AttributeError", "'"+shortName(v.class.name)+"' object has no attribute '"+name+"'")
}

// genericGetAttribute is object.__getattribute__.
func (in *Interpreter) genericGetAttribute(v *Instance, name string) (Value, error) {
	switch name {
	case "__class__":
		if _, owner, err := in.classLookup(v.class, name); err != nil {
			return nil, err
		} else if owner == nil || !userClass(owner.name) {
			return v.class, nil
		}
	case "__dict__":
		if v.fields.hasDict {
			return &fieldsDict{v}, nil
		}
	}
	if v.exception != nil {
		if hidden, err := in.ownsExceptionAttribute(v.class, name); err != nil {
			return nil, err
		} else if !hidden {
			if value, err := v.exceptionAttribute(in, name); value != nil || err != nil {
				return value, err
			}
		}
	}
	found, _, err := in.classLookup(v.class, name)
	if err != nil {
		return nil, err
	}
	if found != nil {
		data, err := in.isDataDescriptor(found)
		if err != nil {
			return nil, err
		}
		writeOnly, err := in.isWriteOnly(found)
		if err != nil {
			return nil, err
		}
		if data && !in.isSlot(found) && !writeOnly {
			return in.bindDescriptor(found, v, v.class)
		}
	}
	own, err := v.field(in, name)
	if err != nil || own != nil {
		return own, err
	}
	if found == nil || in.isSlot(found) {
		if found == nil {
			in.guardNoAttribute(v.class, name)
		}
		return nil, in.raiseAttributeError(v, name)
	}
	return in.bindDescriptor(found, v, v.class)
}

// isWriteOnly tells a user's descriptor without __get__, which leaves reading to the instance's own attributes.
func (in *Interpreter) isWriteOnly(found Value) (bool, error) {
	descriptor, ok, err := as[*Instance](in.look(found))
	if err != nil || !ok {
		return false, err
	}
	getter, _, err := in.classLookup(descriptor.class, "__get__")
	return getter == nil, err
}

func (in *Interpreter) isSlot(found Value) bool {
	builtin, ok := found.(*Builtin)
	return ok && builtin.flavor == "member"
}

// field reads an instance's own attribute; nil when it has none of that name.
func (v *Instance) field(in *Interpreter, name string) (Value, error) {
	table := v.fields
	if value, known := table.values[name]; known {
		return value, nil
	}
	if v.isThreadLocal() {
		return in.threadField(v, name)
	}
	reference, present := table.host[name]
	if !present {
		if v.object != nil && v.object.source != nil && (table.hasDict || table.slots[name]) && !v.frozenEnum() {
			v.object.source.Require(in.reason(), "no_field", name)
		}
		return nil, nil
	}
	value := in.fieldValue(v, name, reference)
	table.values[name] = value
	return value, nil
}

func (v *Instance) frozenEnum() bool { return v.class.isSubclassOf("enum.Enum") }

func (in *Interpreter) fieldValue(v *Instance, name string, reference trace.Reference) Value {
	if v.object == nil || v.object.source == nil {
		return in.sourceless(reference)
	}
	if v.frozenEnum() {
		return in.sourceless(reference)
	}
	kind := "field"
	if v.fields.slots[name] {
		kind = "attr"
	}
	return in.found(&Lazy{reference: reference, source: v.object.source.Child(kind, name)})
}

// setAttribute of an instance: __setattr__, data descriptors, then its own attributes.
func (v *Instance) setAttribute(in *Interpreter, name string, value Value) error {
	hook := "__setattr__"
	arguments := []Value{v, text(name), value}
	if value == nil {
		hook, arguments = "__delattr__", arguments[:2]
	}
	custom, _, err := in.classLookup(v.class, hook)
	if err != nil {
		return err
	}
	if custom, err = in.real(custom); err != nil {
		return err
	}
	if function, ok := custom.(*Function); ok && !in.plainModuleWrite(v, function, name, value) {
		_, err := in.tailCall(function, Arguments{Positional: arguments})
		return err
	}
	if v.isThreadLocal() && !strings.HasPrefix(name, "__") {
		return in.setThreadAttribute(v, name, value)
	}
	if builtin, ok := custom.(*Builtin); ok && !plainAttributes(builtin.name) {
		return unsupported(reasonMutation, "%s", builtin.name)
	}
	switch custom.(type) {
	case *Instance, *descriptorValue:
		return unsupported(reasonMutation, "%s of %s", hook, v.typeName())
	}
	return in.genericSetAttribute(v, name, value)
}

// setThreadAttribute writes or deletes an attribute of a threading.local for the running thread.
func (in *Interpreter) setThreadAttribute(v *Instance, name string, value Value) error {
	if value == nil {
		if _, err := in.threadAttribute(v, name); err != nil {
			return err
		}
	}
	in.writeField(v, name, value)
	return nil
}

// plainAttributes tells the methods written in C that read or write an attribute as object's own do.
func plainAttributes(name string) bool {
	owner, method, _ := strings.Cut(name, ".__")
	switch method {
	case "getattribute__", "setattr__", "delattr__":
		return !strings.Contains(owner, ".") && owner != "type" && owner != "super" && owner != "module"
	}
	return false
}

// plainModuleWrite tells when nn.Module.__setattr__ would only store the value: its parameter, module and buffer tables are not concerned.
func (in *Interpreter) plainModuleWrite(v *Instance, function *Function, name string, value Value) bool {
	_, constant := value.(*Constant)
	if function.qualname != "Module.__setattr__" || function.module != "torch.nn.modules.module" || !constant && !isNumber(value) {
		return false
	}
	_, own := v.fields.host[name]
	return own || v.fields.values[name] != nil
}

// genericSetAttribute is object.__setattr__.
func (in *Interpreter) genericSetAttribute(v *Instance, name string, value Value) error {
	if name == "__class__" || name == "__dict__" {
		return unsupported(reasonMutation, "%s.%s", v.typeName(), name)
	}
	if v.exception != nil {
		if hidden, err := in.ownsExceptionAttribute(v.class, name); err != nil {
			return err
		} else if !hidden {
			if done, err := v.setExceptionAttribute(in, name, value); done || err != nil {
				return err
			}
		}
	}
	found, _, err := in.classLookup(v.class, name)
	if err != nil {
		return err
	}
	if found != nil {
		if found, err = in.real(found); err != nil {
			return err
		}
		if done, err := in.setThroughDescriptor(found, v, value); done || err != nil {
			return err
		}
	}
	slot := found != nil && in.isSlot(found)
	if !slot && !v.fields.hasDict {
		return in.raiseNoField(v, name, found != nil)
	}
	if slot {
		v.fields.slots[name] = true
	}
	if value == nil {
		own, err := v.field(in, name)
		if err != nil {
			return err
		}
		if own == nil {
			return in.raiseNotDeleted(v, name, slot)
		}
	}
	in.writeField(v, name, value)
	return nil
}

// raiseNoField is the AttributeError of an attribute that an instance has no place for; unlike that of reading it does not say in its
// members what was looked for.
func (in *Interpreter) raiseNoField(v *Instance, name string, readOnly bool) error {
	if readOnly {
		return in.raise("AttributeError", "'"+shortName(v.class.name)+"' object attribute '"+name+"' is read-only")
	}
	return in.raise("AttributeError", "'"+shortName(v.class.name)+"' object has no attribute '"+name+"'")
}

// raiseNotDeleted is the AttributeError of deleting what is not there; a slot's says nothing but the name (PyMember_SetOne).
func (in *Interpreter) raiseNotDeleted(v *Instance, name string, slot bool) error {
	if slot {
		return in.raise("AttributeError", name)
	}
	return in.raiseNoField(v, name, false)
}

// setThroughDescriptor runs a property's setter or a user's __set__; done is false where the class has no data descriptor for the name.
func (in *Interpreter) setThroughDescriptor(found Value, owner *Instance, value Value) (bool, error) {
	switch d := found.(type) {
	case *descriptorValue:
		if d.kind != "property" {
			return false, nil
		}
		return true, in.setProperty(d, owner, value)
	case *Builtin:
		if d.flavor == "getset" {
			return true, unsupported(reasonMutation, "%s", d.name)
		}
	case *Instance:
		hook, counterpart, arguments := "__set__", "__delete__", []Value{d, owner, value}
		if value == nil {
			hook, counterpart, arguments = counterpart, hook, arguments[:2]
		}
		setter, _, err := in.classLookup(d.class, hook)
		if err != nil {
			return false, err
		}
		if setter == nil {
			other, _, err := in.classLookup(d.class, counterpart)
			if err != nil || other == nil {
				return false, err
			}
			return true, in.raise("AttributeError", hook) // with one of the two, CPython asks for either
		}
		_, err = in.tailCall(setter, Arguments{Positional: arguments})
		return true, err
	}
	return false, nil
}

func (in *Interpreter) setProperty(d *descriptorValue, owner *Instance, value Value) error {
	part, arguments := 1, []Value{owner, value}
	if value == nil {
		part, arguments = 2, arguments[:1]
	}
	setter, err := in.real(d.parts[part])
	if err != nil {
		return err
	}
	if isNone(setter) {
		return in.raisePropertyGap(d, owner, []string{"getter", "setter", "deleter"}[part])
	}
	_, err = in.tailCall(setter, Arguments{Positional: arguments})
	return err
}

// writeField stores an own attribute and records it as a side effect when the object outlives the capture.
func (in *Interpreter) writeField(v *Instance, name string, value Value) {
	in.activity++
	table := v.fields
	old, known := table.values[name]
	_, host := table.host[name]
	anew := known && old == nil && value != nil && table.written[name] // deleted before
	if anew {
		table.order = slices.DeleteFunc(table.order, func(other string) bool { return other == name })
	}
	if anew || !host && old == nil {
		table.order = append(table.order, name)
	}
	table.values[name] = value
	if v.object != nil {
		in.outside++
	}
	if anew || !table.written[name] {
		table.written[name] = true
		if anew {
			in.deleteAtEarlierEffect(v, name)
		}
		if v.object != nil {
			in.effects = append(in.effects, &fieldEffect{owner: v, name: name, again: anew})
		}
	}
}

// deleteAtEarlierEffect lets the effects that wrote an attribute before delete it.
func (in *Interpreter) deleteAtEarlierEffect(v *Instance, name string) {
	for _, e := range in.effects {
		if earlier, ok := e.(*fieldEffect); ok && earlier.owner == v && earlier.name == name {
			earlier.deleted = true
		}
	}
}
