package symbolic

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/errors"

	"fusee/bytecode"
	"fusee/graph"
	"fusee/internal/slice"
)

func (f *Frame) setKeywords(index int) error {
	names, ok := f.code.Consts[index].(bytecode.Tuple)
	if !ok {
		return errors.New("KW_NAMES does not name a tuple")
	}
	f.keywords = slice.Map(names, func(item bytecode.Object) string {
		name, _ := item.(string)
		return name
	})
	return nil
}

// callInstruction is CALL: below the arguments lie NULL and a callable, or a method and its self.
func (in *Interpreter) callInstruction(f *Frame, count int) error {
	values := f.popMany(count)
	second, first := f.pop(), f.pop()
	target := second
	if _, isNull := first.(null); !isNull {
		target, values = first, append([]Value{second}, values...)
	}
	arguments := splitKeywords(values, f.keywords)
	f.keywords = nil
	in.tail = &adapter{}
	return in.pushResult(f)(in.tailCall(target, arguments))
}

func splitKeywords(values []Value, names []string) Arguments {
	split := len(values) - len(names)
	arguments := Arguments{Positional: values[:split]}
	for k, name := range names {
		arguments.Keywords = append(arguments.Keywords, KeywordArgument{name, values[split+k]})
	}
	return arguments
}

func (in *Interpreter) callFunctionEx(f *Frame, flags int) error {
	var arguments Arguments
	if flags&1 != 0 {
		keywords, err := in.real(f.pop())
		if err != nil {
			return err
		}
		if arguments.Keywords, err = in.keywordsOf(keywords); err != nil {
			return err
		}
	}
	positional, err := in.listOf(f.pop())
	if err != nil {
		return err
	}
	arguments.Positional = positional
	target := f.pop()
	f.pop() // NULL
	in.tail = &adapter{}
	return in.pushResult(f)(in.tailCall(target, arguments))
}

// keywordsOf spreads a dict with string keys into keyword arguments.
func (in *Interpreter) keywordsOf(value Value) ([]KeywordArgument, error) {
	dict, err := in.asMapping(value)
	if err == nil && dict == nil {
		err = unsupported(reasonItem, "** of %s", value.typeName())
	}
	if err != nil {
		return nil, err
	}
	entries, err := dict.live(in)
	if err != nil {
		return nil, err
	}
	var keywords []KeywordArgument
	for _, entry := range entries {
		key, ok := stringOf(entry.key)
		if !ok {
			return nil, in.raise("TypeError", "keywords must be strings")
		}
		keywords = append(keywords, KeywordArgument{key, entry.value})
	}
	return keywords, nil
}

// call calls a value from inside a builtin: a break within cannot be continued here.
func (in *Interpreter) call(target Value, arguments Arguments) (Value, error) {
	in.tail = nil
	return in.tailCall(target, arguments)
}

// tailCall calls a value whose result is the current instruction's result, so that a break within can be continued.
func (in *Interpreter) tailCall(target Value, arguments Arguments) (Value, error) {
	target, err := in.real(target)
	if err != nil {
		return nil, err
	}
	if c, ok := target.(callable); ok {
		if in.nesting >= maxNesting {
			return nil, unsupported(reasonDepth, "%d calls", in.nesting)
		}
		in.nesting++
		defer func() { in.nesting-- }()
		return c.call(in, arguments)
	}
	if opaque, ok := target.(*Opaque); ok {
		return in.opaqueCall(opaque, arguments)
	}
	return nil, in.raise("TypeError", "'"+shortName(target.typeName())+"' object is not callable")
}

// opaqueCall keeps the call of a function of TorchScript as one node of the graph; other objects that capture does not know break.
func (in *Interpreter) opaqueCall(target *Opaque, arguments Arguments) (Value, error) {
	if !strings.HasSuffix(target.kind, "torch.jit.ScriptFunction") {
		return nil, unsupported(reasonOpaqueCall, "%s", target.kind)
	}
	args, keywords, err := in.graphArguments(arguments)
	if err != nil {
		return nil, err
	}
	in.pin(target.object)
	return in.hostCall(&hostedCall{target: "torch.jit.ScriptFunction", callee: target.object.id, args: args, keywords: keywords})
}

