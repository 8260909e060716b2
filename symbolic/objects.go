package symbolic

import (
	"slices"
	"strings"

	"github.com/cockroachdb/errors"

	"fusee/bytecode"
	"fusee/guards"
	"fusee/internal/slice"
	"fusee/trace"
	"fusee/trace/wire"
)

func text(s string) *Constant    { return &Constant{s} }
func integer(n int64) *Constant  { return &Constant{n} }
func boolean(b bool) *Constant   { return &Constant{b} }
func none() *Constant            { return &Constant{bytecode.None} }
func notImplementedValue() Value { return &Constant{notImplemented{}} }
func objectWire(id trace.ObjectID) bytecode.Tuple {
	return bytecode.Tuple{"object", int64(id)}
}

func isNone(value Value) bool {
	constant, ok := value.(*Constant)
	return ok && constant.Value == bytecode.Object(bytecode.None)
}

// real looks into a lazy value: from here on the capture depends on it. Numbers that may differ from call to call are pinned.
func (in *Interpreter) real(value Value) (Value, error) {
	value, err := in.look(value)
	if number, ok := value.(*Number); ok {
		return in.specialise(number), nil
	}
	return value, err
}

// look is real for those who know what to do with a Number.
func (in *Interpreter) look(value Value) (Value, error) {
	value, err := in.opened(value)
	if number, ok := value.(*Number); ok {
		if constant := in.constantOf(number); constant != nil {
			return constant, nil
		}
	}
	return value, err
}

func (in *Interpreter) opened(value Value) (Value, error) {
	lazy, ok := value.(*Lazy)
	if !ok {
		return value, nil
	}
	if lazy.value == nil {
		real, err := in.realize(lazy.reference, lazy.source)
		if err != nil {
			return nil, err
		}
		lazy.value = real
	}
	return lazy.value, nil
}

// lookAll is look at each of the values.
func (in *Interpreter) lookAll(values []Value) ([]Value, error) { return slice.TryMap(values, in.look) }

// as tells whether a value is of one type.
func as[T Value](value Value, err error) (typed T, ok bool, _ error) {
	typed, ok = value.(T)
	return typed, ok && err == nil, err
}

// valuesOf are values of one type as values of any.
func valuesOf[T Value](items []T) []Value {
	return slice.Map(items, func(item T) Value { return item })
}

// realAll looks into each of the values.
func (in *Interpreter) realAll(values []Value) ([]Value, error) { return slice.TryMap(values, in.real) }

// realize turns a reference into a value. With a source the capture guards what it learns; without one the value cannot change
// (an answer of the host, a class attribute of a library).
func (in *Interpreter) realize(reference trace.Reference, source *guards.Source) (Value, error) {
	if constant, ok := reference.(trace.Constant); ok {
		if number := in.symbolicConstant(source, constant.Value); number != nil {
			return number, nil
		}
		in.guardConstant(source, constant.Value)
		return &Constant{constant.Value}, nil
	}
	id := reference.(trace.ObjectID)
	description, err := in.session.Object(id)
	if err != nil {
		return nil, err
	}
	if known := in.values[id]; known != nil {
		return known, in.guardSame(description, known, source)
	}
	value, err := in.fromDescription(description, source)
	if err != nil {
		return nil, err
	}
	in.values[id] = value
	return value, nil
}

func (in *Interpreter) guardConstant(source *guards.Source, value bytecode.Object) {
	if source == nil || source.Accessor.Kind == "object" {
		return
	}
	switch value.(type) {
	case bytecode.NoneType, bool, bytecode.EllipsisType:
		source.Require(in.reason(), "is", value)
	default:
		source.Require(in.reason(), "equals", value)
	}
}

// guardSame guards an object that was already reached another way.
func (in *Interpreter) guardSame(description *trace.Description, known Value, source *guards.Source) error {
	if source == nil || source.Accessor.Kind == "object" {
		in.pinFunction(known)
		return nil
	}
	object := objectOf(known)
	if object == nil || object.source == source {
		return nil
	}
	function, ok := known.(*Function)
	_, bound, err := in.boundOwner(description)
	if err != nil {
		return err
	}
	if object.source == nil || fixedKind(description.Kind) && !bound && !(ok && function.byCode) {
		source.Require(in.reason(), "is", objectWire(description.ID))
		return nil
	}
	in.program.Relate(in.reason(), "same", object.source, source)
	return nil
}

