package symbolic

import (
	"maps"
	"slices"
	"strings"

	"fusee/bytecode"
	"fusee/guards"
)

// generator writes the code that Python runs: it loads values where they live, or builds them again.
type generator struct {
	retries  []retry
	recovery *recovery // where a call of the graph that raises is taken back
	*builder
	in       *Interpreter
	top      *Frame            // the captured function's
	parts    *breakParts       // what is written beside T
	params   []*slot           // parameters of the captured function
	captured map[int]*slot     // captured values by index
	built    map[Value]*slot   // values made once and kept
	outputs  map[*Tensor]*slot // graph outputs
	order    []*Tensor
	building map[Value]bool
	numbers  map[*Number]*slot // computed ahead of the graph
	// numberOrder lists them, operands first.
	numberOrder []*Number
	completed   map[*Function]bool
	pending     []func() error // contents of cells, filled in once the value that holds them is made
}

// cannotRebuild says that a value made during capture cannot be made again in Python; capture breaks where it was made.
type cannotRebuild struct {
	step int
	what string
}

func (c *cannotRebuild) Error() string { return "cannot rebuild " + c.what }

// load pushes a value.
func (cg *generator) load(value Value) error {
	switch v := value.(type) {
	case *Lazy:
		if v.value != nil && !identified(v.value) {
			return cg.load(v.value)
		}
		cg.loadSource(v.source)
		return nil
	case *Constant:
		if _, special := v.Value.(notImplemented); special {
			cg.placeholder("name", "builtins.NotImplemented")
		} else {
			cg.loadConst(v.Value)
		}
		return nil
	case *Number:
		cg.loadNumber(v)
		return nil
	case null:
		cg.emit(bytecode.PushNull, 0)
		return nil
	case lastInstruction:
		cg.loadConst(int64(0))
		return nil
	case *Tensor:
		if v.array {
			cg.emit(bytecode.PushNull, 0)
			cg.placeholder("helper", "tensor_of_array")
			cg.loadSource(v.source)
			cg.call(1)
			return nil
		}
		if v.id == 0 && v.class == nil && len(v.attributes) == 0 && !v.madeParameter() && !cg.in.retains(v) {
			cg.loadSlot(cg.output(v))
			return nil
		}
	case *LibraryValue:
		if v.kind != "device" {
			cg.loadLibrary(v)
			return nil
		}
		if v.path != nil {
			cg.loadSource(v.path) // an equal one may be given at the next call
			return nil
		}
	case *Cell:
		if v.free > 0 {
			free := len(cg.base.LocalsPlusNames) - len(cg.base.FreeVars()) + v.free - 1
			cg.slots[cg.emit(bytecode.LoadClosure, 0)] = cg.locals[free]
			return nil
		}
	}
	if object := objectOf(value); object != nil {
		return cg.loadExisting(object)
	}
	if kept := cg.built[value]; kept != nil {
		cg.loadSlot(kept)
		return nil
	}
	return cg.build(value)
}

// identified tells constants of which equal ones may be different objects: they are handed on as they came.
func identified(value Value) bool {
	constant, ok := value.(*Constant)
	return ok && !singleton(constant.Value)
}

func (cg *generator) loadExisting(object *existing) error {
	if object.source == nil {
		cg.placeholder("object", int64(object.id))
		return nil
	}
	cg.loadSource(object.source)
	return nil
}

// loadSource pushes what the guard program read.
func (cg *generator) loadSource(source *guards.Source) {
	if source.Parent == nil {
		switch source.Accessor.Kind {
		case "object":
			cg.placeholder("object", source.Accessor.Argument)
			return
		case "arg":
			cg.loadSlot(cg.params[source.Accessor.Argument.(int64)])
			return
		}
	}
	index := source.Wanted()
	if cg.captured[index] == nil {
		cg.captured[index] = &slot{name: ".c" + integerText(index), kind: bytecode.KindLocal, original: -1, used: true}
	}
	cg.loadSlot(cg.captured[index])
}

