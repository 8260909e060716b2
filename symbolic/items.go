package symbolic

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"fusee/bytecode"
	"fusee/trace"
)

func (in *Interpreter) binarySubscript(f *Frame) error {
	key, owner := f.pop(), f.pop()
	in.tail = &adapter{}
	return in.pushResult(f)(in.getItem(owner, key))
}

// getItem is PyObject_GetItem.
func (in *Interpreter) getItem(owner, key Value) (Value, error) {
	owner, err := in.real(owner)
	if err != nil {
		return nil, err
	}
	switch o := owner.(type) {
	case *Tensor:
		return in.torchCall("operator.getitem", Arguments{Positional: []Value{o, key}})
	case *Tuple:
		if hasMethods(o) {
			if found, holder, err := in.classLookup(o.class, "__getitem__"); err != nil || holder != nil && holder.name != "tuple" {
				if err != nil {
					return nil, err
				}
				return in.tailCall(found, Arguments{Positional: []Value{o, key}})
			}
		}
		return in.sequenceItem("tuple", o.items, key, sizeClass(o, o))
	case *List:
		items, err := o.contents(in)
		if err != nil {
			return nil, err
		}
		return in.sequenceItem("list", items, key, nil)
	case *Dict:
		return in.dictItem(o, key)
	case indexable:
		return o.getItem(in, key)
	case *Constant:
		return in.evaluated("operator.getitem", o, key)
	case *Instance:
		return in.instanceItem(o, key)
	case *Class:
		return in.classItem(o, key)
	case *Opaque:
		return nil, unsupported(reasonItem, "%s[...]", o.kind)
	}
	return nil, in.raise("TypeError", "'"+shortName(owner.typeName())+"' object is not subscriptable")
}

func (in *Interpreter) instanceItem(o *Instance, key Value) (Value, error) {
	if strings.HasPrefix(o.class.name, "typing.") && o.object != nil {
		return in.genericAlias(o, key)
	}
	method, err := in.neededMethod(o.class, "__getitem__", o, "is not subscriptable")
	if err != nil {
		return nil, err
	}
	return in.tailCall(method, Arguments{Positional: []Value{key}})
}

// classItem is cls[key]: a metaclass's __getitem__ (an enum by name), or __class_getitem__.
func (in *Interpreter) classItem(c *Class, key Value) (Value, error) {
	meta, err := in.metaclassOf(c)
	if err != nil {
		return nil, err
	}
	method, err := in.specialMethod(meta, "__getitem__", c)
	if err != nil {
		return nil, err
	}
	if method != nil {
		return in.tailCall(method, Arguments{Positional: []Value{key}})
	}
	hook, owner, err := in.classLookup(c, "__class_getitem__")
	if err != nil {
		return nil, err
	}
	if owner == nil {
		return nil, in.raise("TypeError", "type '"+shortName(c.name)+"' is not subscriptable")
	}
	if userClass(owner.name) {
		bound, err := in.bindToClass(hook, c)
		if err != nil {
			return nil, err
		}
		return in.tailCall(bound, Arguments{Positional: []Value{key}})
	}
	return in.genericAlias(c, key)
}

// genericAlias is a type hint such as list[int]: an immutable object that the host makes.
func (in *Interpreter) genericAlias(origin, key Value) (Value, error) {
	value, ok, err := in.evaluateConstant("operator.getitem", origin, key)
	if err == nil && !ok {
		err = unsupported(reasonItem, "%s[...]", origin.typeName())
	}
	return value, err
}

// sequenceItem indexes known items by an int or a slice.
func (in *Interpreter) sequenceItem(kind string, items []Value, key Value, class *Class) (Value, error) {
	key, err := in.real(key)
	if err != nil {
		return nil, err
	}
	if slice, ok := key.(*SliceValue); ok {
		positions, err := in.slicePositions(slice, len(items))
		if err != nil {
			return nil, err
		}
		picked := make([]Value, len(positions))
		for k, position := range positions {
			picked[k] = items[position]
		}
		if kind == "list" {
			return newList(picked), nil
		}
		return &Tuple{items: picked, class: class}, nil
	}
	position, err := in.position(kind, key, len(items))
	if err != nil {
		return nil, err
	}
	if position < 0 || position >= int64(len(items)) {
		return nil, in.raise("IndexError", kind+" index out of range")
	}
	return items[position], nil
}

