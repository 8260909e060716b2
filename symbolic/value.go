// Package symbolic walks CPython 3.11 bytecode over symbolic values: it appends tensor operations to a graph, records what it assumed
// as guards and what it changed as side effects, and cuts the program at the instructions that must run in Python.
//
// A value implements small interfaces, found by type assertion, that mirror CPython's type slots. A slot that is absent means that
// Python raises TypeError; a slot that exists and is not modelled yet returns *Unsupported, which becomes a graph break.
package symbolic

import (
	"cmp"

	"fusee/bytecode"
	"fusee/graph"
	"fusee/guards"
	"fusee/trace"
)

// Value is what a local variable, a stack entry or a container item holds during capture.
// Identity of Python objects is identity of Go pointers.
type Value interface {
	// typeName is the canonical name of the value's Python type.
	typeName() string
}

// attributeReader is tp_getattro of values whose attributes are modelled in Go.
type attributeReader interface {
	getAttribute(in *Interpreter, name string) (Value, error)
}

// attributeWriter is tp_setattro; a nil value deletes.
type attributeWriter interface {
	setAttribute(in *Interpreter, name string, value Value) error
}

// callable is tp_call.
type callable interface {
	call(in *Interpreter, arguments Arguments) (Value, error)
}

// iterable is tp_iter.
type iterable interface {
	iterate(in *Interpreter) (iterator, error)
}

// iterator is tp_iternext: next returns nil and no error at the end.
type iterator interface {
	Value
	next(in *Interpreter) (Value, error)
}

// sized is sq_length.
type sized interface {
	length(in *Interpreter) (int, error)
}

// indexable is mp_subscript.
type indexable interface {
	getItem(in *Interpreter, key Value) (Value, error)
}

// itemWriter is mp_ass_subscript; a nil value deletes.
type itemWriter interface {
	setItem(in *Interpreter, key, value Value) error
}

// truthTester is nb_bool.
type truthTester interface {
	truth(in *Interpreter) (bool, error)
}

// containing is sq_contains.
type containing interface {
	contains(in *Interpreter, item Value) (bool, error)
}

// Arguments of a call.
type Arguments struct {
	Positional []Value
	Keywords   []KeywordArgument
}

// KeywordArgument is one name=value of a call.
type KeywordArgument struct {
	Name  string
	Value Value
}

// Constant is an immutable value of a builtin type: None, bool, int, float, complex, str, bytes, Ellipsis, or NotImplemented.
type Constant struct{ Value bytecode.Object }

// notImplemented stands for Python's NotImplemented inside a Constant.
type notImplemented struct{}

// Lazy is a value of the host that nothing has looked at yet: using it adds the guards, moving it around does not.
type Lazy struct {
	reference trace.Reference
	source    *guards.Source
	value     Value
}

// Tensor is a torch.Tensor: an input of the graph once an operation uses it, or the output of a node.
type Tensor struct {
	value      graph.Value // nil until an existing tensor becomes an input
	meta       graph.Meta
	id         trace.ObjectID // 0 for tensors made during capture
	source     *guards.Source
	class      *Class
	attributes map[string]Value // Python attributes set during capture, or described
	gradient   Value            // .grad, once the capture set it
	view       bool
	array      bool      // the source is a numpy.ndarray
	wrapper    *wrapper  // set where it wraps other tensors
	outer      *Tensor   // the existing tensor that wraps it
	node       *hookNode // set where torch hangs the backward hooks of a module on it
}

// Tuple is an exact tuple, or an instance of a subclass when class is set (torch.Size, a named tuple, a structseq).
type Tuple struct {
	items  []Value
	class  *Class
	fields map[string]Value // attributes set on an instance of a subclass
	object *existing
}

// List is a list. An existing list is read item by item only when something looks into it.
type List struct {
	items    []Value
	object   *existing
	loaded   bool // items hold the whole contents; a new list is always loaded
	appended []Value
	changed  bool // more than appends happened
}