func (cg *generator) loadLibrary(v *LibraryValue) {
	if v.id != 0 {
		cg.placeholder("object", int64(v.id))
		return
	}
	cg.placeholder("name", "torch."+v.text)
}

// output is the variable that holds a tensor the graph computes.
func (cg *generator) output(t *Tensor) *slot {
	if cg.outputs[t] == nil {
		cg.outputs[t] = cg.temp()
		cg.order = append(cg.order, t)
	}
	return cg.outputs[t]
}

// keepBuilt stores the value on top of the stack for later uses and leaves it there.
func (cg *generator) keepBuilt(value Value) {
	s := cg.temp()
	cg.emit(bytecode.Copy, 1)
	cg.storeSlot(s)
	cg.built[value] = s
}

// build makes a value that exists only in the capture, and keeps it so that its identity holds.
func (cg *generator) build(value Value) error {
	if cg.building[value] {
		return &cannotRebuild{0, "a cycle"}
	}
	cg.building[value] = true
	err := cg.buildKept(value)
	delete(cg.building, value)
	for err == nil && len(cg.building) == 0 && len(cg.pending) > 0 {
		fill := cg.pending[0]
		cg.pending = cg.pending[1:]
		err = fill()
	}
	return err
}

func (cg *generator) buildKept(value Value) error {
	switch v := value.(type) {
	case *Tensor:
		return cg.buildTensor(v)
	case *Cell:
		return cg.buildCell(v)
	case *Instance:
		return cg.buildInstance(v)
	case *List:
		if reaches(v, v, map[Value]bool{}) {
			return cg.buildCyclicList(v)
		}
	case *Dict:
		if v.class == nil && reaches(v, v, map[Value]bool{}) {
			return cg.buildCyclicDict(v)
		}
	}
	if err := cg.buildPlain(value); err != nil {
		return err
	}
	cg.keepBuilt(value)
	return nil
}

// buildTensor takes an output of the graph and makes it an instance of its class, with the attributes that the program set.
func (cg *generator) buildTensor(v *Tensor) error {
	if err := cg.in.checkRetained(v); err != nil {
		return err
	}
	if v.madeParameter() {
		if err := cg.buildParameter(v); err != nil {
			return err
		}
	} else if v.class == nil || v.wraps() {
		cg.loadSlot(cg.output(v))
	} else {
		cg.emit(bytecode.PushNull, 0)
		cg.placeholder("name", "torch.Tensor.as_subclass")
		cg.loadSlot(cg.output(v))
		if err := cg.load(v.class); err != nil {
			return err
		}
		cg.call(2)
	}
	cg.keepBuilt(v)
	for _, name := range sortedNames(v.attributes) {
		if name == "grad" {
			if err := cg.setGradient(v); err != nil {
				return err
			}
			continue
		}
		if err := cg.callHelper("set_field", v, text(name), v.attributes[name]); err != nil {
			return err
		}
	}
	return nil
}

// setGradient writes the gradient that the program gave a new tensor.
func (cg *generator) setGradient(v *Tensor) error {
	return cg.storeAttribute(v, "grad", v.attributes["grad"])
}

// buildCyclicList makes a list that contains itself, before its items.
func (cg *generator) buildCyclicList(v *List) error {
	cg.emit(bytecode.BuildList, 0)
	cg.keepBuilt(v)
	for _, item := range v.items {
		if err := cg.load(item); err != nil {
			return err
		}
		cg.emit(bytecode.ListAppend, 1)
	}
	return nil
}

// buildCyclicDict makes a dict that contains itself, before its items.
func (cg *generator) buildCyclicDict(v *Dict) error {
	cg.emit(bytecode.BuildMap, 0)
	cg.keepBuilt(v)
	if entries := v.hashed(); entries != nil {
		return cg.callHelper("store_by_hashes", v, entries)
	}
	return cg.loadEntries(v, func() { cg.emit(bytecode.MapAdd, 1) })
}