// getItem computes an item; a slice of a range is a range.
func (r *Range) getItem(in *Interpreter, key Value) (Value, error) {
	key, err := in.real(key)
	if err != nil {
		return nil, err
	}
	if slice, ok := key.(*SliceValue); ok {
		indices, err := in.sliceIndices(slice, int(r.count()))
		if err != nil {
			return nil, err
		}
		return &Range{r.start + indices.start*r.step, r.start + indices.stop*r.step, r.step * indices.step}, nil
	}
	position, err := in.position("range", key, int(r.count()))
	if err != nil {
		return nil, err
	}
	if position < 0 || position >= r.count() {
		return nil, in.raise("IndexError", "range object index out of range")
	}
	return integer(r.start + position*r.step), nil
}

func (in *Interpreter) position(kind string, key Value, length int) (int64, error) {
	if _, isInstance := key.(*Instance); !isInstance && !isTensor(key) {
		if _, isInt := constantInt(key); !isInt && key.typeName() != "int" {
			return 0, in.raise("TypeError", kind+" indices must be integers or slices, not "+shortName(key.typeName()))
		}
	}
	index, err := in.indexValue(key)
	if err != nil {
		return 0, err
	}
	position, fits := constantInt(index)
	if !fits {
		if constant, ok := index.(*Constant); ok && constantTypeName(constant.Value) == "int" {
			return 0, in.raise("IndexError", "cannot fit 'int' into an index-sized integer")
		}
		return in.intArgument(index)
	}
	if position < 0 {
		position += int64(length)
	}
	return position, nil
}

// slicePositions lists the indices that a slice picks.
func (in *Interpreter) slicePositions(s *SliceValue, length int) ([]int, error) {
	indices, err := in.sliceIndices(s, length)
	if err != nil {
		return nil, err
	}
	positions := []int{}
	step := min(max(indices.step, -int64(length)-1), int64(length)+1) // no wider step picks anything else, and none overflows
	for k := indices.start; step > 0 && k < indices.stop || step < 0 && k > indices.stop; k += step {
		positions = append(positions, int(k))
	}
	return positions, nil
}

// sliceIndices fits a slice to a length (PySlice_AdjustIndices).
func (in *Interpreter) sliceIndices(s *SliceValue, length int) (*Range, error) {
	step, err := in.sliceBound(s.step, 1)
	if err != nil {
		return nil, err
	}
	if step == 0 {
		return nil, in.raise("ValueError", "slice step cannot be zero")
	}
	n := int64(length)
	low, high, first, last := int64(0), n, int64(0), n
	if step < 0 {
		low, high, first, last = -1, n-1, n-1, -1
	}
	start, err := in.clampedBound(s.start, first, n, low, high)
	if err != nil {
		return nil, err
	}
	stop, err := in.clampedBound(s.stop, last, n, low, high)
	if err != nil {
		return nil, err
	}
	return &Range{start, stop, step}, nil
}

func (in *Interpreter) sliceBound(bound Value, absent int64) (int64, error) {
	bound, err := in.real(bound)
	if err != nil || isNone(bound) {
		return absent, err
	}
	return in.sliceIndex(bound)
}

// sliceIndex reads an index of which only the direction counts where it is huge (_PyEval_SliceIndex).
func (in *Interpreter) sliceIndex(value Value) (int64, error) {
	index, err := in.indexValue(value)
	if err != nil {
		return 0, err
	}
	if constant, ok := index.(*Constant); ok {
		if huge, ok := constant.Value.(*big.Int); ok && huge.Sign() < 0 {
			return -math.MaxInt64, nil
		} else if ok {
			return math.MaxInt64, nil
		}
	}
	return in.intArgument(index)
}

func (in *Interpreter) clampedBound(bound Value, absent, length, low, high int64) (int64, error) {
	bound, err := in.real(bound)
	if err != nil {
		return 0, err
	}
	if isNone(bound) {
		return absent, nil
	}
	position, err := in.sliceIndex(bound)
	if err != nil {
		return 0, err
	}
	if position < 0 {
		position += length
	}
	return min(max(position, low), high), nil
}

// setItem is PyObject_SetItem, and PyObject_DelItem for a nil value.
func (in *Interpreter) setItem(owner, key, value Value) error {
	owner, err := in.real(owner)
	if err != nil {
		return err
	}
	switch o := owner.(type) {
	case *Tensor:
		if value == nil {
			return in.raise("TypeError", "Tensor does not support deleting items")
		}
		_, err := in.torchCall("operator.setitem", Arguments{Positional: []Value{o, key, value}})
		return err
	case *List:
		return in.setListItem(o, key, value)
	case *Dict:
		return in.setDictItem(o, key, value)
	case itemWriter:
		return o.setItem(in, key, value)
	case *Instance:
		return in.setInstanceItem(o, key, value)
	case *Opaque:
		return unsupported(reasonItem, "%s[...] = ...", o.kind)
	}
	return in.raise("TypeError", "'"+shortName(owner.typeName())+"' object does not support item assignment")
}