func (m *Method) call(in *Interpreter, arguments Arguments) (Value, error) {
	arguments.Positional = append([]Value{m.self}, arguments.Positional...)
	return in.tailCall(m.function, arguments)
}

func (v *descriptorValue) call(in *Interpreter, arguments Arguments) (Value, error) {
	switch v.kind {
	case "staticmethod":
		return in.tailCall(v.parts[0], arguments)
	case "partial":
		return v.callPartial(in, arguments)
	}
	return nil, unsupported(reasonOpaqueCall, "%s", v.kind)
}

// callPartial merges a functools.partial's own arguments: later keywords win but keep the earlier place.
func (v *descriptorValue) callPartial(in *Interpreter, arguments Arguments) (Value, error) {
	own, err := in.listOf(v.parts[1])
	if err != nil {
		return nil, err
	}
	table, err := in.real(v.parts[2])
	if err != nil {
		return nil, err
	}
	keywords, err := in.keywordsOf(table)
	if err != nil {
		return nil, err
	}
	for _, given := range arguments.Keywords {
		replaced := false
		for i := range keywords {
			if keywords[i].Name == given.Name {
				keywords[i].Value, replaced = given.Value, true
			}
		}
		if !replaced {
			keywords = append(keywords, given)
		}
	}
	positional := append(append([]Value(nil), own...), arguments.Positional...)
	return in.tailCall(v.parts[0], Arguments{positional, keywords})
}

// call of an instance: its class's __call__.
func (v *Instance) call(in *Interpreter, arguments Arguments) (Value, error) {
	if target, err := in.operatorTarget(v); err != nil || target != "" {
		if err != nil {
			return nil, err
		}
		return in.torchCall(target, arguments)
	}
	switch v.class.name {
	case "functools._lru_cache_wrapper":
		return in.callCached(v, arguments)
	case "weakref.ReferenceType":
		if v.object != nil && len(arguments.Positional)+len(arguments.Keywords) == 0 {
			return in.referent(v.object)
		}
	}
	hook, _, err := in.classLookup(v.class, "__call__")
	if err != nil {
		return nil, err
	}
	if hook == nil {
		return nil, in.raise("TypeError", "'"+shortName(v.class.name)+"' object is not callable")
	}
	bound, err := in.bindDescriptor(hook, v, v.class)
	if err != nil {
		return nil, err
	}
	return in.tailCall(bound, arguments)
}

// operatorTarget is the canonical name of an operator object (torch.ops.aten.add.Tensor, or torch.ops.aten.add for all its overloads); ""
// for other objects.
func (in *Interpreter) operatorTarget(v *Instance) (string, error) {
	field := map[string]string{"torch._ops.OpOverload": "_name", "torch._ops.OpOverloadPacket": "_qualified_op_name"}[v.class.name]
	if field == "" || v.object == nil {
		return "", nil
	}
	in.pin(v.object)
	named, err := v.field(in, field)
	if err != nil || named == nil {
		return "", err
	}
	if named, err = in.real(named); err != nil {
		return "", err
	}
	full, _ := stringOf(named)
	namespace, name, ok := strings.Cut(full, "::")
	if !ok {
		return "", unsupported(reasonTensorCall, "operator %s", full)
	}
	if field == "_name" && !strings.Contains(name, ".") {
		name += ".default"
	}
	if namespace == "aten" {
		return "aten." + name, nil
	}
	return "torch.ops." + namespace + "." + name, nil
}

