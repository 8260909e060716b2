package symbolic

import (
	"slices"
	"strings"

	"fusee/trace"
)

// checkAbstract refuses instances of a class that leaves abstract methods open, as object.__new__ does.
func (in *Interpreter) checkAbstract(class *Class) error {
	if class.made == nil {
		return in.checkExistingAbstract(class)
	}
	meta, err := in.metaclassOf(class)
	if err != nil || !meta.isSubclassOf("abc.ABCMeta") {
		return err
	}
	names, err := in.abstractCandidates(class)
	if err != nil {
		return err
	}
	var open []string
	for _, name := range names {
		value, _, err := in.classLookup(class, name)
		if err != nil {
			return err
		}
		abstract, err := in.isAbstract(value)
		if err != nil {
			return err
		}
		if abstract {
			open = append(open, name)
		}
	}
	if len(open) == 0 {
		return nil
	}
	slices.Sort(open)
	return in.raise("TypeError", "Can't instantiate abstract class "+class.shortName+" with abstract method"+plural(len(open))+" "+strings.Join(open, ", "))
}

// abstractCandidates lists the names that some class along the order may leave abstract.
func (in *Interpreter) abstractCandidates(class *Class) ([]string, error) {
	var names []string
	for _, base := range class.made.order {
		own, err := in.namesOf(base)
		if err != nil {
			return nil, err
		}
		for _, name := range own {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// namesOf lists the attributes of a class of the program, and of a library's class those that it declares abstract.
func (in *Interpreter) namesOf(class *Class) ([]string, error) {
	var names []string
	if class.made == nil {
		if holds, err := in.classHolds(class, "__abstractmethods__"); err != nil || !holds {
			return nil, err
		}
		d, err := in.session.Object(class.id)
		if err != nil {
			return nil, err
		}
		for _, item := range trace.Items(trace.Field(d.Payload, "names")) {
			if name, ok := item.(string); ok {
				names = append(names, name)
			}
		}
		return names, nil
	}
	entries, err := class.made.namespace.live(in)
	for _, entry := range entries {
		if name, ok := stringOf(entry.key); ok {
			names = append(names, name)
		}
	}
	return names, err
}

// isAbstract reads __isabstractmethod__ of a method or a descriptor.
func (in *Interpreter) isAbstract(value Value) (bool, error) {
	value, err := in.real(value)
	if err != nil {
		return false, err
	}
	switch v := value.(type) {
	case *Function:
	case *descriptorValue:
		for _, part := range v.parts {
			if abstract, err := in.isAbstract(part); err != nil || abstract {
				return abstract, err
			}
		}
		return false, nil
	case *Instance:
	default:
		return false, nil
	}
	mark, err := in.optionalAttribute(value, "__isabstractmethod__")
	if err != nil || mark == nil {
		return false, err
	}
	return in.truth(mark)
}

// abstractFlag is CPython's Py_TPFLAGS_IS_ABSTRACT.
const abstractFlag = 1 << 20

// checkExistingAbstract lets the host raise the error of a class that exists.
func (in *Interpreter) checkExistingAbstract(class *Class) error {
	if class.id == 0 {
		return nil
	}
	flags, err := in.classFlags(class)
	if err != nil || flags&abstractFlag == 0 {
		return err
	}
	_, ok, err := in.evaluateConstant("object.__new__", class)
	if err == nil {
		err = unsupported(reasonOpaqueCall, "%s is abstract: %v", class.name, ok)
	}
	return err
}

// madeInstance decides isinstance and issubclass, beyond the order of lookup, where one of the classes is made during capture: abstract base
// classes may accept others.
func (in *Interpreter) madeInstance(actual, class *Class) (bool, error) {
	meta, err := in.metaclassOf(class)
	if err != nil || meta.name == "type" {
		return false, err
	}
	check, owner, err := in.classLookup(meta, "__instancecheck__")
	if err != nil || check == nil || owner.name == "type" {
		return false, err
	}
	if owner.name != "abc.ABCMeta" {
		return false, unsupported(reasonBuiltinCall, "isinstance by %s", owner.name)
	}
	if answer, known, err := in.subclassHook(actual, class); err != nil || known {
		return answer, err
	}
	if class.made != nil {
		return false, nil
	}
	order, err := in.mroOf(actual)
	if err != nil {
		return false, err
	}
	for _, base := range order {
		if base.made != nil || base.name == "object" {
			continue
		}
		accepted, err := in.virtualInstance(nil, base, class)
		if err != nil || accepted {
			return accepted, err
		}
	}
	return false, nil
}

// subclassHook asks an abstract base class's __subclasshook__; known is false where it has none or does not decide.
func (in *Interpreter) subclassHook(actual, class *Class) (answer, known bool, err error) {
	hook, owner, err := in.classLookup(class, "__subclasshook__")
	if err != nil || hook == nil || owner.name == "object" {
		return false, false, err
	}
	bound, err := in.bindToClass(hook, class)
	if err != nil {
		return false, false, err
	}
	result, err := in.call(bound, Arguments{Positional: []Value{actual}})
	if err != nil {
		return false, false, err
	}
	if isNotImplemented(result) {
		return false, false, nil
	}
	return modelled(in.truth(result))
}