func (in *Interpreter) setInstanceItem(o *Instance, key, value Value) error {
	name, arguments := "__setitem__", []Value{key, value}
	if value == nil {
		name, arguments = "__delitem__", arguments[:1]
	}
	method, err := in.specialMethod(o.class, name, o)
	if err != nil {
		return err
	}
	if method == nil {
		verb := "assignment"
		if value == nil {
			verb = "deletion"
		}
		return in.raise("TypeError", "'"+shortName(o.class.name)+"' object does not support item "+verb)
	}
	_, err = in.tailCall(method, Arguments{Positional: arguments})
	return err
}

func (in *Interpreter) setListItem(l *List, key, value Value) error {
	items, err := l.contents(in)
	if err != nil {
		return err
	}
	key, err = in.real(key)
	if err != nil {
		return err
	}
	if slice, ok := key.(*SliceValue); ok {
		return in.setListSlice(l, items, slice, value)
	}
	position, err := in.position("list", key, len(items))
	if err != nil {
		return err
	}
	if position < 0 || position >= int64(len(items)) {
		return in.raise("IndexError", "list assignment index out of range")
	}
	changed := append([]Value{}, items...)
	if value == nil {
		changed = append(changed[:position], changed[position+1:]...)
	} else {
		changed[position] = value
	}
	return in.replaceList(l, changed)
}

func (in *Interpreter) setListSlice(l *List, items []Value, slice *SliceValue, value Value) error {
	positions, err := in.slicePositions(slice, len(items))
	if err != nil {
		return err
	}
	step, err := in.sliceBound(slice.step, 1)
	if err != nil {
		return err
	}
	var given []Value
	if value != nil {
		if given, err = in.iterableItems(value); err != nil {
			return err
		}
	}
	if step == 1 {
		start, err := in.clampedBound(slice.start, 0, int64(len(items)), 0, int64(len(items)))
		if err != nil {
			return err
		}
		end := int(start) + len(positions)
		changed := append(append(append([]Value{}, items[:start]...), given...), items[end:]...)
		return in.replaceList(l, changed)
	}
	if value == nil {
		return in.deletePositions(l, items, positions)
	}
	if len(given) != len(positions) {
		return in.raise("ValueError", fmt.Sprintf("attempt to assign sequence of size %d to extended slice of size %d", len(given), len(positions)))
	}
	changed := append([]Value{}, items...)
	for k, position := range positions {
		changed[position] = given[k]
	}
	return in.replaceList(l, changed)
}

func (in *Interpreter) deletePositions(l *List, items []Value, positions []int) error {
	left := []Value{}
	for k, item := range items {
		if !slices.Contains(positions, k) {
			left = append(left, item)
		}
	}
	return in.replaceList(l, left)
}

// builtinName looks a name up in the module builtins; nil when absent.
func (in *Interpreter) builtinName(name string) (Value, error) {
	if value := in.builtins[name]; value != nil {
		return value, nil
	}
	outcome, err := in.session.Evaluate(nameWire("builtins.getattr"), []bytecode.Object{nameWire("builtins"), bytecode.Tuple{name}, bytecode.Tuple{bytecode.None}}, nil)
	if err != nil {
		return nil, err
	}
	if outcome.Value == nil {
		return nil, nil
	}
	if constant, ok := outcome.Value.(trace.Constant); ok {
		if constant.Value == bytecode.Object(bytecode.None) {
			return nil, nil
		}
		return &Constant{constant.Value}, nil
	}
	value, err := in.realize(outcome.Value, in.objectSource(outcome.Value.(trace.ObjectID)))
	if err == nil {
		in.builtins[name] = value
	}
	return value, err
}

// importInstruction resolves imports of modules that are loaded already; others run in Python.
func (in *Interpreter) importInstruction(f *Frame, i *bytecode.Instruction) error {
	name := f.code.Names[i.Arg]
	if i.Opcode == bytecode.ImportFrom {
		value, err := in.getAttribute(f.peek(1), name)
		if isRaised(err, "AttributeError") {
			return unsupported(reasonImport, "%s", name)
		}
		return in.pushResult(f)(value, err)
	}
	from, level := f.pop(), f.pop()
	name, err := in.absoluteName(f, name, level)
	if err != nil {
		return err
	}
	target := name
	if isNone(from) {
		target, _, _ = strings.Cut(name, ".")
	}
	if !libraryModule(target) {
		value, err := in.importedModule(name, target)
		if err == nil {
			err = in.holdsNames(value, from)
		}
		return in.pushResult(f)(value, err)
	}
	if strings.HasPrefix(name, "torch.") {
		if err := in.loadModule(name); err != nil {
			return err
		}
	}
	return in.pushResult(f)(in.namedModule(target))
}