// opaqueReason is why a function that is not looked into breaks; its name is qualified by its module.
func opaqueReason(name string) *Reason {
	switch {
	case strings.HasPrefix(name, "torch._functorch."):
		return reasonTransform
	case strings.HasPrefix(name, "torch._higher_order_ops."), strings.HasPrefix(name, "torch._ops.HigherOrderOperator."):
		return reasonHigherOrder
	}
	return reasonOpaqueCall
}

// call of a function inlines it, unless it is known by name or marked otherwise.
func (f *Function) call(in *Interpreter, arguments Arguments) (Value, error) {
	if value, handled, err := in.knownFunction(f, arguments); handled || err != nil {
		return value, err
	}
	if pureLibraryFunction(f) {
		if value, done, err := in.evaluatePython(f, arguments); done || err != nil {
			return value, err
		}
	}
	if name := tracingCall(f.code.Names); name != "" {
		return nil, unsupported(reasonTracing, "%s in %s", name, f.qualname)
	}
	switch f.treat {
	case "break":
		return nil, unsupported(reasonDisabled, "%s, %s", f.qualname, f.treatReason)
	case "opaque":
		if f.name == conditionalName {
			if value, handled, err := in.conditionalCall(arguments); handled || err != nil {
				return value, err
			}
		}
		if value, handled, err := in.transform(f, arguments); handled || err != nil {
			return value, err
		}
		return nil, unsupported(opaqueReason(f.name), "%s, %s", f.qualname, f.treatReason)
	case "constant":
		return in.constantCall(f.object, f.qualname, arguments)
	case "torch":
		if value, handled, err := in.overridden(f, arguments); handled || err != nil {
			return value, err
		}
		// One node where the op table knows the function; its Python code is captured where it does not.
		value, err := in.tableCall(f.name, arguments)
		if !errors.Is(err, graph.ErrUnknown) {
			return value, err
		}
	}
	frame, err := in.newFrame(f)
	if err != nil {
		return nil, err
	}
	if err := in.bindArguments(frame, f, arguments); err != nil {
		return nil, err
	}
	if frame.resumable, err = in.resumes(in.tail); err != nil {
		return nil, err
	}
	frame.adapter = in.tail
	in.tail = nil
	in.activity++
	return in.run(frame)
}

// resumes says whether a frame can go on behind a break in it, as what it gives or raises is all that matters to its caller.
func (in *Interpreter) resumes(tail *adapter) (bool, error) {
	if tail == nil || tail.asked == nil {
		return tail != nil, nil
	}
	fallback, _, err := in.classLookup(tail.asked, "__getattr__")
	return fallback == nil, err
}

// bindArguments fills a frame's parameters as CPython does; the messages are CPython's.
func (in *Interpreter) bindArguments(frame *Frame, f *Function, arguments Arguments) error {
	code := f.code
	positional := code.ArgCount
	named := positional + code.KwOnlyArgCount
	for k, value := range arguments.Positional {
		if k < positional {
			frame.locals[k] = value
		}
	}
	extra := named
	if code.Flags&bytecode.FlagVarArgs != 0 {
		rest := []Value{}
		if len(arguments.Positional) > positional {
			rest = append(rest, arguments.Positional[positional:]...)
		}
		frame.locals[extra] = &Tuple{items: rest}
		extra++
	} else if len(arguments.Positional) > positional {
		return in.raiseTooMany(f, len(arguments.Positional))
	}
	if err := in.bindKeywords(frame, f, arguments.Keywords, extra); err != nil {
		return err
	}
	return in.bindDefaults(frame, f)
}