// reaches tells whether a value made during capture leads to another one.
func reaches(from, to Value, visited map[Value]bool) bool {
	if lazy, ok := from.(*Lazy); ok {
		from = lazy.value
	}
	for _, part := range partsOf(from) {
		if part == to {
			return true
		}
		if part == nil || visited[part] {
			continue
		}
		visited[part] = true
		if reaches(part, to, visited) {
			return true
		}
	}
	return false
}

// partsOf lists the values that a value made during capture holds.
func partsOf(value Value) []Value {
	if value == nil || objectOf(value) != nil {
		return nil
	}
	switch v := value.(type) {
	case *List:
		return v.items
	case *Tuple:
		return v.items
	case *Set:
		return v.items
	case *Dict:
		var parts []Value
		for _, entry := range v.entries {
			parts = append(parts, entry.key, entry.value)
		}
		return parts
	case *Instance:
		var parts []Value
		for _, name := range v.fields.order {
			parts = append(parts, v.fields.values[name])
		}
		if v.base != nil {
			parts = append(parts, v.base)
		}
		return parts
	case *Deque:
		return v.items
	case *Method:
		return []Value{v.self, v.function}
	case *Cell:
		return []Value{v.content}
	case *Function:
		parts := slices.Concat(v.defaults, valuesOf(v.closure))
		for _, name := range sortedNames(v.attributes) {
			parts = append(parts, v.attributes[name])
		}
		return parts
	}
	return nil
}

func (cg *generator) buildPlain(value Value) error {
	switch v := value.(type) {
	case *LibraryValue:
		return cg.construct("torch.device", text(v.text)) // each call makes one of its own, as Tensor.device does
	case *Tuple:
		return cg.buildTuple(v)
	case *List:
		return cg.buildItems(v.items, bytecode.BuildList)
	case *Dict:
		return cg.buildDict(v)
	case *Set:
		return cg.buildSet(v)
	case *SliceValue:
		return cg.buildItems([]Value{v.start, v.stop, v.step}, bytecode.BuildSlice)
	case *Range:
		return cg.construct("builtins.range", integer(v.start), integer(v.stop), integer(v.step))
	case *Function:
		return cg.buildFunction(v)
	case *Method:
		return cg.construct("types.MethodType", v.function, v.self)
	case *Builtin:
		return cg.buildBuiltin(v)
	case *Class:
		return cg.buildClass(v)
	case *descriptorValue:
		return cg.buildDescriptor(v)
	case *Array:
		return cg.helper("array_of_tensor", v.tensor)
	case *arrayScalar:
		return cg.helper("scalar_of_tensor", v.tensor)
	case *arrayMethod:
		return cg.loadAttribute(v.array, v.name)
	case *inferenceMethod:
		return cg.loadAttribute(v.guard, v.name)
	case *profilerLabel:
		return cg.buildLabel(v)
	case *weakReference:
		return cg.construct("weakref.ref", v.target)
	case *inferenceGuard:
		return cg.construct(inferenceGuardClass, boolean(v.enabled)) // none is open where code is written
	case *superValue:
		return cg.construct("builtins.super", v.start, v.bound)
	case *dictView:
		return cg.method(v.dict, v.kind)
	case *fieldsDict:
		return cg.loadAttribute(v.owner, "__dict__")
	case *classDict:
		return cg.loadAttribute(v.owner, "__dict__")
	case *codeValue:
		cg.loadConst(v.code)
		return nil
	case *sequenceIterator:
		return cg.buildIterator(v)
	case *setIterator:
		return cg.buildSetIterator(v)
	case *dictIterator:
		if entries, err := v.dict.live(cg.in); err != nil || v.stale || len(entries) != len(v.keys) {
			return &cannotRebuild{v.born, v.typeName()}
		}
		return cg.helper("make_iterator", v.origin, integer(int64(v.position)))
	case *goIterator:
		return cg.buildGoIterator(v)
	case *Deque:
		return cg.construct("collections.deque", newList(v.items), v.limit())
	case *byteArray:
		return cg.construct("builtins.bytearray", &Constant{bytecode.Bytes(v.content)})
	case *operatorGetter:
		return cg.buildGetter(v)
	case *vectorised:
		return cg.construct("torch.vmap", v.function, v.inDims, v.outDims)
	case *arrayNumber:
		return cg.construct(longScalar, v.number)
	case *identityNumber:
		return cg.construct("builtins.id", v.of)
	case *mappingProxy:
		if v.born == 0 {
			return cg.construct("types.MappingProxyType", v.dict)
		}
		return &cannotRebuild{v.born, "a class"}
	case *Generator:
		return cg.buildGenerator(v)
	}
	return refused(value)
}