// Dict is a dict or one of its subclasses; keys keep insertion order.
type Dict struct {
	class   *Class // nil for an exact dict
	entries []*dictEntry
	index   map[any]*dictEntry
	object  *existing
	loaded  bool // an existing dict whose keys are all known and guarded
	factory Value
	globals bool      // a module's globals: keys are asked for one by one
	unknown []*Number // keys of stores whose place in the dict only the live dict knows
	custom  bool      // a key has a __hash__ or __eq__ of its own
	base    bool      // the live object's class derives from dict and may have methods of its own, which stores must not run again
}

type dictEntry struct {
	key, value Value
	deleted    bool
	fromHost   bool // present at entry of the call, unchanged
	again      bool // stored after it was deleted: it lies behind the entries there were
}

// Set is a set or frozenset.
type Set struct {
	items  []Value
	index  map[any]int
	frozen bool
	mixed  bool // the order of iteration is not that of a table into which the items came in their order
	object *existing
	code   *bytecode.Set // the constant of the program's code that this set is
	custom bool          // an item has a __hash__ or __eq__ of its own
	table  *setTable
	// shown is the step at which the program saw the order; arbitrary says that it saw one of many that might have been.
	shown     int
	arbitrary bool
	version   int // counts changes
}

// SliceValue is a slice object.
type SliceValue struct{ start, stop, step Value }

// Range is a range over constant bounds.
type Range struct{ start, stop, step int64 }

// Function is a Python function: existing, or made by MAKE_FUNCTION.
type Function struct {
	code               *bytecode.Code
	globals            *Dict
	name, qualname     string
	defaults           []Value
	defaultsID         trace.ObjectID // of the tuple that holds them, 0 for a new function
	keywordDefaults    *Dict
	closure            []*Cell
	object             *existing
	module             string
	treat, treatReason string
	builtins           map[string]bool
	attributes         map[string]Value
	attributeOrder     []string // names set during capture
	byCode             bool     // guarded by its code, defaults and cells: another function made by the same code may stand in its place
}

// Method is a bound method.
type Method struct {
	self     Value
	function Value
	object   *existing
}

// Builtin is a function or descriptor written in C, known by its canonical name; self is set when bound.
type Builtin struct {
	name       string
	self       Value
	flavor     string // as in the description of descriptors, "" for functions
	object     *existing
	descriptor *existing // that was bound
	toClass    bool      // bound to a class as a class method is, not to an instance of a metaclass
}

// Class is a type object.
type Class struct {
	id            trace.ObjectID // 0 for builtin types known only by name
	name          string
	mro           []trace.ObjectID
	baseNames     []string
	hasDict       bool
	source        *guards.Source
	ownAttributes map[string]Value
	remake        *Arguments // of collections.namedtuple, where the program calls it during capture
	made          *madeClass // set for a class that the program defines during capture
	shortName     string     // __name__ and __qualname__ of such a class
	qualified     string
}

// Instance is an object of a class written in Python (or an exception).
type Instance struct {
	class  *Class
	fields *fieldTable
	object *existing
	// base is the builtin value under an instance of a subclass of int, str, list and the like.
	base Value
	// arguments are an exception's args; origin is the step that raised it.
	exception *exceptionState
	module    bool // an nn.Module
	born      int  // the step that made an instance with a base
}

// fieldTable is an instance's own attributes: those of the host, read one by one, under those that the capture wrote.
type fieldTable struct {
	order   []string
	found   []string         // the live object's, in its order
	values  map[string]Value // nil value: known to be absent or deleted
	written map[string]bool
	host    map[string]trace.Reference
	slots   map[string]bool
	hasDict bool
	watched bool // the program made a weak reference to the instance
}

// existing links a value to the live object it came from.
type existing struct {
	id     trace.ObjectID
	source *guards.Source
}