// fixedKind tells kinds of objects that are guarded by identity.
func fixedKind(kind string) bool {
	switch kind {
	case "function", "builtin", "descriptor", "module", "type", "dtype", "layout", "memory_format", "property", "staticmethod", "classmethod", "generator":
		return true
	}
	return false
}

// objectOf returns the link to the live object of a value, nil for values made during capture.
func objectOf(value Value) *existing {
	switch v := value.(type) {
	case *Tensor:
		if v.id != 0 {
			return &existing{v.id, v.source}
		}
	case *Tuple:
		return v.object
	case *List:
		return v.object
	case *Dict:
		return v.object
	case *Set:
		return v.object
	case *Function:
		return v.object
	case *Method:
		return v.object
	case *Builtin:
		return v.object
	case *Class:
		if v.id != 0 && v.remake == nil {
			return &existing{v.id, v.source}
		}
	case *Instance:
		return v.object
	case *PythonModule:
		return &existing{v.id, v.source}
	case *Cell:
		return v.object
	case *LibraryValue:
		if v.id != 0 {
			return &existing{v.id, v.path}
		}
	case *operatorGetter:
		return v.object
	case *descriptorValue:
		return v.object
	case *codeValue:
		return v.object
	case *Deque:
		return v.object
	case *dictView:
		return v.object
	case *heldIterator:
		return v.object
	case *Opaque:
		return v.object
	case *Array:
		return v.object
	}
	return nil
}

func (in *Interpreter) fromDescription(d *trace.Description, source *guards.Source) (Value, error) {
	object := &existing{d.ID, source}
	if source != nil && source.Accessor.Kind != "object" {
		if err := in.guardDescribed(d, source); err != nil {
			return nil, err
		}
	}
	switch d.Kind {
	case "tensor":
		return in.describedTensor(d, source)
	case "array":
		return in.describedArray(d, object)
	case "tuple", "size":
		return in.describedTuple(d, object)
	case "list":
		return in.describedList(d, object)
	case "dict", "fields":
		if owner := in.ownerOf(d); owner != 0 {
			return in.describedFieldsDict(owner, object)
		}
		return in.describedDict(d, object)
	case "set", "frozenset":
		return in.describedSet(d, object)
	case "deque":
		return in.describedDeque(d, object)
	case "dict_view":
		return in.describedView(d, object)
	case "iterator":
		return in.describedIterator(d, object)
	case "slice", "range":
		return in.describedBounds(d, object)
	case "function":
		return in.describedFunction(d, source)
	case "cell":
		return in.describedCell(d, object)
	case "method":
		return in.describedMethod(d, object)
	case "builtin", "descriptor":
		return in.describedBuiltin(d, object)
	case "type":
		return in.describedClass(d, source)
	case "module":
		name, _ := d.Payload.(string)
		return in.describedModule(d, name, object)
	case "object", "module_tree":
		return in.describedInstance(d, object)
	case "property", "staticmethod", "classmethod", "partial":
		return in.describedWrapper(d, object)
	case "dtype", "device", "layout", "memory_format", "generator":
		name, _ := d.Payload.(string)
		return &LibraryValue{kind: d.Kind, text: name, id: d.ID, path: source}, nil
	}
	return &Opaque{object, d.Kind}, nil
}

// describedModule is a module; one whose class does something of its own when attributes are read or written is left to Python.
func (in *Interpreter) describedModule(d *trace.Description, name string, object *existing) (Value, error) {
	class, err := in.subclassOf(d.TypeID, "module")
	module := &PythonModule{id: d.ID, name: name, source: object.source, class: class, read: map[string]Value{}}
	if err != nil || class == nil || !userClass(class.name) {
		return module, err
	}
	for _, hook := range []string{"__getattribute__", "__setattr__", "__delattr__"} {
		found, _, err := in.classLookup(class, hook)
		if err != nil {
			return nil, err
		}
		if _, python := found.(*Function); python {
			return &Opaque{object, class.name}, nil
		}
	}
	return module, nil
}

