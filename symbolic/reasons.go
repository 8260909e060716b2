package symbolic

import "fmt"

// Reason is one row of the table of break reasons: why the interpreter hands an instruction to Python.
type Reason struct {
	ID      string // stable, shown to people and tested for
	Message string
	Hint    string
	Example string // a line of Python that breaks for this reason
}

// Reasons is the table of every reason for a graph break, in the order in which the documentation lists them.
var (
	reasonBranch        = &Reason{"tensor-branch", "control flow depends on the value of a tensor", "use torch.where or torch.cond, or compute the condition outside the compiled function", "if x.sum() > 0: ..."}
	reasonTensorValue   = &Reason{"tensor-value", "a Python value is read from a tensor", "keep the computation in tensors, or read values outside the compiled function", "n = x.item()"}
	reasonBuiltinCall   = &Reason{"builtin-call", "a function written in C is not modelled", "move the call out of the compiled function if it is hot", "time.sleep(0)"}
	reasonOpaqueCall    = &Reason{"opaque-call", "the called object is not understood", "call a Python function or a torch function instead", "handle(x)"}
	reasonDisabled      = &Reason{"disabled", "the function is marked to run in plain Python", "remove the mark if the function should be captured", "@fusee.disable"}
	reasonRequested     = &Reason{"requested", "the program asked for a graph break", "remove the call to graph_break()", "fusee.graph_break()"}
	reasonOutput        = &Reason{"output", "text is written", "print outside the compiled function, or accept the break", "print(x)"}
	reasonTensorCall    = &Reason{"tensor-call", "a torch operation cannot be captured", "run it outside the compiled function", "torch.nonzero(x)"}
	reasonAttribute     = &Reason{"attribute", "an attribute of this object is not modelled", "read it outside the compiled function", "obj.attribute"}
	reasonOperator      = &Reason{"operator", "an operator between these objects is not modelled", "convert the operands first", "a @ b"}
	reasonItem          = &Reason{"item", "reading or writing an item of this object is not modelled", "use a list, tuple or dict", "obj[key]"}
	reasonIteration     = &Reason{"iteration", "iterating over this object is not modelled", "turn it into a list first", "for item in obj: ..."}
	reasonInstruction   = &Reason{"instruction", "this bytecode instruction is not modelled", "write it another way if the code is hot", "async with lock: ..."}
	reasonImport        = &Reason{"import", "a module is imported", "import at the top of the file", "import json"}
	reasonClass         = &Reason{"class-definition", "a class is defined inside the function", "define the class outside", "class Local: ..."}
	reasonGenerator     = &Reason{"generator", "a generator, coroutine or iterator cannot cross this point", "finish the generator first", "gen = make(); print(next(gen))"}
	reasonException     = &Reason{"exception", "an exception leaves the function", "nothing to do: Python raises it with its full traceback", "raise ValueError(x)"}
	reasonContext       = &Reason{"context-manager", "a context manager is not modelled", "enter it outside the compiled function", "with lock: ..."}
	reasonRandom        = &Reason{"random", "Python's random numbers are drawn", "draw them outside the compiled function", "random.random()"}
	reasonReconstruct   = &Reason{"reconstruct", "a value made during capture cannot be handed to Python", "return tensors, containers or plain objects", "return iter(items)"}
	reasonMutation      = &Reason{"mutation", "a change to this object is not modelled", "make a new object instead", "obj.attribute = value"}
	reasonDepth         = &Reason{"depth", "calls are nested too deeply", "lower the recursion depth", "f(n - 1)"}
	reasonLength        = &Reason{"length", "the function runs too many instructions to unroll", "use fewer Python iterations in the compiled function", "for i in range(10**6): ..."}
	reasonForced        = &Reason{"call", "the call cannot be continued inside", "see the reason of the inner break", "sorted(items, key=f)"}
	reasonAutograd      = &Reason{"autograd-call", "a call into autograd runs in Python", "call it outside the compiled function", "x.register_hook(f)"}
	reasonTransform     = &Reason{"function-transform", "a function is transformed by torch.func", "apply the transform outside the compiled function", "torch.func.grad(f)(x)"}
	reasonHigherOrder   = &Reason{"higher-order", "an operator that takes functions runs in Python", "call it outside the compiled function", "torch.ops.higher_order.map_impl(f, xs, args)"}
	reasonConditional   = &Reason{"conditional", "torch.cond takes one of two ways by the value of a tensor", "nothing to do: each way is captured when it is taken, also under fullgraph", "torch.cond(x.sum() > 0, f, g, (x,))"}
	reasonCheckpoint    = &Reason{"checkpoint", "a checkpoint is asked to do more than to compute the same again", "have its function change nothing, and leave out context_fn", "checkpoint(block, x, context_fn=f)"}
	reasonTensorSub     = &Reason{"tensor-subclass", "a tensor subclass or a wrapped tensor is used", "use a plain torch.Tensor", "MyTensor(x) + 1"}
	reasonIdentity      = &Reason{"identity", "the identity of two objects is not known", "compare with == instead of is", "a is b"}
	reasonComparison    = &Reason{"comparison", "comparing these objects is not modelled", "compare plain values", "a < b"}
	reasonFormatting    = &Reason{"formatting", "an object is turned into text", "format it outside the compiled function", "f'{x}'"}
	reasonGlobalState   = &Reason{"global-state", "the program changes torch's global state", "change it outside the compiled function", "torch.set_default_dtype(d)"}
	reasonUserAttribute = &Reason{"dynamic-attribute", "attribute access runs code that is not modelled", "use a plain attribute", "obj.attribute"}
	reasonHash          = &Reason{"hash", "a dict or set holds keys whose equality is not modelled", "use strings, numbers or tuples of them as keys", "table[obj]"}
	reasonTracing       = &Reason{"trace-function", "a function that sets a trace function runs in Python to its end, as each line after it is seen", "set it in a function of its own, outside the compiled one", "sys.settrace(tracer)"}
)

// Reasons lists the table.
func Reasons() []*Reason {
	return []*Reason{reasonBranch, reasonTensorValue, reasonBuiltinCall, reasonOpaqueCall, reasonDisabled, reasonRequested, reasonOutput, reasonTensorCall,
		reasonAttribute, reasonOperator, reasonItem, reasonIteration, reasonInstruction, reasonImport, reasonClass, reasonGenerator, reasonException,
		reasonContext, reasonRandom, reasonReconstruct, reasonMutation, reasonDepth, reasonLength, reasonForced, reasonAutograd, reasonTransform, reasonHigherOrder,
		reasonConditional, reasonCheckpoint, reasonTensorSub,
		reasonIdentity, reasonComparison, reasonFormatting, reasonGlobalState, reasonUserAttribute, reasonHash, reasonTracing}
}

// Unsupported says that an instruction must run in Python. It is control flow, not a failure.
type Unsupported struct {
	Reason *Reason
	Detail string
}

func (u *Unsupported) Error() string {
	if u.Detail == "" {
		return u.Reason.Message
	}
	return u.Reason.Message + ": " + u.Detail
}

func unsupported(reason *Reason, format string, arguments ...any) error {
	return &Unsupported{reason, fmt.Sprintf(format, arguments...)}
}

// Raised is a Python exception observed during capture.
type Raised struct {
	Exception *Instance
	// step is where it was raised first, so that an exception which leaves the function can be raised by Python itself.
	step int
}

func (r *Raised) Error() string { return "Python raised " + r.Exception.class.name }
