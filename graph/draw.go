package graph

import (
	"math"
	"slices"
)

// Drawing says how the random numbers of a graph are drawn where kernels draw them.
type Drawing struct {
	// Fused has the operators of a graph share one stream of numbers. Without it they are eager's own, which only a GPU's kernels can draw.
	Fused bool
	// On says for which type of device there are kernels that draw.
	On func(device string) bool
}

// Draw gives the graph in aten operators where those whose random numbers kernels can draw are written as formulas of uniform numbers, so that
// backward draws them again in the place of keeping them. It is the graph itself where there are none.
func (g *Graph) Draw(how Drawing, state State) (*Graph, error) {
	if !slices.ContainsFunc(g.Nodes, func(n *Node) bool { return n.Random }) {
		return g, nil
	}
	lowered, err := g.Lower()
	if err != nil {
		return nil, err
	}
	d := &drawer{how: how, state: state, chosen: map[*Node]*draw{}, before: map[*Node][]*draw{}}
	d.choose(lowered.Nodes)
	if len(d.chosen) == 0 {
		return g, nil
	}
	return d.write(lowered)
}

// draw is an operator whose numbers a kernel draws.
type draw struct {
	node   *Node
	row    drawRow
	meta   *Meta // of the tensor that eager fills
	dtype  DType // of the uniform numbers
	lanes  int64 // neighbours that a thread of eager's kernel takes at once; what the state says where it is lanesOfState
	given  *Input
	offset int64 // of the first element in the input's memory, in bytes
	state  Value
	number int64 // of the first tensor of uniform numbers, among those of the state
}

// lanesOfState stands for a number of lanes that follows from where an input begins in memory.
const lanesOfState = -1

// fieldsOfDraw are the numbers that describe a draw to the operator that reads the generator's state: elements, numbers that a thread takes of the
// generator at once, bytes of an element, the number of the input whose memory is read, −1 for memory of the graph's own, and the offset there.
const fieldsOfDraw = 5

func (d *draw) describe(inputs *[]Value) []Value {
	position := int64(-1)
	if d.given != nil {
		position = int64(len(*inputs))
		*inputs = append(*inputs, d.given)
	}
	return []Value{elements(d.meta), numbersAtOnce(d.dtype), int64(d.meta.DType.Bytes()), position, d.offset}
}

// numbersAtOnce is how many numbers of a type are made of the four words that the generator gives at once.
func numbersAtOnce(dtype DType) int64 {
	if dtype == Float64 {
		return 2
	}
	return 4
}

func elements(m *Meta) int64 {
	count := int64(1)
	for _, size := range m.Sizes {
		count *= size.Hint
	}
	return count
}

type drawer struct {
	how    Drawing
	state  State
	chosen map[*Node]*draw
	// before holds the draws of one state, by the node that it comes before: those between two operators that draw from the generator themselves.
	before map[*Node][]*draw
	*lowering
}

// choose finds the operators that are written as formulas.
func (d *drawer) choose(nodes []*Node) {
	var first *Node
	for _, n := range nodes {
		if first == nil {
			first = n
		}
		if !n.Random {
			continue
		}
		if chosen := d.drawOf(n); chosen != nil {
			d.chosen[n] = chosen
			d.before[first] = append(d.before[first], chosen)
			continue
		}
		if !d.how.Fused {
			first = nil
		}
	}
}

// drawOf is nil for operators that the library runs.
func (d *drawer) drawOf(n *Node) *draw {
	row, known := drawRows[n.Target]
	if !known || len(n.Outputs) != 1 || row.fusedOnly && !d.how.Fused {
		return nil
	}
	if generator, named := n.Argument("generator"); named && generator != nil {
		return nil
	}
	made := &draw{node: n, row: row, meta: &n.Outputs[0].Meta, lanes: 1}
	if !d.how.On(made.meta.Device.Type) || !row.fits(d, made) {
		return nil
	}
	made.dtype = row.uniform(made.meta.DType)
	if d.how.Fused {
		made.lanes = 0
		return made
	}
	if !d.reproducible(made) {
		return nil
	}
	return made
}

// reproducible says whether it is known which number eager draws for each element: sizes are, and its kernels count elements with 32 bits, in the
// order of memory.
func (d *drawer) reproducible(made *draw) bool {
	m := made.meta
	static := !slices.ContainsFunc(slices.Concat(m.Sizes, m.Strides), func(s Size) bool { return !s.IsStatic() })
	shapes := NewShapeEnvironment()
	if !static || m.Device.Type != "cuda" || !shapes.isDense(m) || elements(m) == 0 || elements(m)*int64(m.DType.Bytes()) > math.MaxInt32 {
		return false
	}
	return !made.row.vectors || d.vectorize(made)
}

// vectorize finds how many neighbours a thread of eager's dropout takes at once: 16 bytes, or less where the tensor begins between multiples of them
// or its number of elements is none. By single elements it counts in the order of the sizes.
func (d *drawer) vectorize(made *draw) bool {
	source := made.node.Args[0]
	meta, _ := MetaOf(source)
	bytes := int64(made.meta.DType.Bytes())
	inOrder := NewShapeEnvironment().isContiguous(meta)
	if !meta.Offset.IsStatic() {
		return false
	}
	start := meta.Offset.Hint * bytes
	if input, given := Owner(source).(*Input); given {
		made.given, made.offset, made.lanes = input, start-input.Meta.Offset.Hint*bytes, lanesOfState
		return inOrder && input.Meta.Offset.IsStatic() && input.Meta.DType == meta.DType
	}
	made.lanes = 16 / bytes
	for made.lanes > 1 && (elements(meta)%made.lanes != 0 || start%(made.lanes*bytes) != 0) {
		made.lanes /= 2
	}
	return inOrder || made.lanes > 1
}