// buildClass loads a class that Python knows, or has a named tuple's made again.
func (cg *generator) buildClass(v *Class) error {
	if v.made != nil {
		return &cannotRebuild{v.made.born, "a class"}
	}
	if v.remake != nil {
		return cg.buildNamedTuple(v.remake)
	}
	resolved, err := cg.in.namedClass(v.name)
	if err != nil {
		return err
	}
	cg.placeholder("object", int64(resolved.id))
	return nil
}

func (cg *generator) buildDescriptor(v *descriptorValue) error {
	if v.kind == "partial" {
		return cg.helper("make_partial", v.parts...)
	}
	if err := cg.completeWrapped(v); err != nil {
		return err
	}
	parts := slices.Clone(v.parts)
	if v.doc != nil {
		parts = append(parts, v.doc)
	}
	return cg.construct("builtins."+v.kind, parts...)
}

// completeWrapped has a new function that a class or static method wraps its attributes, of which the method takes some when it is made.
func (cg *generator) completeWrapped(v *descriptorValue) error {
	function, ok := v.parts[0].(*Function)
	if v.kind == "property" || !ok || function.object != nil {
		return nil
	}
	if err := cg.load(function); err != nil {
		return err
	}
	cg.emit(bytecode.PopTop, 0)
	return cg.completeFunction(function)
}

// refused tells where a value was made that Python cannot be given.
func refused(value Value) error {
	switch v := value.(type) {
	case *addressNumber:
		return &cannotRebuild{v.born, "a number computed from id()"}
	case *compiledFunction:
		return &cannotRebuild{v.born, "a compiled function"}
	case *storageValue:
		return &cannotRebuild{v.born, "a storage"}
	case *chosenNumber:
		return &cannotRebuild{v.born, "an int or a tensor"}
	case *hookHandle:
		return &cannotRebuild{v.hook.step, "the handle of a hook"}
	case *hookNode:
		return &cannotRebuild{v.step, "what hooks of a module hang on"}
	case *tracebackValue:
		return &cannotRebuild{v.exception.exception.raisedAt, tracebackWanted}
	}
	return &cannotRebuild{0, value.typeName()}
}

func (cg *generator) buildItems(items []Value, op bytecode.Opcode) error {
	for _, item := range items {
		if err := cg.load(item); err != nil {
			return err
		}
	}
	cg.emit(op, len(items))
	return nil
}

func (cg *generator) buildTuple(v *Tuple) error {
	if v.class == nil {
		return cg.buildItems(v.items, bytecode.BuildTuple)
	}
	if v.class.name == "torch.Size" {
		return cg.construct("torch.Size", &Tuple{items: v.items})
	}
	if err := cg.helper("new_tuple", v.class, &Tuple{items: v.items}); err != nil {
		return err
	}
	return cg.setFields(v.fields)
}