// guardDescribed adds the guard that makes the description's kind hold at the next call.
func (in *Interpreter) guardDescribed(d *trace.Description, source *guards.Source) error {
	_, bound, err := in.boundOwner(d)
	if err != nil {
		return err
	}
	switch {
	case d.Kind == "tensor":
		return nil // the tensor's own check says everything
	case d.Kind == "device" || d.Kind == "size" || d.Kind == "range" || d.Kind == "slice":
		source.Require(in.reason(), "equals", objectWire(d.ID))
	case in.knownByCode(d, source):
		in.guardCode(d, source)
	case bound:
		in.guardBoundBuiltin(d, source)
	case fixedKind(d.Kind):
		source.Require(in.reason(), "is", objectWire(d.ID))
	case d.Kind == "object" && (in.isEnumMember(d) || in.isImmutable(d)):
		source.Require(in.reason(), "is", objectWire(d.ID))
	case d.Kind == "opaque" && d.TypeID == 0:
		source.Require(in.reason(), "is", objectWire(d.ID))
	case d.TypeID != 0:
		source.Require(in.reason(), "type", objectWire(d.TypeID))
	default:
		return errors.Newf("object %d of kind %s has no type", d.ID, d.Kind)
	}
	return nil
}

func (in *Interpreter) isImmutable(d *trace.Description) bool {
	class, err := in.classByID(d.TypeID)
	return err == nil && immutableObject(class.name)
}

func (in *Interpreter) isEnumMember(d *trace.Description) bool {
	class, err := in.classByID(d.TypeID)
	return err == nil && class.isSubclassOf("enum.Enum")
}

func (in *Interpreter) describedTensor(d *trace.Description, source *guards.Source) (Value, error) {
	fields, ok := d.Payload.(bytecode.Tuple)
	if !ok || len(fields) < 7 {
		return nil, errors.New("a tensor's description is malformed")
	}
	meta, err := wire.ParseMeta(fields)
	if errors.Is(err, wire.ErrUnnatural) {
		return &Opaque{&existing{d.ID, source}, "tensor"}, nil
	}
	if err != nil {
		return nil, err
	}
	tensor := &Tensor{meta: meta, id: d.ID, source: source, attributes: map[string]Value{}, outer: in.wrapping}
	class, err := in.classByID(d.TypeID)
	if err != nil {
		return nil, err
	}
	if class.name != "torch.Tensor" && class.name != parameterClass {
		tensor.class = class
	}
	in.symbolicSizes(tensor, fields)
	if source != nil && marksWrapper(&tensor.meta) {
		return tensor, in.describeWrapped(tensor, objectWire(d.TypeID), fields)
	}
	if source != nil {
		source.Require(in.reason(), "tensor", objectWire(d.TypeID), checkedMeta(tensor, fields))
	}
	return tensor, nil
}

func (in *Interpreter) describedTuple(d *trace.Description, object *existing) (Value, error) {
	class, err := in.subclassOf(d.TypeID, "tuple")
	if err != nil {
		return nil, err
	}
	if d.Kind == "size" {
		tuple := &Tuple{class: &Class{name: "torch.Size", baseNames: []string{"torch.Size", "tuple", "object"}}, object: object}
		for _, item := range trace.Items(d.Payload) {
			tuple.items = append(tuple.items, &Constant{item})
		}
		return tuple, nil
	}
	if _, absent := d.Payload.(bytecode.NoneType); absent {
		return &Opaque{object, "tuple"}, nil
	}
	items := trace.Items(d.Payload)
	if object.source != nil && object.source.Accessor.Kind != "object" {
		object.source.Require(in.reason(), "len", int64(len(items)))
	}
	tuple := &Tuple{class: class, object: object}
	for i, item := range items {
		value, err := in.child(item, object.source, "item", int64(i))
		if err != nil {
			return nil, err
		}
		tuple.items = append(tuple.items, value)
	}
	return tuple, nil
}

