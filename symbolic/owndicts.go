package symbolic

import (
	"fusee/guards"
	"fusee/trace"
)

// A program that holds an object's __dict__ across a break may change attributes through it. The capture goes by the object alone then: the dict
// is a way to look at it.

// ownDict notes down the dict of an object, where the host has named it before. A capture that took it for any dict starts again.
func (in *Interpreter) ownDict(d *trace.Description) error {
	id, named := trace.Field(d.Payload, "fields").(int64)
	if !named {
		return nil
	}
	in.owners[trace.ObjectID(id)] = d.ID
	if _, used := in.values[trace.ObjectID(id)].(*Dict); used {
		return &restart{}
	}
	return nil
}

// ownerOf is the object whose attributes a dict holds, 0 where it is any dict.
func (in *Interpreter) ownerOf(d *trace.Description) trace.ObjectID {
	if id, ok := d.Payload.(int64); ok && d.Kind == "fields" {
		return trace.ObjectID(id)
	}
	return in.owners[d.ID]
}

// describedFieldsDict is the dict of an object's attributes: a look at the object, which is guarded to be its owner; a dict whose owner the capture
// has not met is left to Python.
func (in *Interpreter) describedFieldsDict(owner trace.ObjectID, object *existing) (Value, error) {
	instance, known := in.values[owner].(*Instance)
	if !known || instance.object == nil || instance.object.source == nil {
		return &Opaque{object, "dict"}, nil
	}
	if source := object.source; source != nil && source.Accessor.Kind != "object" {
		in.program.Relate(in.reason(), "same", ownDictSource(instance), source)
	}
	return &fieldsDict{instance}, nil
}

func ownDictSource(instance *Instance) *guards.Source {
	return instance.object.source.Child("dict", nil)
}