// write copies a graph and writes what is drawn as formulas.
func (d *drawer) write(g *Graph) (*Graph, error) {
	empty, err := g.lowering(nil)
	if err != nil {
		return nil, err
	}
	d.lowering = empty
	for _, n := range g.Nodes {
		if err := d.readState(d.before[n]); err != nil {
			return nil, err
		}
		made := d.chosen[n]
		if made == nil {
			d.copyNode(n)
			continue
		}
		if err := d.replaceDraw(made); err != nil {
			return nil, err
		}
	}
	d.graph.Outputs, d.graph.Inference = d.replaceAll(g.Outputs), g.Inference
	return d.graph, nil
}

// readState appends what gives the draws their numbers: the state of the generator of a GPU, or one seed for all.
func (d *drawer) readState(draws []*draw) error {
	for len(draws) > 0 {
		device := draws[0].meta.Device
		var here, elsewhere []*draw
		for _, made := range draws {
			if made.meta.Device == device {
				here = append(here, made)
			} else {
				elsewhere = append(elsewhere, made)
			}
		}
		if err := d.readStateOf(device, here); err != nil {
			return err
		}
		draws = elsewhere
	}
	return nil
}

func (d *drawer) readStateOf(device Device, draws []*draw) error {
	var inputs, described []Value
	number := int64(0)
	for _, made := range draws {
		made.number = number
		number += int64(max(made.row.tensors, 1))
		if !d.how.Fused {
			described = append(described, made.describe(&inputs)...)
		}
	}
	var node *Node
	var err error
	state := State{DefaultDType: d.state.DefaultDType, Origin: draws[0].node.Origin}
	on := Keyword{"device", device}
	if d.how.Fused {
		one := List{Items: []Value{int64(1)}}
		node, err = d.graph.Call("aten.randint.low", []Value{int64(0), int64(math.MaxInt64), one}, []Keyword{{"dtype", Int64}, on}, state)
	} else {
		node, err = d.graph.Call(GeneratorStateTarget, []Value{List{Items: inputs}, List{Items: described}}, []Keyword{on}, state)
	}
	if err != nil {
		return err
	}
	for _, made := range draws {
		made.state = node.Output(0)
	}
	return nil
}

// GeneratorStateTarget is the operator that reads the state of a GPU's generator and moves it on by what eager would have drawn. UniformTarget gives
// uniform numbers above 0, up to 1, that follow from a state.
const (
	GeneratorStateTarget = ownModule + "generator_state"
	UniformTarget        = ownModule + "uniform"
)

// Draw says where an operation's random numbers come from.
type Draw struct {
	Origin Origin
	Target string // of the operator of the library that draws them; empty where a kernel does
	Fused  bool   // the kernel draws from one seed, and not what eager would
}

// Draws lists where a graph in aten operators draws random numbers, in order, once for each line and kind.
func (g *Graph) Draws() []Draw {
	states := map[*Node]bool{}
	var found []Draw
	note := func(d Draw) {
		if !slices.Contains(found, d) {
			found = append(found, d)
		}
	}
	for _, n := range g.Nodes {
		if state, made := firstArgument(n).(*Output); n.Target == UniformTarget && made {
			states[state.Node] = true
			note(Draw{Origin: n.Origin, Fused: n.Args[2] == Value(int64(0))})
		}
	}
	for _, n := range g.Nodes {
		if n.Random && !states[n] && n.Target != GeneratorStateTarget {
			note(Draw{Origin: n.Origin, Target: n.Target})
		}
	}
	return found
}

func firstArgument(n *Node) Value {
	if len(n.Args) == 0 {
		return nil
	}
	return n.Args[0]
}

// replaceDraw writes a draw's formula in the place of its node.
func (d *drawer) replaceDraw(made *draw) error {
	n, start := made.node, len(d.graph.Nodes)
	state := d.state
	state.Origin, state.GradMode = n.Origin, state.GradMode && !n.Unrecorded
	w := &drawWriter{graph: d.graph, state: state, draw: made, arguments: map[string]Value{}}
	op, values := n.Bound()
	for i, value := range values {
		w.arguments[op.Schema.Parameters[i].Name] = d.replace(value)
	}
	result := made.row.write(w)
	if w.err != nil {
		return w.err
	}
	if meta, _ := MetaOf(result); meta.DType != made.meta.DType || !d.graph.Shapes.AllEqual(meta.Sizes, made.meta.Sizes) || !d.graph.Shapes.AllEqual(meta.Strides, made.meta.Strides) {
		return unknown("a formula of random numbers that lie in memory in another order")
	}
	for _, added := range d.graph.Nodes[start:] {
		added.Checkpoint = n.Checkpoint
	}
	d.replaced[storageKey{node: n}] = result
	return nil
}
