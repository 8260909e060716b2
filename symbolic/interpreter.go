package symbolic

import (
	"github.com/cockroachdb/errors"
	"maps"
	"math"

	"fusee/bytecode"
	"fusee/graph"
	"fusee/guards"
	"fusee/trace"
)

// Limits of one capture: beyond them a graph break or plain Python is the better answer.
const (
	maxDepth = 200
	// recursive is how many frames of one code are a recursion that is not broken inside.
	recursive = 16
	// maxNesting bounds calls that call each other without a frame, such as methods of builtin types.
	maxNesting = 1500
	maxSteps   = 2_000_000
)

// Request is what the host asks to be captured; see docs/contracts.md, section 4.
type Request struct {
	Function   trace.ObjectID
	Parameters []trace.Reference // bound values, one for each parameter in order of the code's local variables
	State      graph.State
	Options    Options
	// FunctionsDisabled says that __torch_function__ of subclasses is not called at all.
	FunctionsDisabled bool
	// FunctionModes is the number of torch function modes that are on; those that are asked do nothing but call the function.
	FunctionModes int64
	Autocast      Autocast
	// Handling says that the function was called where an exception is being handled.
	Handling bool
	// Derive, when set, sees a graph with sizes or ints that change before its guards are written: what it decides about them is guarded too. It
	// also sees graphs that differentiate gradients; where it gives an error, those are left to Python.
	Derive func(*graph.Graph) error
}

// Options steer one capture.
type Options struct {
	FullGraph bool
	// AllNodes keeps operations whose results nobody reads: another backend shall see what the program does.
	AllNodes bool
	Dynamic  Dynamic
}

// Interpreter captures one function once. It is used for one attempt and thrown away; attempts differ in the steps that are
// forced to break.
type Interpreter struct {
	session       *trace.Session
	request       Request
	program       *guards.Program
	graph         *graph.Graph
	inputs        []*Tensor // the graph's tensor inputs in order
	arguments     []Value   // what the graph is called with: tensors and numbers
	values        map[trace.ObjectID]Value
	codes         map[*bytecode.Code]*codeInfo
	state         graph.State
	initial       graph.State
	autocast      Autocast
	effects       []effect
	released      map[trace.ObjectID]bool // objects that variables held and hold no longer
	templates     []trace.ObjectID        // classes made for this capture, which the rewritten code makes anew: guards look at them, so it keeps them
	frame         *Frame
	depth         int
	nesting       int
	steps         int
	activity      int // grows with everything that cannot be taken back
	outside       int // grows with every change of something that was there before the call
	classesMade   int
	plainFrom     int // the step from which is_compiling() is False
	toldCompiling int // the last step at which it was True, 0 for none
	forced        map[int]*Unsupported
	loops         map[int]bool // forced steps at which Python runs a whole loop
	leaving       *plainLoop   // the loop of the break that is being written
	nodesSeen     int
	tensorStep    int // the step of the last tensor operation
	tail          *adapter
	result        *Result
	classes       map[string]*Class
	builtins      map[string]Value
	notes         []Break
	warnings      []string
	numbers       map[*guards.Source]*Number
	symbols       map[string]*Number                // by name of the graph's symbol
	static        map[string]bool                   // keys of sources that are constants after all
	owners        map[trace.ObjectID]trace.ObjectID // of dicts that hold the attributes of an object
	choices       []*chosenTensor
	reshaped      []*reshapedTensor
	tensors       []*Tensor // made by the graph's nodes
	generators    []*Generator
	freed         []freedHistory // by gradients that the graph asks for
	derivation    derivation
	risks         []risk
	madeAt        map[*graph.Node]int // steps
	computed      map[*Constant]int   // steps
	nodesNoted    int                 // the number of nodes that have their steps
	retained      []retainedTensor
	hooks         []*gradientHook
	wired         []graph.Value // tensors that the host was told about, by number
	wiresShapes   bool          // sizes that change are told to the host as such
	// functionsDisabled counts what keeps __torch_function__ from being called; functionGuards are the steps at which the program did so.
	functionsDisabled int
	functionGuards    []int
	inferenceGuards   []*inferenceGuard // entered and not left, outermost first
	inferenceBlocks   []inferenceBlock
	representing      map[Value]bool            // containers whose repr is being written
	entered           map[*List]bool            // lists whose items become arguments of the graph now
	copied            map[*Instance]*customHash // hashes that a table being copied has stored
	// pythonOnly says that the graph holds an operation that only Python can run.
	pythonOnly bool
	// hosted holds the operations whose results the host told.
	hosted   map[*graph.Node]bool
	wrapping *Tensor // whose inner tensors are being described
	// deterministic is what the capture has set torch.use_deterministic_algorithms to, by the functions that read it.
	deterministic map[string]Value
	// defaultDeviceSet says that the capture has set the default device.
	defaultDeviceSet bool
	// compared holds the texts of the decisions on symbols that have guards.
	compared map[string]bool
}