// child wraps a reference that was found inside another object.
func (in *Interpreter) child(item bytecode.Object, parent *guards.Source, accessor string, argument bytecode.Object) (Value, error) {
	reference, err := trace.ParseReference(item)
	if err != nil {
		return nil, err
	}
	if parent == nil {
		return in.sourceless(reference), nil
	}
	return &Lazy{reference: reference, source: parent.Child(accessor, argument)}, nil
}

// sourceless wraps a reference whose object stays what it is: it is reached again through the object itself.
func (in *Interpreter) sourceless(reference trace.Reference) Value {
	if constant, ok := reference.(trace.Constant); ok {
		return &Constant{constant.Value}
	}
	return &Lazy{reference: reference, source: in.objectSource(reference.(trace.ObjectID))}
}

// objectSource reads a live object that the entry itself holds.
func (in *Interpreter) objectSource(id trace.ObjectID) *guards.Source {
	return in.program.Root(guards.Accessor{Kind: "object", Argument: int64(id)})
}

// subclassOf returns the class of an object unless it is exactly the builtin.
func (in *Interpreter) subclassOf(typeID trace.ObjectID, builtin string) (*Class, error) {
	if typeID == 0 {
		return nil, nil
	}
	class, err := in.classByID(typeID)
	if err != nil || class.name == builtin {
		return nil, err
	}
	return class, nil
}

func (in *Interpreter) describedList(d *trace.Description, object *existing) (Value, error) {
	class, err := in.subclassOf(d.TypeID, "list")
	if err != nil || class == nil {
		return &List{object: object}, err
	}
	fields, err := in.describedFields(d, class)
	if err != nil || fields == nil {
		return &Opaque{object, "list"}, err
	}
	return &Instance{class: class, object: object, fields: fields, base: &List{object: object}}, nil
}

// describedFields reads the own attributes of an instance of a class that derives from a builtin container; nil where they are not all in its
// __dict__, or where reading that runs the program's code.
func (in *Interpreter) describedFields(d *trace.Description, class *Class) (*fieldTable, error) {
	fields := newFieldTable(class.hasDict)
	for _, name := range []string{"__slots__", "__getattribute__"} {
		_, owner, err := in.classLookup(class, name)
		if err != nil || owner != nil && userClass(owner.name) {
			return nil, err
		}
	}
	if !class.hasDict {
		return fields, nil
	}
	outcome, err := in.session.GetAttribute(d.ID, "__dict__")
	if err != nil {
		return nil, err
	}
	id, ok := outcome.Value.(trace.ObjectID)
	if !ok {
		return nil, nil
	}
	attributes, err := in.session.Object(id)
	if err != nil {
		return nil, err
	}
	return fields, fields.readPairs(attributes.Payload, false)
}

// readPairs adds attributes from pairs of a name, or a reference to one, and a reference to the value.
func (t *fieldTable) readPairs(pairs bytecode.Object, slots bool) error {
	for _, item := range trace.Items(pairs) {
		pair, ok := item.(bytecode.Tuple)
		if !ok || len(pair) != 2 {
			return errors.New("an instance's attribute is malformed")
		}
		named := pair[0]
		if constant, ok := named.(bytecode.Tuple); ok && len(constant) == 1 {
			named = constant[0]
		}
		name, _ := named.(string)
		reference, err := trace.ParseReference(pair[1])
		if err != nil {
			return err
		}
		t.host[name] = reference
		t.order, t.found = append(t.order, name), append(t.found, name)
		if slots {
			t.slots[name] = true
		}
	}
	return nil
}

// libraryDictOf is libraryDict of a dict's class.
func libraryDictOf(dict *Dict) string {
	if dict.class == nil {
		return ""
	}
	return libraryDict(dict.class)
}

func (in *Interpreter) describedDict(d *trace.Description, object *existing) (Value, error) {
	class, err := in.subclassOf(d.TypeID, "dict")
	if err != nil {
		return nil, err
	}
	if class != nil && (userClass(class.name) || libraryDict(class) == "") {
		return in.describedDictInstance(d, class, object)
	}
	dict := &Dict{class: class, object: object, index: map[any]*dictEntry{}}
	if _, absent := d.Payload.(bytecode.NoneType); absent {
		dict.globals = true
	}
	return dict, nil
}