// setFields writes attributes of the value on top of the stack.
func (cg *generator) setFields(fields map[string]Value) error {
	for _, name := range sortedNames(fields) {
		cg.emit(bytecode.Copy, 1)
		holder := cg.temp()
		cg.storeSlot(holder)
		cg.emit(bytecode.PushNull, 0)
		cg.placeholder("helper", "set_field")
		cg.loadSlot(holder)
		cg.loadConst(name)
		if err := cg.load(fields[name]); err != nil {
			return err
		}
		cg.call(3)
		cg.emit(bytecode.PopTop, 0)
	}
	return nil
}

func (cg *generator) buildDict(v *Dict) error {
	if err := cg.makeDict(v); err != nil {
		return err
	}
	if v.class == nil {
		return nil
	}
	holder := cg.temp()
	cg.storeSlot(holder)
	cg.emit(bytecode.PushNull, 0)
	if err := cg.load(v.class); err != nil {
		return err
	}
	arguments := 1
	if v.class.isSubclassOf("collections.defaultdict") {
		if err := cg.load(orNone(v.factory)); err != nil {
			return err
		}
		arguments = 2
	}
	cg.loadSlot(holder)
	cg.call(arguments)
	return nil
}

func (cg *generator) buildSet(v *Set) error {
	if v.code != nil {
		cg.loadConst(v.code)
		return nil
	}
	items, same := v.asBuilt()
	if !same && v.shown != 0 {
		return &cannotRebuild{v.shown, "a set whose order the program saw"}
	}
	if entries := v.hashed(items); entries != nil {
		return cg.helper("set_by_hashes", boolean(v.frozen), entries)
	}
	if v.frozen {
		return cg.construct("builtins.frozenset", newList(items))
	}
	return cg.buildItems(items, bytecode.BuildSet)
}

func (cg *generator) buildFunction(v *Function) error {
	closure := Value(none())
	if len(v.closure) > 0 {
		closure = &Tuple{items: valuesOf(v.closure)}
	}
	defaults := Value(none())
	if v.defaults != nil {
		defaults = &Tuple{items: v.defaults}
	}
	keywords := Value(none())
	if v.keywordDefaults != nil {
		keywords = v.keywordDefaults
	}
	annotations, _ := v.attributes["__annotations__"].(*Tuple)
	if annotations == nil {
		annotations = &Tuple{}
	}
	cg.pending = append(cg.pending, func() error { return cg.completeFunction(v) })
	return cg.helper("make_function", &codeValue{code: v.code}, v.globals, text(v.qualname), defaults, keywords, closure, annotations)
}

// completeFunction sets the attributes of a function, once.
func (cg *generator) completeFunction(v *Function) error {
	if cg.completed[v] {
		return nil
	}
	cg.completed[v] = true
	return cg.setFunctionAttributes(v)
}

// setFunctionAttributes writes the attributes that the program set on a function; they may lead back to it.
func (cg *generator) setFunctionAttributes(v *Function) error {
	for _, name := range v.attributeOrder {
		if err := cg.load(v.attributes[name]); err != nil {
			return err
		}
		if err := cg.load(v); err != nil {
			return err
		}
		if hidden, ok := strings.CutPrefix(name, hiddenPrefix); ok {
			cg.emitName(bytecode.LoadAttr, "__dict__")
			cg.loadConst(hidden)
			cg.emit(bytecode.StoreSubscr, 0)
			continue
		}
		cg.emitName(bytecode.StoreAttr, name)
	}
	return nil
}