// codeInfo is a code object decoded once.
type codeInfo struct {
	listing *bytecode.Listing
	index   map[*bytecode.Instruction]int
	live    [][]bool       // by instruction and variable, once asked for
	heads   []bool         // by instruction: whether a jump goes back to it
	bodies  map[int][]bool // of loops by their heads, once asked for
}

// errorBreak unwinds the interpreter after a break was compiled.
var errorBreak = errors.New("the capture ended at a graph break")

// restart asks for another attempt in which the instruction at a step breaks, or in which some numbers are constants from the start.
type restart struct {
	step    int
	reason  *Unsupported
	loop    bool // which is at the head of a loop that Python runs
	plainly bool // where is_compiling() was asked, and is to be False: what the program does for a compiler alone raised
	numbers []*Number
}

func (r *restart) Error() string { return "capture again, and break or pin numbers earlier" }

// Capture runs the request to its end or to the first graph break. The session's transport answers the questions.
func Capture(session *trace.Session, request Request) (*Result, error) {
	forced, static, owners := map[int]*Unsupported{}, map[string]bool{}, map[trace.ObjectID]trace.ObjectID{}
	loops, plainFrom := map[int]bool{}, math.MaxInt
	for attempt := 0; ; attempt++ {
		in := newInterpreter(session, request, forced)
		in.static, in.owners, in.loops, in.plainFrom = static, owners, loops, plainFrom
		err := in.capture()
		var again *restart
		if err == nil {
			return in.result, nil
		}
		if !errors.As(err, &again) || attempt > 100 || forced[again.step] != nil {
			return nil, err
		}
		if again.plainly {
			plainFrom = earlierPlain(plainFrom, again.step)
			maps.DeleteFunc(forced, func(step int, _ *Unsupported) bool { return step >= plainFrom })
			continue
		}
		for _, number := range again.numbers {
			static[number.key()] = true
		}
		if again.reason != nil {
			forced[again.step], loops[again.step] = again.reason, again.loop
		}
	}
}

// earlierPlain is the step from which is_compiling() is False in the next attempt: that of the last question answered otherwise, since what is done
// for a compiler keeps graphs whole, and the first one where that was not enough.
func earlierPlain(plainFrom, asked int) int {
	if plainFrom == math.MaxInt {
		return asked
	}
	return 0
}

func newInterpreter(session *trace.Session, request Request, forced map[int]*Unsupported) *Interpreter {
	return &Interpreter{
		session: session, request: request, program: guards.NewProgram(), graph: graph.NewGraph("graph"),
		values: map[trace.ObjectID]Value{}, codes: map[*bytecode.Code]*codeInfo{},
		state: request.State, initial: request.State, autocast: request.Autocast.clone(), functionsDisabled: countOf(request.FunctionsDisabled), forced: forced, classes: map[string]*Class{}, hosted: map[*graph.Node]bool{}, madeAt: map[*graph.Node]int{}, computed: map[*Constant]int{}, builtins: map[string]Value{}, released: map[trace.ObjectID]bool{},
		numbers: map[*guards.Source]*Number{}, symbols: map[string]*Number{}, representing: map[Value]bool{}, entered: map[*List]bool{}, compared: map[string]bool{},
	}
}