// ordered tells an OrderedDict, or an instance of a class that derives from it.
func (v *Dict) ordered() bool {
	return v.class != nil && v.class.isSubclassOf("collections.OrderedDict")
}

// libraryDict is the dict type of the standard library that a class is or derives from, "" where that is dict alone.
func libraryDict(class *Class) string {
	for _, name := range []string{"collections.OrderedDict", "collections.defaultdict", "collections.Counter"} {
		if class.isSubclassOf(name) {
			return name
		}
	}
	return ""
}

// describedDictInstance is an existing instance of a program's class that derives from a dict type, over the dict that it is.
func (in *Interpreter) describedDictInstance(d *trace.Description, class *Class, object *existing) (Value, error) {
	fields, err := in.describedFields(d, class)
	if _, absent := d.Payload.(bytecode.NoneType); err != nil || fields == nil || absent || !userClass(class.name) {
		return &Opaque{object, "dict"}, err
	}
	base := &Dict{object: object, index: map[any]*dictEntry{}, base: true}
	if library := libraryDict(class); library != "" && library != "collections.Counter" { // a Counter is a dict with methods in Python
		if base.class, err = in.namedClass(library); err != nil {
			return nil, err
		}
	}
	return &Instance{class: class, object: object, fields: fields, base: base}, nil
}

// describedView reads a view of a dict; its dict is read again through it.
func (in *Interpreter) describedView(d *trace.Description, object *existing) (Value, error) {
	parts := trace.Items(d.Payload)
	if len(parts) != 2 {
		return nil, errors.New("a view's description is malformed")
	}
	kind, _ := parts[0].(string)
	if object.source == nil {
		object.source = in.objectSource(d.ID)
	}
	mapping, err := in.child(parts[1], object.source, "viewed", nil)
	if err != nil {
		return nil, err
	}
	if mapping, err = in.real(mapping); err != nil {
		return nil, err
	}
	dict, ok := mapping.(*Dict)
	if !ok || dict.class != nil {
		return &Opaque{object, "dict_" + kind}, nil
	}
	return &dictView{dict: dict, kind: kind, object: object}, nil
}

func (in *Interpreter) describedBounds(d *trace.Description, object *existing) (Value, error) {
	items := trace.Items(d.Payload)
	if len(items) != 3 {
		return nil, errors.Newf("a %s has not three bounds", d.Kind)
	}
	bounds := make([]Value, 3)
	for i, item := range items {
		value, err := in.child(item, nil, "", nil)
		if err != nil {
			return nil, err
		}
		bounds[i] = value
	}
	if d.Kind == "slice" {
		return &SliceValue{bounds[0], bounds[1], bounds[2]}, nil
	}
	start, okStart := constantInt(bounds[0])
	stop, okStop := constantInt(bounds[1])
	step, okStep := constantInt(bounds[2])
	if !okStart || !okStop || !okStep || !countable(start, stop, step) {
		return &Opaque{object, "range"}, nil
	}
	return &Range{start, stop, step}, nil
}

func (in *Interpreter) describedCell(d *trace.Description, object *existing) (Value, error) {
	cell := &Cell{object: object}
	if object.source == nil {
		object.source = in.objectSource(d.ID)
	}
	if items := trace.Items(d.Payload); len(items) == 1 {
		content, err := in.child(items[0], object.source, "contents", nil)
		if err != nil {
			return nil, err
		}
		cell.content = content
	}
	return cell, nil
}

func (in *Interpreter) describedMethod(d *trace.Description, object *existing) (Value, error) {
	parts := trace.Items(d.Payload)
	if len(parts) != 2 {
		return nil, errors.New("a method's description is malformed")
	}
	self, err := in.child(parts[0], object.source, "attr", "__self__")
	if err != nil {
		return nil, err
	}
	function, err := in.child(parts[1], object.source, "attr", "__func__")
	if err != nil {
		return nil, err
	}
	return &Method{self, function, object}, nil
}

