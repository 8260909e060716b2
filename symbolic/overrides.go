package symbolic

import (
	"slices"
	"strings"

	"fusee/bytecode"
	"fusee/graph"
	"fusee/internal/slice"
	"fusee/trace"
)

// Capture follows torch's override protocol (torch/overrides.py): a call of a torch function with an argument whose class defines
// __torch_function__ is handed to that method. Subclasses of torch.Tensor that intercept nothing below are plain memory to the graph.

const disabledOverride = "torch._C._disabled_torch_function_impl"

// intercepted tells tensors of a subclass whose memory is that of a plain one: only __torch_function__ sees the difference.
func (t *Tensor) intercepted() bool {
	return t.class != nil && t.meta.Flags&graph.FlagIntercepted != 0
}

// overrideOf is the __torch_function__ of an argument that has one of its own, and the class that defines it; nil for others.
func (in *Interpreter) overrideOf(argument Value) (hook Value, class, owner *Class, err error) {
	argument, err = in.look(argument)
	if err != nil {
		return nil, nil, nil, err
	}
	switch v := argument.(type) {
	case *Tensor:
		if v.class == nil || !v.intercepted() && !v.wraps() {
			return nil, nil, nil, nil
		}
		class = v.class
	case *Instance:
		if !userClass(v.class.name) {
			return nil, nil, nil, nil
		}
		class = v.class
	default:
		return nil, nil, nil, nil
	}
	hook, owner, err = in.classLookup(class, "__torch_function__")
	if err != nil || owner == nil {
		return nil, nil, nil, err
	}
	if hook, err = in.look(hook); err != nil {
		return nil, nil, nil, err
	}
	if builtin, ok := hook.(*Builtin); ok && builtin.name == disabledOverride {
		return nil, nil, nil, nil
	}
	return hook, class, owner, nil
}

// overloaded are the arguments that a call is handed to, in the order in which they are asked: as they come, subclasses before the classes
// that they derive from, one of each class.
type overloaded struct {
	arguments []Value
	hooks     []Value
	classes   []*Class
	owners    []*Class
}

func (o *overloaded) add(in *Interpreter, argument Value) error {
	hook, class, owner, err := in.overrideOf(argument)
	if err != nil || hook == nil || slices.ContainsFunc(o.classes, func(c *Class) bool { return c == class || c.id != 0 && c.id == class.id }) {
		return err
	}
	at := slices.IndexFunc(o.classes, func(c *Class) bool { return class.inherits(c) })
	if at < 0 {
		at = len(o.classes)
	}
	o.arguments, o.hooks = slices.Insert(o.arguments, at, argument), slices.Insert(o.hooks, at, hook)
	o.classes, o.owners = slices.Insert(o.classes, at, class), slices.Insert(o.owners, at, owner)
	return nil
}