func countOf(is bool) int {
	if is {
		return 1
	}
	return 0
}

func (in *Interpreter) capture() error {
	function, err := in.function(request(in))
	if err != nil {
		return err
	}
	frame, err := in.entryFrame(function)
	if err != nil {
		return err
	}
	if name := tracingCall(frame.code.Names); name != "" {
		in.leaveToPython(frame, &Unsupported{reasonTracing, name})
		return nil
	}
	value, err := in.run(frame)
	if errors.Is(err, errorBreak) {
		return nil
	}
	var raised *Raised
	if errors.As(err, &raised) {
		if err := in.raisedForCompiler(raised.Exception); err != nil {
			return err
		}
		// Python itself raises it, at the instruction where it came up, with the user's own traceback.
		return &restart{step: raised.step, reason: &Unsupported{reasonException, raised.Exception.class.name}}
	}
	var stop *Unsupported
	if errors.As(err, &stop) {
		return errors.Newf("internal: %v was not turned into a break", stop)
	}
	if err != nil {
		return err
	}
	return in.finishReturn(frame, value)
}

func request(in *Interpreter) trace.ObjectID { return in.request.Function }

// function describes the function under capture. Its own identity is not guarded: entries are shared by all functions of one code object.
func (in *Interpreter) function(id trace.ObjectID) (*Function, error) {
	description, err := in.session.Object(id)
	if err != nil {
		return nil, err
	}
	value, err := in.describedFunction(description, nil)
	if err != nil {
		return nil, err
	}
	for i, cell := range value.closure {
		cell.object.source, cell.free = nil, i+1
		cell.content = in.relocate(cell.content, in.program.Root(guards.Accessor{Kind: "cell", Argument: int64(i)}))
	}
	value.globals.object.source = nil
	return value, nil
}

// relocate gives a still untouched value another place to be read from.
func (in *Interpreter) relocate(value Value, source *guards.Source) Value {
	if lazy, ok := value.(*Lazy); ok {
		return &Lazy{reference: lazy.reference, source: source}
	}
	return value
}

func (in *Interpreter) entryFrame(function *Function) (*Frame, error) {
	frame, err := in.newFrame(function)
	if err != nil {
		return nil, err
	}
	for i, reference := range in.request.Parameters {
		if i >= len(frame.locals) {
			return nil, errors.New("the request has more parameters than the code has variables")
		}
		if reference != nil {
			frame.locals[i] = &Lazy{reference: reference, source: in.program.Root(guards.Accessor{Kind: "arg", Argument: int64(i)})}
		}
	}
	frame.parameters = len(in.request.Parameters)
	frame.resumable = true
	return frame, nil
}

// reason is the user's line that is being walked now, for guards.
func (in *Interpreter) reason() guards.Position {
	for frame := in.frame; frame != nil; frame = frame.back {
		if line := frame.line(); line > 0 && !frame.internal() {
			return guards.Position{File: frame.code.FileName, Line: line}
		}
	}
	return guards.Position{}
}

// origin is the same line for graph nodes, with the calls that lead there.
func (in *Interpreter) origin() graph.Origin {
	position := in.reason()
	return graph.Origin{File: position.File, Line: position.Line, Call: in.frame.call()}
}

func (in *Interpreter) decode(code *bytecode.Code) (*codeInfo, error) {
	if known := in.codes[code]; known != nil {
		return known, nil
	}
	listing, err := bytecode.Decode(code)
	if err != nil {
		return nil, err
	}
	if err := listing.Verify(); err != nil {
		return nil, err
	}
	info := &codeInfo{listing: listing, index: make(map[*bytecode.Instruction]int, len(listing.Instructions))}
	for i, instruction := range listing.Instructions {
		info.index[instruction] = i
	}
	info.heads = loopHeads(listing, info.index)
	in.codes[code] = info
	return info, nil
}