func (in *Interpreter) describedFunction(d *trace.Description, source *guards.Source) (*Function, error) {
	code, ok := trace.Field(d.Payload, "code").(*bytecode.Code)
	if !ok {
		return nil, errors.New("a function's description has no code")
	}
	function := &Function{code: code, name: trace.Text(d.Payload, "name"), qualname: trace.Text(d.Payload, "qualname"),
		module: trace.Text(d.Payload, "module"), treat: trace.Text(d.Payload, "treat"), treatReason: trace.Text(d.Payload, "reason"),
		object: &existing{d.ID, source}, attributes: map[string]Value{}, byCode: in.knownByCode(d, source)}
	if err := in.functionGlobals(function, d); err != nil {
		return nil, err
	}
	if function.byCode {
		return function, in.functionParts(function, d)
	}
	return function, in.functionDefaults(function, d)
}

func (in *Interpreter) functionGlobals(function *Function, d *trace.Description) error {
	id, ok := trace.Field(d.Payload, "globals").(int64)
	if !ok {
		return errors.New("a function's description has no globals")
	}
	globals := in.globalsDict(trace.ObjectID(id))
	function.globals = globals
	read, _ := trace.Field(d.Payload, "globals_read").(*bytecode.Dict)
	function.builtins = map[string]bool{}
	for _, item := range trace.Items(trace.Field(d.Payload, "builtins_read")) {
		if name, ok := item.(string); ok {
			function.builtins[name] = true
		}
	}
	if read == nil {
		return nil
	}
	for i, key := range read.Keys {
		name, _ := key.(string)
		if function.builtins[name] || globals.index[constantKey(name)] != nil {
			continue
		}
		reference, err := trace.ParseReference(read.Values[i])
		if err != nil {
			return err
		}
		in.addGlobal(globals, name, reference)
	}
	return nil
}

// globalsDict is the dict of a module's variables, read one by one.
func (in *Interpreter) globalsDict(id trace.ObjectID) *Dict {
	globals, _ := in.values[id].(*Dict)
	if globals == nil {
		globals = &Dict{object: &existing{id, nil}, index: map[any]*dictEntry{}, globals: true}
		in.values[id] = globals
	}
	return globals
}

// addGlobal makes a global variable known without depending on it yet.
func (in *Interpreter) addGlobal(globals *Dict, name string, reference trace.Reference) *dictEntry {
	source := in.globalSource(globals, name)
	entry := &dictEntry{key: text(name), value: &Lazy{reference: reference, source: source}, fromHost: true}
	globals.entries = append(globals.entries, entry)
	globals.index[constantKey(name)] = entry
	return entry
}

// globalSource reads a global variable: by name in the function's own globals, through the dict object in another module's.
func (in *Interpreter) globalSource(globals *Dict, name string) *guards.Source {
	return in.objectSource(globals.object.id).Child("key", name)
}

func (in *Interpreter) functionDefaults(function *Function, d *trace.Description) error {
	defaults, err := trace.ParseReference(trace.Field(d.Payload, "defaults"))
	if err != nil {
		return err
	}
	value, err := in.realize(defaults, nil)
	if err != nil {
		return err
	}
	if tuple, ok := value.(*Tuple); ok {
		function.defaults, function.defaultsID = tuple.items, tuple.object.id
	}
	keyword, err := trace.ParseReference(trace.Field(d.Payload, "kwdefaults"))
	if err != nil {
		return err
	}
	value, err = in.realize(keyword, nil)
	if err != nil {
		return err
	}
	if dict, ok := value.(*Dict); ok {
		function.keywordDefaults = dict
	}
	for _, item := range trace.Items(trace.Field(d.Payload, "closure")) {
		reference, err := trace.ParseReference(item)
		if err != nil {
			return err
		}
		cell, err := in.realize(reference, nil)
		if err != nil {
			return err
		}
		function.closure = append(function.closure, cell.(*Cell))
	}
	return nil
}