func (in *Interpreter) overloadedArguments(arguments Arguments) (*overloaded, error) {
	found := &overloaded{}
	values := slices.Clone(arguments.Positional)
	for _, keyword := range arguments.Keywords {
		values = append(values, keyword.Value)
	}
	for _, value := range values {
		if lazy, ok := value.(*Lazy); ok && lazy.value == nil {
			if _, constant := lazy.reference.(trace.Constant); constant {
				continue
			}
		}
		real, err := in.look(value)
		if err != nil {
			return nil, err
		}
		items := []Value{real}
		switch v := real.(type) {
		case *Tuple:
			items = v.items
		case *List:
			items = v.items
		}
		for _, item := range items {
			if err := found.add(in, item); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// overridden hands a call of a torch function to the __torch_function__ of its arguments; handled is false where none has one.
func (in *Interpreter) overridden(function Value, arguments Arguments) (value Value, handled bool, err error) {
	if in.functionsDisabled > 0 {
		return nil, false, nil
	}
	found, err := in.overloadedArguments(arguments)
	if err != nil || len(found.classes) == 0 {
		return nil, false, err
	}
	types := &Tuple{}
	for _, class := range found.classes {
		types.items = append(types.items, class)
	}
	for i, hook := range found.hooks {
		result, err := in.callOverride(function, types, arguments, found, i, hook)
		if err != nil {
			return nil, true, err
		}
		if !isNotImplemented(result) {
			return result, true, nil
		}
	}
	return nil, true, unsupported(reasonTensorSub, "no __torch_function__ takes the call")
}

func (in *Interpreter) callOverride(function Value, types *Tuple, arguments Arguments, found *overloaded, i int, hook Value) (Value, error) {
	if found.owners[i].name == "torch.Tensor" {
		return in.defaultOverride(found.classes[i], function, types, arguments)
	}
	if err := in.checkHook(hook, found.classes[i]); err != nil {
		return nil, err
	}
	bound, err := in.bindDescriptor(hook, found.arguments[i], found.classes[i])
	if err != nil {
		return nil, err
	}
	passed := []Value{function, types, &Tuple{items: arguments.Positional}}
	if _, python := function.(*Function); python || len(arguments.Keywords) > 0 {
		keywords := newDict()
		for _, keyword := range arguments.Keywords {
			if err := keywords.setItem(in, text(keyword.Name), keyword.Value); err != nil {
				return nil, err
			}
		}
		passed = append(passed, keywords)
	}
	result, err := in.call(bound, Arguments{Positional: passed})
	if err != nil {
		return nil, err
	}
	return in.look(result)
}

// checkHook refuses a __torch_function__ that is no class method, as torch warns of it, except where the program wants one graph at any price.
func (in *Interpreter) checkHook(hook Value, class *Class) error {
	if wrapper, ok := hook.(*descriptorValue); ok && wrapper.kind == "classmethod" {
		return nil
	}
	if _, plain := hook.(*Function); !plain || !in.request.Options.FullGraph {
		return unsupported(reasonTensorSub, "a __torch_function__ that is no class method, of which torch warns")
	}
	in.warn("the __torch_function__ of " + class.name + " is a plain method: torch says that it must be a class method")
	return nil
}

func isNotImplemented(value Value) bool {
	constant, ok := value.(*Constant)
	if !ok {
		return false
	}
	_, special := constant.Value.(notImplemented)
	return special
}

// defaultOverride is torch.Tensor's own __torch_function__: the plain call, whose results become instances of the class.
func (in *Interpreter) defaultOverride(class *Class, function Value, types *Tuple, arguments Arguments) (Value, error) {
	for _, item := range types.items {
		real, err := in.look(item)
		if err != nil {
			return nil, err
		}
		if base, ok := real.(*Class); !ok || !class.inherits(base) {
			return notImplementedValue(), nil
		}
	}
	in.functionsDisabled++
	result, err := in.call(function, arguments)
	in.functionsDisabled--
	if err != nil || keepsPlain(function) {
		return result, err
	}
	return in.convertResult(result, class)
}

// tensorTorchFunction is torch.Tensor.__torch_function__(cls, func, types, args=(), kwargs=None), as subclasses call it through super().
func (in *Interpreter) tensorTorchFunction(arguments Arguments) (Value, error) {
	values := slices.Clone(arguments.Positional)
	for len(values) < 5 {
		values = append(values, nil)
	}
	for _, keyword := range arguments.Keywords {
		if at := slices.Index([]string{"cls", "func", "types", "args", "kwargs"}, keyword.Name); at >= 0 {
			values[at] = keyword.Value
		}
	}
	if len(values) != 5 || values[0] == nil || values[1] == nil || values[2] == nil {
		return nil, unsupported(reasonTensorSub, "__torch_function__")
	}
	class, err := in.look(values[0])
	if err != nil {
		return nil, err
	}
	owner, ok := class.(*Class)
	if !ok {
		return nil, unsupported(reasonTensorSub, "__torch_function__")
	}
	kinds, err := in.listOf(values[2])
	if err != nil {
		return nil, err
	}
	var passed Arguments
	if values[3] != nil {
		if passed.Positional, err = in.listOf(values[3]); err != nil {
			return nil, err
		}
	}
	if keywords, err := in.look(orNone(values[4])); err != nil || !isNone(keywords) {
		if err != nil {
			return nil, err
		}
		if passed.Keywords, err = in.keywordsOf(keywords); err != nil {
			return nil, err
		}
	}
	return in.defaultOverride(owner, values[1], &Tuple{items: kinds}, passed)
}

// keepsPlain tells the functions of torch.overrides.get_default_nowrap_functions.
func keepsPlain(function Value) bool {
	getter, ok := function.(*getterFunction)
	return ok && slices.Contains([]string{"Tensor._base", "Tensor.grad", "Tensor._grad"}, getter.name)
}

// convertResult is torch._tensor._convert.
func (in *Interpreter) convertResult(result Value, class *Class) (Value, error) {
	result, err := in.look(result)
	if err != nil || class.name == "torch.Tensor" {
		return result, err
	}
	switch v := result.(type) {
	case *Tensor:
		if v.class != nil && v.class.inherits(class) {
			return v, nil
		}
		return in.asSubclass(v, class)
	case *Tuple:
		items, err := in.convertItems(v.items, class)
		return &Tuple{items: items, class: v.class}, err
	case *List:
		items, err := in.convertItems(v.items, class)
		return newList(items), err
	}
	return result, nil
}

func (in *Interpreter) convertItems(items []Value, class *Class) ([]Value, error) {
	return slice.TryMap(items, func(item Value) (Value, error) { return in.convertResult(item, class) })
}

// asSubclass is Tensor.as_subclass: another tensor object on the same memory. Results of the graph become it where Python gets them.
func (in *Interpreter) asSubclass(t *Tensor, class *Class) (Value, error) {
	if !class.isSubclassOf("torch.Tensor") {
		return nil, unsupported(reasonTensorSub, "as_subclass of %s", class.name)
	}
	_, owner, err := in.classLookup(class, "__torch_dispatch__")
	if err != nil || owner == nil || userClass(owner.name) {
		return nil, unsupported(reasonTensorSub, "%s", class.name)
	}
	in.functionsDisabled++
	alias, err := in.torchCall("operator.getitem", Arguments{Positional: []Value{t, &Constant{bytecode.Ellipsis}}})
	in.functionsDisabled--
	if err != nil {
		return nil, err
	}
	made, ok := alias.(*Tensor)
	if !ok || made == t {
		return nil, unsupported(reasonTensorSub, "as_subclass")
	}
	if class.name != "torch.Tensor" {
		made.class = class
		made.meta.Flags |= graph.FlagIntercepted
	}
	return made, nil
}

// newSubclassTensor is torch.Tensor.__new__ of a class of the program for one tensor, which is made an alias as by as_subclass: THPVariable_pynew
// of PyTorch's python_variable.cpp.
func (in *Interpreter) newSubclassTensor(c *Class, arguments Arguments) (Value, bool, error) {
	if !userClass(c.name) || c.isSubclassOf(parameterClass) || len(arguments.Positional) != 1 || len(arguments.Keywords) > 0 {
		return nil, false, nil
	}
	value, err := in.real(arguments.Positional[0])
	if err != nil {
		return nil, true, err
	}
	tensor, ok := value.(*Tensor)
	if !ok || tensor.class != nil || tensor.wraps() {
		return nil, false, nil
	}
	return modelled(in.asSubclass(tensor, c))
}

// functionGuard follows torch._C.DisableTorchFunctionSubclass, under which __torch_function__ is not called.
func (in *Interpreter) functionGuard(name string, arguments Arguments) (Value, bool, error) {
	method, ok := strings.CutPrefix(name, functionGuardClass+".")
	if !ok || len(arguments.Positional) == 0 {
		return nil, false, nil
	}
	switch method {
	case "__enter__":
		in.activity++
		in.functionsDisabled++
		in.functionGuards = append(in.functionGuards, in.frame.step)
		return none(), true, nil
	case "__exit__":
		if len(in.functionGuards) == 0 {
			break
		}
		in.activity++
		in.functionsDisabled--
		in.functionGuards = in.functionGuards[:len(in.functionGuards)-1]
		return none(), true, nil
	}
	return nil, true, unsupported(reasonGlobalState, "%s", name)
}

const functionGuardClass = "torch._C.DisableTorchFunctionSubclass"

func (in *Interpreter) asSubclassCall(arguments Arguments) (Value, error) {
	if len(arguments.Positional) == 2 && len(arguments.Keywords) == 0 {
		values, err := in.realAll(arguments.Positional)
		if err != nil {
			return nil, err
		}
		tensor, isTensor := values[0].(*Tensor)
		class, isClass := values[1].(*Class)
		if isTensor && isClass && tensor.class == nil {
			return in.asSubclass(tensor, class)
		}
	}
	return nil, unsupported(reasonTensorSub, "as_subclass")
}

// getterFunction is the __get__ of a C-level attribute of tensors, as __torch_function__ gets to see a read of it.
type getterFunction struct{ name string }

func (v *getterFunction) typeName() string { return "method-wrapper" }

func (v *getterFunction) call(in *Interpreter, arguments Arguments) (Value, error) {
	if len(arguments.Positional) == 0 {
		return nil, unsupported(reasonTensorSub, "%s.__get__", v.name)
	}
	owner, err := in.look(arguments.Positional[0])
	if err != nil {
		return nil, err
	}
	return in.readGetset(v.name, owner)
}

func (v *getterFunction) getAttribute(in *Interpreter, name string) (Value, error) {
	switch name {
	case "__name__":
		return text("__get__"), nil
	case "__class__":
		return in.namedClass("method-wrapper")
	}
	return nil, unsupported(reasonTensorSub, "%s.__get__.%s", v.name, name)
}

// overriddenOperator hands an operator of Python to __torch_function__ under the name of the tensor method that it stands for.
func (in *Interpreter) overriddenOperator(target string, arguments Arguments) (Value, bool, error) {
	name, isOperator := strings.CutPrefix(target, "operator.")
	if !isOperator || in.functionsDisabled > 0 {
		return nil, false, nil
	}
	found, err := in.overloadedArguments(arguments)
	if err != nil || len(found.classes) == 0 {
		return nil, false, err
	}
	left, err := in.look(arguments.Positional[0])
	if err != nil {
		return nil, true, err
	}
	if !isTensor(left) && len(arguments.Positional) == 2 {
		return in.reflectedOperator(name, arguments)
	}
	method := operatorMethods[name]
	if method == "" || !isTensor(left) {
		return nil, true, unsupported(reasonTensorSub, "%s", target)
	}
	return in.overridden(&Builtin{name: "Tensor." + method, flavor: "method"}, arguments)
}

// reflectedOperator is an operator whose left operand is no tensor: the tensor's reflected method has it, written in C or in Python.
func (in *Interpreter) reflectedOperator(name string, arguments Arguments) (Value, bool, error) {
	swapped := Arguments{Positional: []Value{arguments.Positional[1], arguments.Positional[0]}}
	for _, row := range comparisons {
		if row.function == name {
			method := strings.Trim(row.reflected, "_")
			return in.overridden(&Builtin{name: "Tensor." + method, flavor: "method"}, swapped)
		}
	}
	if name == "add" || name == "mul" {
		return in.overridden(&Builtin{name: "Tensor." + name, flavor: "method"}, swapped)
	}
	class, err := in.namedClass("torch.Tensor")
	if err != nil {
		return nil, true, err
	}
	found, _, err := in.classLookup(class, operatorOf(name).reflected)
	if err != nil {
		return nil, true, err
	}
	if found, err = in.look(found); err != nil {
		return nil, true, err
	}
	if _, python := found.(*Function); !python {
		return nil, true, unsupported(reasonTensorSub, "operator.%s", name)
	}
	return in.overridden(found, swapped)
}

// operatorMethods names the method that torch.Tensor's slot for an operator is (torch/csrc/autograd/python_variable_methods.cpp), for a
// tensor on the left.
var operatorMethods = map[string]string{
	"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "matmul": "matmul", "mod": "remainder", "neg": "neg", "invert": "bitwise_not",
	"iadd": "add_", "isub": "sub_", "imul": "mul_", "itruediv": "div_", "eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge",
	"getitem": "__getitem__", "setitem": "__setitem__", "and_": "__and__", "or_": "__or__", "xor": "__xor__",
}