func (in *Interpreter) bindKeywords(frame *Frame, f *Function, keywords []KeywordArgument, extra int) error {
	code := f.code
	var rest *Dict
	if code.Flags&bytecode.FlagVarKeywords != 0 {
		rest = newDict()
		frame.locals[extra] = rest
	}
	named := code.ArgCount + code.KwOnlyArgCount
	for _, keyword := range keywords {
		k := indexOf(code.LocalsPlusNames[:named], keyword.Name)
		switch {
		case k >= code.PosOnlyArgCount && frame.locals[k] != nil:
			return in.raise("TypeError", f.qualname+"() got multiple values for argument '"+keyword.Name+"'")
		case k >= code.PosOnlyArgCount:
			frame.locals[k] = keyword.Value
		case rest != nil:
			if err := rest.setItem(in, text(keyword.Name), keyword.Value); err != nil {
				return err
			}
		case k >= 0:
			return in.raise("TypeError", f.qualname+"() got some positional-only arguments passed as keyword arguments: '"+keyword.Name+"'")
		default:
			return in.raise("TypeError", f.qualname+"() got an unexpected keyword argument '"+keyword.Name+"'")
		}
	}
	return nil
}

func indexOf(names []string, name string) int {
	for k, candidate := range names {
		if candidate == name {
			return k
		}
	}
	return -1
}

func (in *Interpreter) bindDefaults(frame *Frame, f *Function) error {
	code := f.code
	first := code.ArgCount - len(f.defaults)
	var missing []string
	for k := 0; k < code.ArgCount; k++ {
		if frame.locals[k] == nil && k >= first {
			in.guardDefaults(f)
			frame.locals[k] = f.defaults[k-first]
		}
		if frame.locals[k] == nil {
			missing = append(missing, code.LocalsPlusNames[k])
		}
	}
	if len(missing) > 0 {
		return in.raiseMissing(f, missing, "positional")
	}
	for k := code.ArgCount; k < code.ArgCount+code.KwOnlyArgCount; k++ {
		if frame.locals[k] != nil {
			continue
		}
		if f.keywordDefaults != nil {
			value, err := f.keywordDefaults.lookup(in, text(code.LocalsPlusNames[k]))
			if err != nil {
				return err
			}
			frame.locals[k] = value
		}
		if frame.locals[k] == nil {
			missing = append(missing, code.LocalsPlusNames[k])
		}
	}
	if len(missing) > 0 {
		return in.raiseMissing(f, missing, "keyword-only")
	}
	return nil
}

// guardDefaults keeps an existing function's defaults: they can be assigned.
func (in *Interpreter) guardDefaults(f *Function) {
	if f.byCode {
		f.object.source.Child("attr", "__defaults__").Require(in.reason(), "len", int64(len(f.defaults)))
		return
	}
	if f.object != nil && f.defaultsID != 0 && !libraryModule(f.module) {
		in.objectSource(f.object.id).Child("attr", "__defaults__").Require(in.reason(), "is", objectWire(f.defaultsID))
	}
}