func (cg *generator) buildBuiltin(v *Builtin) error {
	if v.self == nil {
		cg.placeholder("name", v.name)
		return nil
	}
	if v.toClass && v.descriptor != nil {
		// The class itself may define what super() found behind it.
		cg.emit(bytecode.PushNull, 0)
		cg.placeholder("object", int64(v.descriptor.id))
		cg.emitName(bytecode.LoadAttr, "__get__")
		return cg.passArguments([]Value{none(), v.self})
	}
	_, ofMetaclass := v.self.(*Class)
	if ofMetaclass && v.descriptor != nil || hasMethods(v.self) || hidesMethods(v.self) {
		// The instance's class may override the method, as where it was reached through super().
		cg.emit(bytecode.PushNull, 0)
		if v.descriptor != nil {
			cg.placeholder("object", int64(v.descriptor.id))
		} else {
			cg.placeholder("name", v.name)
		}
		return cg.bindDescriptor(v.self)
	}
	if err := cg.load(v.self); err != nil {
		return err
	}
	cg.emitName(bytecode.LoadAttr, shortName(v.name))
	return nil
}

// bindDescriptor binds the descriptor on the stack, below which is a null, to an instance. The type is given as well: without it CPython 3.11
// crashes on methods in C that are handed their defining class.
func (cg *generator) bindDescriptor(instance Value) error {
	cg.emitName(bytecode.LoadAttr, "__get__")
	if err := cg.load(instance); err != nil {
		return err
	}
	cg.emit(bytecode.PushNull, 0)
	cg.placeholder("name", "builtins.type")
	if err := cg.passArguments([]Value{instance}); err != nil {
		return err
	}
	cg.call(2)
	return nil
}

// hidesMethods tells values of builtin types whose class may define a method of the same name anew.
func hidesMethods(value Value) bool {
	switch v := value.(type) {
	case *Lazy:
		return v.value != nil && hidesMethods(v.value)
	case *Opaque:
		switch v.kind {
		case "list", "dict", "set", "frozenset", "tuple", "deque":
			return true // an instance of a subclass
		}
	case *Tensor:
		return v.class != nil
	case *Dict:
		return v.class != nil // also those of libraries: Counter's update is not dict's
	case *Tuple:
		return v.class != nil
	}
	return false
}

// buildCell makes the cell before its contents, which may refer to it.
func (cg *generator) buildCell(v *Cell) error {
	cg.emit(bytecode.PushNull, 0)
	cg.placeholder("name", "types.CellType")
	cg.call(0)
	cg.keepBuilt(v)
	if v.content == nil {
		return nil
	}
	cg.pending = append(cg.pending, func() error {
		if err := cg.load(v.content); err != nil {
			return err
		}
		cg.loadSlot(cg.built[v])
		cg.emitName(bytecode.StoreAttr, "cell_contents")
		return nil
	})
	return nil
}

// madeProperty tells instances of subclasses of property.
func (v *Instance) madeProperty() bool {
	_, ok := v.base.(*descriptorValue)
	return ok
}

// buildInstance makes an object without calling __init__, whose effects the capture already has.
func (cg *generator) buildInstance(v *Instance) error {
	var err error
	switch {
	case v.exception != nil && v.exception.raisedAt != 0:
		return &cannotRebuild{v.exception.raisedAt, "a raised exception"}
	case v.madeProperty():
		return &cannotRebuild{v.born, v.class.name}
	case v.base != nil:
		err = cg.helper("new_subclass", v.class, v.base)
	case v.exception != nil && v.exception.bare:
		err = cg.helper("new_exception", v.class, &Tuple{items: v.exception.arguments}, orNone(v.exception.cause), boolean(v.exception.suppressContext))
	case v.exception != nil:
		err = cg.helper("make_exception", v.class, &Tuple{items: v.exception.arguments}, orNone(v.exception.cause), boolean(v.exception.suppressContext))
	default:
		err = cg.helper("new_object", v.class)
	}
	if err != nil {
		return err
	}
	cg.keepBuilt(v)
	if v.exception != nil {
		for _, name := range v.exception.written {
			if err := cg.callHelper("set_field", v, text(name), v.exception.members[name]); err != nil {
				return err
			}
		}
	}
	for _, name := range v.fields.order {
		value := v.fields.values[name]
		if value == nil || !v.fields.written[name] {
			continue
		}
		if err := cg.callHelper("set_field", v, text(name), value); err != nil {
			return err
		}
	}
	return nil
}

