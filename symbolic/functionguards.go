package symbolic

import (
	"strings"

	"fusee/bytecode"
	"fusee/guards"
	"fusee/trace"
)

// knownByCode tells functions that a call may bring anew each time, as the closures that a function makes: those inside functions, reached
// through an argument or a cell of the captured function. A module's global stays the same object as a rule, so its identity is guarded.
func (in *Interpreter) knownByCode(d *trace.Description, source *guards.Source) bool {
	code, ok := trace.Field(d.Payload, "code").(*bytecode.Code)
	if !ok || d.Kind != "function" || trace.Text(d.Payload, "treat") != "inline" || !strings.Contains(code.QualName, "<locals>") {
		return false
	}
	if _, known := trace.Field(d.Payload, "code_object").(int64); !known || source == nil || rootOf(source).Accessor.Kind == "object" {
		return false
	}
	class, err := in.classByID(d.TypeID)
	return err == nil && class.name == "function"
}

// pinFunction guards the identity of a function after all, as something depends on more than what it does.
func (in *Interpreter) pinFunction(value Value) {
	if function, ok := value.(*Function); ok && function.byCode {
		in.pin(function.object)
	}
}

// disablingMarks are the attributes of a function that keep capture out of it: it runs in Python, or what it gives is taken for constant.
var disablingMarks = [...]string{"_fusee_disable", "_torchdynamo_disable", "_dynamo_marked_constant"}

func rootOf(source *guards.Source) *guards.Source {
	for source.Parent != nil {
		source = source.Parent
	}
	return source
}

// guardCode guards what makes a function do what it does: its code and the variables of its module. Defaults and cells are guarded where
// they are read.
func (in *Interpreter) guardCode(d *trace.Description, source *guards.Source) {
	source.Require(in.reason(), "type", objectWire(d.TypeID))
	for _, mark := range disablingMarks {
		source.Require(in.reason(), "no_field", mark)
	}
	for _, part := range [][2]string{{"__code__", "code_object"}, {"__globals__", "globals"}} {
		id, _ := trace.Field(d.Payload, part[1]).(int64)
		source.Child("attr", part[0]).Require(in.reason(), "is", bytecode.Tuple{"object", id})
	}
}

// functionParts reads the defaults and cells of a function that is guarded by its code, each from where the next function has its own.
func (in *Interpreter) functionParts(function *Function, d *trace.Description) error {
	source := function.object.source
	err := in.eachDefault(d, func(i int, item bytecode.Object) error {
		value, err := in.child(item, source.Child("attr", "__defaults__"), "item", int64(i))
		function.defaults = append(function.defaults, value)
		return err
	})
	if err != nil {
		return err
	}
	keywords, err := in.child(trace.Field(d.Payload, "kwdefaults"), source, "attr", "__kwdefaults__")
	if err != nil {
		return err
	}
	if lazy, ok := keywords.(*Lazy); ok && !isConstantReference(lazy.reference) {
		if keywords, err = in.real(lazy); err != nil {
			return err
		}
		function.keywordDefaults, _ = keywords.(*Dict)
	}
	for i, item := range trace.Items(trace.Field(d.Payload, "closure")) {
		cell, err := in.child(item, source.Child("attr", "__closure__"), "item", int64(i))
		if err != nil {
			return err
		}
		if cell, err = in.real(cell); err != nil {
			return err
		}
		function.closure = append(function.closure, cell.(*Cell))
	}
	return nil
}

func isConstantReference(reference trace.Reference) bool {
	_, constant := reference.(trace.Constant)
	return constant
}

// eachDefault goes through the items of a function's __defaults__.
func (in *Interpreter) eachDefault(d *trace.Description, visit func(int, bytecode.Object) error) error {
	reference, err := trace.ParseReference(trace.Field(d.Payload, "defaults"))
	if err != nil || isConstantReference(reference) {
		return err
	}
	tuple, err := in.session.Object(reference.(trace.ObjectID))
	if err != nil {
		return err
	}
	for i, item := range trace.Items(tuple.Payload) {
		if err := visit(i, item); err != nil {
			return err
		}
	}
	return nil
}