func (in *Interpreter) raiseMissing(f *Function, names []string, kind string) error {
	quoted := slice.Map(names, func(name string) string { return "'" + name + "'" })
	list := strings.Join(quoted, " and ")
	if last := len(quoted) - 1; last > 1 {
		list = strings.Join(quoted[:last], ", ") + ", and " + quoted[last]
	}
	return in.raise("TypeError", fmt.Sprintf("%s() missing %d required %s argument%s: %s", f.qualname, len(names), kind, plural(len(names)), list))
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

func (in *Interpreter) raiseTooMany(f *Function, given int) error {
	takes := fmt.Sprint(f.code.ArgCount)
	count := f.code.ArgCount
	if n := len(f.defaults); n > 0 {
		takes = fmt.Sprintf("from %d to %d", f.code.ArgCount-n, f.code.ArgCount)
		count = 2
	}
	verb := "were"
	if given == 1 {
		verb = "was"
	}
	return in.raise("TypeError", fmt.Sprintf("%s() takes %s positional argument%s but %d %s given", f.qualname, takes, plural(count), given, verb))
}

func (in *Interpreter) makeFunction(f *Frame, flags int) error {
	code, ok := f.pop().(*codeValue)
	if !ok {
		return errors.New("MAKE_FUNCTION without a code object")
	}
	function := &Function{code: code.code, globals: f.function.globals, name: code.code.Name, qualname: code.code.QualName,
		module: f.function.module, builtins: f.function.builtins, attributes: map[string]Value{}}
	if flags&8 != 0 {
		closure, err := in.listOf(f.pop())
		if err != nil {
			return err
		}
		for _, item := range closure {
			real, err := in.real(item)
			if err != nil {
				return err
			}
			cell, ok := real.(*Cell)
			if !ok {
				return errors.New("a closure holds something that is no cell")
			}
			function.closure = append(function.closure, cell)
		}
	}
	if flags&4 != 0 {
		function.attributes["__annotations__"] = f.pop()
	}
	if flags&2 != 0 {
		function.keywordDefaults, _ = f.pop().(*Dict)
	}
	if flags&1 != 0 {
		defaults, err := in.listOf(f.pop())
		if err != nil {
			return err
		}
		function.defaults = defaults
	}
	f.push(function)
	return nil
}

// call of a class: type.__call__ unless a metaclass has its own.
func (c *Class) call(in *Interpreter, arguments Arguments) (Value, error) {
	if value, handled, err := in.constructBuiltin(c, arguments); handled || err != nil {
		return value, err
	}
	if c.isSubclassOf("BaseException") && builtinException(c) {
		return in.newException(c, arguments)
	}
	if c.id == 0 && c.made == nil {
		resolved, err := in.namedClass(c.name)
		if err != nil {
			return nil, err
		}
		c = resolved
	}
	meta, err := in.metaclassOf(c)
	if err != nil {
		return nil, err
	}
	if meta.name != "type" && meta.name != "abc.ABCMeta" {
		hook, owner, err := in.classLookup(meta, "__call__")
		if err != nil {
			return nil, err
		}
		if owner != nil && owner.name != "type" && c.name != inferenceGuardClass {
			if hook, err = in.real(hook); err != nil {
				return nil, err
			}
			switch hook.(type) {
			case *Function:
				return in.tailCall(hook, Arguments{append([]Value{c}, arguments.Positional...), arguments.Keywords})
			case *Class:
				return in.tailCall(hook, arguments) // a class binds to nothing, as in the metaclass of typing.TypedDict
			}
			return nil, unsupported(reasonOpaqueCall, "metaclass %s", meta.name)
		}
	}
	return in.construct(c, arguments)
}

// construct is type.__call__: __new__, then __init__ of what it made.
func (in *Interpreter) construct(c *Class, arguments Arguments) (Value, error) {
	tail := in.tail
	made, err := in.callNew(c, arguments)
	if err != nil {
		return nil, err
	}
	instanceClass, err := in.classOf(made)
	if err != nil {
		return nil, err
	}
	if !instanceClass.inherits(c) {
		return made, nil
	}
	hook, owner, err := in.classLookup(instanceClass, "__init__")
	if err != nil {
		return nil, err
	}
	if owner == nil || hook == nil {
		return made, nil
	}
	if hook, err = in.real(hook); err != nil {
		return nil, err
	}
	if builtin, ok := hook.(*Builtin); ok {
		return made, in.builtinInit(builtin, made, c, arguments)
	}
	if tail != nil {
		in.tail = &adapter{instead: made, asked: tail.asked}
	}
	bound, err := in.bindDescriptor(hook, made, instanceClass)
	if err != nil {
		return nil, err
	}
	result, err := in.tailCall(bound, arguments)
	if err != nil {
		return nil, err
	}
	if result, err = in.real(result); err == nil && !isNone(result) {
		return nil, in.raise("TypeError", "__init__() should return None, not '"+shortName(result.typeName())+"'")
	}
	return made, err
}

// builtinInit runs object.__init__ and the like, which only check their arguments.
func (in *Interpreter) builtinInit(hook *Builtin, made Value, c *Class, arguments Arguments) error {
	if hook.name == "object.__init__" {
		newHook, owner, err := in.classLookup(c, "__new__")
		if err != nil {
			return err
		}
		if (len(arguments.Positional) > 0 || len(arguments.Keywords) > 0) && (newHook == nil || owner.name == "object") {
			return in.raise("TypeError", shortName(c.name)+"() takes no arguments")
		}
		return nil
	}
	switch made := made.(type) {
	case *Tuple:
		return nil
	case *Class:
		if hook.name == "type.__init__" {
			return nil
		}
	case *Instance:
		if made.exception != nil {
			return in.initException(made, arguments)
		}
		if made.base != nil {
			return in.initInstance(made, arguments)
		}
	}
	return unsupported(reasonOpaqueCall, "%s", hook.name)
}

func (in *Interpreter) callNew(c *Class, arguments Arguments) (Value, error) {
	hook, owner, err := in.classLookup(c, "__new__")
	if err != nil {
		return nil, err
	}
	if owner != nil && c.isSubclassOf("torch.Tensor") && !userClass(owner.name) {
		if made, handled, err := in.newSubclassTensor(c, arguments); handled || err != nil {
			return made, err
		}
	}
	if hook, err = in.real(hook); err != nil {
		return nil, err
	}
	if wrapper, ok := hook.(*descriptorValue); ok && wrapper.kind == "staticmethod" {
		if hook, err = in.real(wrapper.parts[0]); err != nil {
			return nil, err
		}
	}
	switch v := hook.(type) {
	case *Builtin:
		return in.builtinNew(v, c, arguments)
	case *Function:
		return in.call(v, Arguments{append([]Value{c}, arguments.Positional...), arguments.Keywords})
	}
	return nil, unsupported(reasonOpaqueCall, "constructing %s", c.name)
}

// builtinNew makes an empty instance of a Python class; classes laid out like builtin values are made by Python, as are objects that do
// something when they die.
func (in *Interpreter) builtinNew(hook *Builtin, c *Class, arguments Arguments) (Value, error) {
	if finalizer, _, err := in.classLookup(c, "__del__"); err != nil || finalizer != nil {
		if err == nil {
			err = unsupported(reasonOpaqueCall, "constructing %s, which has a finalizer", c.name)
		}
		return nil, err
	}
	switch {
	case strings.HasSuffix(hook.name, "object.__new__") || hook.name == "builtins.object.__new__":
		if err := in.checkExcessOfNew(c, arguments); err != nil {
			return nil, err
		}
		if c.made == nil && c.id != 0 && c.name != "object" && !in.writtenInPython(c) {
			return nil, unsupported(reasonOpaqueCall, "constructing %s", c.name)
		}
		if err := in.checkAbstract(c); err != nil {
			return nil, err
		}
		return &Instance{class: c, fields: newFieldTable(c.hasDict)}, nil
	case hook.name == "type.__new__":
		return in.makeClass(c, arguments)
	case strings.HasSuffix(hook.name, "tuple.__new__"):
		return in.newTupleSubclass(c, arguments)
	}
	if made, done, err := in.newOfBuiltin(hook.name, c, arguments); done || err != nil {
		return made, err
	}
	return nil, unsupported(reasonOpaqueCall, "constructing %s", c.name)
}

func (in *Interpreter) newTupleSubclass(c *Class, arguments Arguments) (Value, error) {
	tuple := &Tuple{class: c}
	if len(arguments.Positional) == 0 {
		return tuple, nil
	}
	items, err := in.listOf(arguments.Positional[0])
	tuple.items = items
	return tuple, err
}

// inherits tells whether c is base or derives from it.
func (c *Class) inherits(base *Class) bool {
	if sameClass(c, base) {
		return true
	}
	if c.made != nil {
		for _, along := range c.made.order {
			if sameClass(along, base) {
				return true
			}
		}
		return false
	}
	if base.made != nil {
		return false
	}
	for _, id := range c.mro {
		if base.id != 0 && id == base.id {
			return true
		}
	}
	if base.id == 0 || c.id == 0 {
		return c.isSubclassOf(base.name)
	}
	return false
}