// absoluteName is the name of a module that is imported; a relative one counts from the package that the running function's module names.
func (in *Interpreter) absoluteName(f *Frame, name string, level Value) (string, error) {
	dots, ok := constantInt(level)
	if ok && dots == 0 {
		return name, nil
	}
	named, err := f.function.globals.lookup(in, text("__package__"))
	if err == nil && named != nil {
		named, err = in.real(named)
	}
	if err != nil {
		return "", err
	}
	parent, isText := stringOf(named)
	if !ok || !isText || parent == "" {
		return "", unsupported(reasonImport, "a relative import of %s", name)
	}
	parts := strings.Split(parent, ".")
	if int(dots) > len(parts) {
		return "", unsupported(reasonImport, "a relative import of %s", name)
	}
	parts = parts[:len(parts)-int(dots)+1]
	if name != "" {
		parts = append(parts, name)
	}
	return strings.Join(parts, "."), nil
}

// holdsNames breaks at an import of names that a package does not hold: Python then looks for modules of these names in it.
func (in *Interpreter) holdsNames(module, names Value) error {
	if isNone(names) {
		return nil
	}
	list, err := in.listOf(names)
	if err != nil {
		return err
	}
	for _, item := range list {
		name, _ := stringOf(item)
		if _, err := in.getAttribute(module, name); isRaised(err, "AttributeError") {
			return unsupported(reasonImport, "%s", name)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// loadModule has the host import a module of torch, as the program is about to.
func (in *Interpreter) loadModule(name string) error {
	outcome, err := in.session.Evaluate(nameWire("importlib.import_module"), []bytecode.Object{bytecode.Tuple{name}}, nil)
	if err == nil && outcome.Raised != 0 {
		err = unsupported(reasonImport, "%s", name)
	}
	return err
}

// namedModule is a module that the interpreter has loaded.
func (in *Interpreter) namedModule(name string) (*PythonModule, error) {
	module, ok, err := as[*PythonModule](in.namedObject(name))
	if err == nil && !ok {
		err = unsupported(reasonImport, "%s", name)
	}
	return module, err
}

// namedObject is the object of a canonical name that stays what it is.
func (in *Interpreter) namedObject(name string) (Value, error) {
	id, err := in.findNamed(name, unsupported(reasonImport, "%s", name))
	if err != nil {
		return nil, err
	}
	return in.realize(id, in.objectSource(id))
}

// importedModule finds a program's module that was imported before, and guards that sys.modules still holds it.
func (in *Interpreter) importedModule(name, target string) (Value, error) {
	table, err := in.session.Evaluate(nameWire("builtins.getattr"), []bytecode.Object{nameWire("sys"), bytecode.Tuple{"modules"}}, nil)
	if err != nil {
		return nil, err
	}
	id, ok := table.Value.(trace.ObjectID)
	if !ok {
		return nil, unsupported(reasonImport, "%s", name)
	}
	var module trace.Reference
	for _, wanted := range []string{name, target} {
		if module, err = in.session.DictGet(id, wanted); err != nil {
			return nil, err
		}
		if _, loaded := module.(trace.ObjectID); !loaded {
			return nil, unsupported(reasonImport, "%s", name)
		}
	}
	source := in.objectSource(id).Child("key", target)
	source.Require(in.reason(), "is", objectWire(module.(trace.ObjectID)))
	return in.realize(module, source)
}

// exitOfGenerator breaks at a context manager's __exit__ where its generator is one that capture did not make: broken at within, where it
// ends by an exception, what comes after would be left to Python.
func (in *Interpreter) exitOfGenerator(manager Value) error {
	generator, err := in.getAttribute(manager, "gen")
	if err != nil {
		return err
	}
	_, outside, err := as[*Opaque](in.real(generator))
	if outside {
		return unsupported(reasonGenerator, "a context manager's that was made outside")
	}
	return err
}

// knownFunction models Python functions that capture treats by name.
func (in *Interpreter) knownFunction(f *Function, arguments Arguments) (Value, bool, error) {
	if inner, err := in.undisabled(f); err != nil || inner != nil {
		if err != nil {
			return nil, true, err
		}
		return modelled(in.tailCall(inner, arguments))
	}
	switch f.module {
	case "torch.compiler", "torch._utils", "torch._dynamo.external_utils", "fusee", "fusee.api", "fusee._api":
		switch f.qualname {
		case "is_compiling", "is_dynamo_compiling":
			return boolean(in.isCompiling()), true, nil
		case "is_exporting":
			return boolean(false), true, nil
		case "graph_break":
			return nil, true, unsupported(reasonRequested, "")
		case "compile":
			return in.compileCall(arguments)
		}
	case "torch":
		switch f.qualname {
		case "use_deterministic_algorithms":
			return modelled(in.setDeterministic(arguments))
		case "set_default_device":
			return in.setDefaultDevice(arguments)
		}
	case "contextlib":
		if f.qualname == "_GeneratorContextManager.__exit__" && len(arguments.Positional) > 0 {
			return nil, false, in.exitOfGenerator(arguments.Positional[0])
		}
	case "collections":
		if f.qualname == "namedtuple" {
			return in.namedTupleCall(arguments)
		}
	case "inspect":
		return in.inspectPredicate(f.qualname, arguments)
	case "torch._higher_order_ops.wrap":
		if f.qualname == "Wrap.__call__" && len(arguments.Positional) > 1 {
			return modelled(in.tailCall(arguments.Positional[1], Arguments{arguments.Positional[2:], arguments.Keywords}))
		}
	case "torch._higher_order_ops.associative_scan":
		return in.scanCall(f.qualname, arguments)
	case "torch.utils._contextlib":
		if f.qualname == "_set_stack_frame_name" {
			return in.renameFrames(arguments)
		}
	case "torch._dynamo.decorators":
		if f.qualname == "graph_break" {
			if in.frame != nil && in.frame.function != nil && ofOptimizers(in.frame.function.module) {
				return none(), true, nil
			}
			return nil, true, unsupported(reasonRequested, "")
		}
	case "torch._tensor":
		return in.knownTensorMethod(f.qualname, arguments)
	case "torch.utils._foreach_utils":
		if f.qualname == "_group_tensors_by_device_and_dtype" {
			return in.groupTensors(arguments)
		}
	case "torch.optim.optimizer":
		if f.qualname == "_get_value" {
			return in.optimizerNumber(arguments)
		}
	case "torch.autograd.profiler":
		return in.labelMethod(f.qualname, arguments)
	case "torch.autograd.function", "torch.autograd":
		return in.knownAutogradFunction(f, arguments)
	case "torch.utils.checkpoint":
		return in.checkpointFunction(f, arguments)
	case "torch.overrides":
		switch f.qualname {
		case "handle_torch_function":
			return nil, true, unsupported(reasonTensorSub, "%s", f.qualname)
		}
	case "traceback":
		if f.qualname == "clear_frames" {
			return none(), true, nil // the frames of a capture keep nothing that clearing could let go
		}
	case "random":
		return nil, true, unsupported(reasonRandom, "%s", f.qualname)
	case "logging":
		return nil, true, unsupported(reasonOutput, "%s", f.qualname)
	}
	return nil, false, nil
}

// knownTensorMethod models methods of tensors that PyTorch writes in Python.
func (in *Interpreter) knownTensorMethod(name string, arguments Arguments) (Value, bool, error) {
	switch name {
	case "Tensor.backward":
		return modelled(in.backwardCall(arguments, true))
	case "Tensor.register_hook", "Tensor.register_post_accumulate_grad_hook":
		return modelled(in.registerHook(name, arguments))
	case "Tensor.__deepcopy__", "Tensor.__reduce_ex__", "Tensor.__repr__", "Tensor.__format__", "Tensor.__array__":
		return nil, true, unsupported(reasonAutograd, "%s", name)
	case "Tensor.__torch_function__":
		return modelled(in.tensorTorchFunction(arguments))
	case "Tensor.__len__":
		n, err := in.length(arguments.Positional[0])
		return integer(int64(n)), true, err
	case "Tensor.__iter__":
		return modelled(in.iterate(arguments.Positional[0]))
	}
	return nil, false, nil
}

// knownAutogradFunction models what the modules of autograd define.
func (in *Interpreter) knownAutogradFunction(f *Function, arguments Arguments) (Value, bool, error) {
	if f.qualname == "_is_checkpoint_valid" && f.object != nil && len(arguments.Positional)+len(arguments.Keywords) == 0 {
		return modelled(in.stateOfEngine(f))
	}
	if f.module == "torch.autograd" {
		return in.autogradFunction(f, arguments)
	}
	if class, ok := firstClass(arguments); ok && f.qualname == "Function.apply" { // before torch 2.15
		arguments.Positional = arguments.Positional[1:]
		return modelled(in.applyFunction(class, arguments))
	}
	return nil, true, unsupported(reasonAutograd, "%s", f.qualname)
}
