package symbolic

import (
	"fusee/bytecode"
	"fusee/guards"
	"fusee/trace"
)

// boundOwner is what a builtin method is bound to, unless the method is a function of a module or a library's own object.
//
// Reading such a method makes a new object each time, so that its parts are guarded: an identity would hold for no other call, and would keep
// what the method is bound to alive.
func (in *Interpreter) boundOwner(d *trace.Description) (trace.Reference, bool, error) {
	if d.Kind != "builtin" {
		return nil, false, nil
	}
	reference, err := trace.ParseReference(trace.Field(d.Payload, "self"))
	if err != nil || reference == (trace.Constant{Value: bytecode.None}) {
		return nil, false, err
	}
	class, err := in.ownerClass(reference)
	if err != nil || class == nil {
		return nil, false, err
	}
	found, _, err := in.classLookup(class, shortName(trace.Text(d.Payload, "name")))
	_, method := found.(*Builtin)
	return reference, method, err
}

// ownerClass is the class of what a builtin method is bound to; nil for classes, whose methods are theirs for good.
func (in *Interpreter) ownerClass(reference trace.Reference) (*Class, error) {
	if constant, ok := reference.(trace.Constant); ok {
		return in.builtinClass(constantTypeName(constant.Value)), nil
	}
	owner, err := in.session.Object(reference.(trace.ObjectID))
	if err != nil || owner.Kind == "type" || owner.TypeID == 0 {
		return nil, err
	}
	return in.classByID(owner.TypeID)
}

// guardBoundBuiltin guards the type and the name of a builtin method; what it is bound to is guarded where the method is described.
func (in *Interpreter) guardBoundBuiltin(d *trace.Description, source *guards.Source) {
	source.Require(in.reason(), "type", objectWire(d.TypeID))
	source.Child("attr", "__name__").Require(in.reason(), "equals", shortName(trace.Text(d.Payload, "name")))
}

func (in *Interpreter) describedBuiltin(d *trace.Description, object *existing) (Value, error) {
	value := &Builtin{name: trace.Text(d.Payload, "name"), flavor: trace.Text(d.Payload, "flavor"), object: object}
	_, bound, err := in.boundOwner(d)
	if err != nil {
		return nil, err
	}
	if _, isObject := trace.Field(d.Payload, "self").(int64); !isObject && !bound {
		return value, nil
	}
	value.self, err = in.child(trace.Field(d.Payload, "self"), object.source, "attr", "__self__")
	if err == nil && bound {
		_, err = in.real(value.self)
	}
	return value, err
}