func (cg *generator) buildIterator(v *sequenceIterator) error {
	position := integer(int64(v.next_))
	switch {
	case v.list != nil && v.done:
		return cg.helper("make_iterator", newList(nil), integer(0))
	case v.list != nil:
		return cg.helper("make_iterator", v.list, position)
	case v.origin != nil:
		return cg.helper("make_iterator", v.origin, position)
	}
	return cg.helper("make_iterator", &Tuple{items: v.items}, position)
}

// buildGoIterator makes a builtin iterator over what is left.
func (cg *generator) buildGoIterator(v *goIterator) error {
	if v.again == nil {
		return &cannotRebuild{v.born, v.kind}
	}
	kind, name, arguments := v.again()
	cg.emit(bytecode.PushNull, 0)
	cg.placeholder(kind, name)
	return cg.passArguments(arguments)
}

// buildNamedTuple calls collections.namedtuple again, as every call of the program does.
func (cg *generator) buildNamedTuple(arguments *Arguments) error {
	keywords, err := cg.in.newDictOf(keywordItems(arguments.Keywords))
	if err != nil {
		return err
	}
	cg.emit(bytecode.PushNull, 0)
	cg.placeholder("helper", "construct")
	cg.placeholder("name", "collections.namedtuple")
	if err := cg.loadAll(&Tuple{items: arguments.Positional}, keywords); err != nil {
		return err
	}
	cg.call(3)
	return nil
}

func (cg *generator) buildGetter(v *operatorGetter) error {
	keywords, err := cg.in.newDictOf(keywordItems(v.arguments.Keywords))
	if err != nil {
		return err
	}
	return cg.helper("construct", v.class, &Tuple{items: v.arguments.Positional}, keywords)
}

// loadAttribute reads an attribute of a value.
func (cg *generator) loadAttribute(owner Value, name string) error {
	if err := cg.load(owner); err != nil {
		return err
	}
	cg.emitName(bytecode.LoadAttr, name)
	return nil
}

// storeAttribute sets an attribute of a value.
func (cg *generator) storeAttribute(owner Value, name string, value Value) error {
	if err := cg.loadAll(value, owner); err != nil {
		return err
	}
	cg.emitName(bytecode.StoreAttr, name)
	return nil
}

// loadAll pushes values in their order.
func (cg *generator) loadAll(values ...Value) error {
	for _, value := range values {
		if err := cg.load(value); err != nil {
			return err
		}
	}
	return nil
}

// construct calls an object of a library by canonical name.
func (cg *generator) construct(name string, arguments ...Value) error {
	cg.emit(bytecode.PushNull, 0)
	cg.placeholder("name", name)
	return cg.passArguments(arguments)
}

// helper calls a function of fusee._helpers and leaves its result.
func (cg *generator) helper(name string, arguments ...Value) error {
	cg.emit(bytecode.PushNull, 0)
	cg.placeholder("helper", name)
	return cg.passArguments(arguments)
}

// discard drops what written code left on the stack.
func (cg *generator) discard(err error) error {
	if err == nil {
		cg.emit(bytecode.PopTop, 0)
	}
	return err
}

// callHelper calls a helper for its effect.
func (cg *generator) callHelper(name string, arguments ...Value) error {
	return cg.discard(cg.helper(name, arguments...))
}

func (cg *generator) passArguments(arguments []Value) error {
	if err := cg.loadAll(arguments...); err != nil {
		return err
	}
	cg.call(len(arguments))
	return nil
}

func (cg *generator) method(owner Value, name string) error {
	cg.emit(bytecode.PushNull, 0)
	if err := cg.load(owner); err != nil {
		return err
	}
	cg.emitName(bytecode.LoadAttr, name)
	cg.call(0)
	return nil
}

func sortedNames(table map[string]Value) []string {
	return slices.Sorted(maps.Keys(table))
}