func (in *Interpreter) classByID(id trace.ObjectID) (*Class, error) {
	if id == 0 {
		return nil, errors.New("an object without a type")
	}
	if known, ok := in.values[id].(*Class); ok {
		return known, nil
	}
	d, err := in.session.Object(id)
	if err != nil {
		return nil, err
	}
	value, err := in.describedClass(d, in.objectSource(id))
	if err != nil {
		return nil, err
	}
	class, ok := value.(*Class)
	if !ok {
		return nil, errors.New("a type's description is malformed")
	}
	in.values[id] = class
	return class, nil
}

func (in *Interpreter) describedClass(d *trace.Description, source *guards.Source) (Value, error) {
	class := &Class{id: d.ID, name: trace.Text(d.Payload, "name"), source: source}
	for _, item := range trace.Items(trace.Field(d.Payload, "mro")) {
		id, _ := item.(int64)
		class.mro = append(class.mro, trace.ObjectID(id))
	}
	for _, item := range trace.Items(trace.Field(d.Payload, "base_names")) {
		name, _ := item.(string)
		class.baseNames = append(class.baseNames, name)
	}
	class.hasDict, _ = trace.Field(d.Payload, "dict_offset").(bool)
	in.classes[class.name] = class
	return class, nil
}

// isSubclassOf tells whether a class of that canonical name is along the MRO.
func (c *Class) isSubclassOf(name string) bool {
	return c.name == name || slices.Contains(c.baseNames, name)
}

func (in *Interpreter) describedInstance(d *trace.Description, object *existing) (Value, error) {
	class, err := in.classByID(d.TypeID)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(class.name, "operator.") {
		return in.describedGetter(class, object)
	}
	if immutableObject(class.name) {
		return &Opaque{object, class.name}, nil
	}
	if !class.hasDict && !userClass(class.name) && len(trace.Items(trace.Field(d.Payload, "slots"))) == 0 && trace.Field(d.Payload, "value") == nil {
		return &Opaque{object, class.name}, nil // an object laid out in C, such as an iterator
	}
	if err := in.ownDict(d); err != nil {
		return nil, err
	}
	instance := &Instance{class: class, object: object, module: d.Kind == "module_tree", fields: newFieldTable(class.hasDict)}
	for _, part := range []string{"dict", "slots"} {
		if err := instance.fields.readPairs(trace.Field(d.Payload, part), part == "slots"); err != nil {
			return nil, err
		}
	}
	if base := trace.Field(d.Payload, "value"); base != nil {
		reference, err := trace.ParseReference(base)
		if err != nil {
			return nil, err
		}
		if constant, ok := reference.(trace.Constant); ok {
			if object.source != nil && object.source.Accessor.Kind != "object" {
				object.source.Require(in.reason(), "equals", objectWire(d.ID))
			}
			instance.base = &Constant{constant.Value}
		}
	}
	return instance, nil
}

func newFieldTable(hasDict bool) *fieldTable {
	return &fieldTable{values: map[string]Value{}, written: map[string]bool{}, host: map[string]trace.Reference{}, slots: map[string]bool{}, hasDict: hasDict}
}

// descriptorValue is a property, staticmethod, classmethod or partial object.
type descriptorValue struct {
	kind   string
	parts  []Value
	object *existing
	doc    Value  // given to a property
	name   string // under which a class holds a property
}

func (v *descriptorValue) typeName() string {
	if v.kind == "partial" {
		return "functools.partial"
	}
	return v.kind
}

// wrapperParts names the attributes that show what a descriptor or a partial object holds.
var wrapperParts = map[string][]string{
	"property": {"fget", "fset", "fdel"}, "partial": {"func", "args", "keywords"}, "staticmethod": {"__func__"}, "classmethod": {"__func__"},
}

func (in *Interpreter) describedWrapper(d *trace.Description, object *existing) (Value, error) {
	items := []bytecode.Object{d.Payload}
	if d.Kind == "property" || d.Kind == "partial" {
		items = trace.Items(d.Payload)
	}
	names := wrapperParts[d.Kind]
	value := &descriptorValue{kind: d.Kind, object: object}
	for i, item := range items {
		if i >= len(names) {
			break
		}
		part, err := in.child(item, object.source, "attr", names[i])
		if err != nil {
			return nil, err
		}
		value.parts = append(value.parts, part)
	}
	return value, nil
}