// PythonModule is a module object.
type PythonModule struct {
	id      trace.ObjectID
	name    string
	source  *guards.Source
	class   *Class           // where it derives from the class of modules, as those of torch.backends do
	globals *Dict            // its __dict__, once asked for
	read    map[string]Value // attributes of a library's module
}

// Cell is a closure cell; content nil means empty.
type Cell struct {
	content Value
	object  *existing
	changed bool
	free    int // 1 + index among the free variables of the captured function; 0 for other cells
}

// LibraryValue is an immutable object of torch or the interpreter that is compared by identity or equality: a dtype, a device, a
// layout, an iinfo.
type LibraryValue struct {
	kind string // dtype, device, layout, memory_format, ...
	text string
	id   trace.ObjectID
	path *guards.Source
}

// Opaque is an object that capture knows nothing about; it can be moved and handed to Python.
type Opaque struct {
	object *existing
	kind   string
}

// null is the NULL that CPython keeps on its stack beside callables.
type null struct{}

// exceptionMarker is the saved exception that PUSH_EXC_INFO leaves under the one being handled, which it names: the handler may
// have popped that one from the stack and still be handling it.
type exceptionMarker struct{ exception Value }

// lastInstruction is the offset that some handlers push for RERAISE.
type lastInstruction struct{ offset int }

func (v *Constant) typeName() string        { return constantTypeName(v.Value) }
func (v *Lazy) typeName() string            { return "?" }
func (v *Tensor) typeName() string          { return tensorTypeName(v) }
func (v *Tuple) typeName() string           { return className(v.class, "tuple") }
func (v *List) typeName() string            { return "list" }
func (v *Dict) typeName() string            { return className(v.class, "dict") }
func (v *SliceValue) typeName() string      { return "slice" }
func (v *Range) typeName() string           { return "range" }
func (v *Function) typeName() string        { return "function" }
func (v *Method) typeName() string          { return "method" }
func (v *Class) typeName() string           { return "type" }
func (v *Instance) typeName() string        { return v.class.name }
func (v *PythonModule) typeName() string    { return "module" }
func (v *Cell) typeName() string            { return "cell" }
func (v *LibraryValue) typeName() string    { return libraryTypeName(v.kind) }
func (v *Opaque) typeName() string          { return v.kind }
func (v null) typeName() string             { return "NULL" }
func (v *exceptionMarker) typeName() string { return "exception state" }
func (v lastInstruction) typeName() string  { return "int" }

func (v *Set) typeName() string {
	if v.frozen {
		return "frozenset"
	}
	return "set"
}

// descriptorTypes names the types of descriptors by the flavor of what they describe.
var descriptorTypes = map[string]string{
	"method": "method_descriptor", "wrapper": "wrapper_descriptor", "getset": "getset_descriptor", "member": "member_descriptor",
}

func (v *Builtin) typeName() string {
	return cmp.Or(descriptorTypes[v.flavor], "builtin_function_or_method")
}

func tensorTypeName(v *Tensor) string {
	if v.class != nil {
		return v.class.name
	}
	if v.meta.Flags&graph.FlagParameter != 0 {
		return parameterClass
	}
	return "torch.Tensor"
}

func libraryTypeName(kind string) string {
	switch kind {
	case "dtype", "device", "layout", "memory_format", "Generator", "iinfo", "finfo":
		return "torch." + kind
	case "generator":
		return "torch._C.Generator"
	}
	return kind
}

func className(class *Class, builtin string) string {
	if class != nil {
		return class.name
	}
	return builtin
}

func constantTypeName(object bytecode.Object) string {
	switch object.(type) {
	case bytecode.NoneType:
		return "NoneType"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "float"
	case complex128:
		return "complex"
	case string:
		return "str"
	case bytecode.Bytes:
		return "bytes"
	case bytecode.EllipsisType:
		return "ellipsis"
	case notImplemented:
		return "NotImplementedType"
	}
	return "int"
}
