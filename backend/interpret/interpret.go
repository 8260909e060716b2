// Package interpret runs loop kernels in plain Go, slowly. It follows the loop IR's description word for word and so is what the code emitters are
// compared with.
package interpret

import (
	"slices"

	"fusee/backend/loop"
)

// Memory is what a buffer's pointer points to. Elements are encoded as constants of the element type are.
type Memory interface {
	Load(index int64) loop.Bits
	Store(index int64, value loop.Bits)
}

// Options choose how to compute.
type Options struct {
	// Exact computes in float64 wherever the kernel says float32, float16 or bfloat16, and rounds nowhere. Buffers should then be of a Memory that
	// keeps float64.
	Exact bool
}

// Run executes outer points begin…end of a verified kernel, numbered row-major. It reports whether all indices that were computed lay in range.
func Run(kernel *loop.Kernel, buffers []Memory, scalars []int64, begin, end int64, options Options) bool {
	if kernel.Parts != nil {
		return runParts(kernel, buffers, scalars, begin, end, options)
	}
	m := &machine{kernel: kernel, buffers: buffers, scalars: append(slices.Clone(scalars), 0), exact: options.Exact, values: make([]loop.Bits, kernel.Values())}
	m.index = make([]int64, len(kernel.Outer))
	for point := begin; point < end; point++ {
		m.decompose(point)
		for stage := range kernel.Stages {
			m.stage(&kernel.Stages[stage])
		}
	}
	return !m.failed
}

// runParts runs the points of each part that lie between begin and end.
func runParts(kernel *loop.Kernel, buffers []Memory, scalars []int64, begin, end int64, options Options) bool {
	first, ok := int64(0), true
	for number, points := range kernel.Parts {
		part, count := *kernel, len(kernel.Buffers)
		part.Parts = nil
		if len(kernel.Outer) > 0 {
			part.Outer = loop.Statics(points)
		}
		ok = Run(&part, buffers[number*count:(number+1)*count], scalars, max(begin-first, 0), min(end-first, points), options) && ok
		first += points
	}
	return ok
}

// machine is the state at one point.
type machine struct {
	kernel  *loop.Kernel
	buffers []Memory
	scalars []int64
	exact   bool
	index   []int64
	values  []loop.Bits
	failed  bool                        // an index was out of range
	inner   int64                       // row-major number of the inner point
	sums    map[loop.Value]*accumulator // of the open stage
}

func (m *machine) int(value loop.Int) int64 {
	if argument, ok := value.Argument(); ok {
		return m.scalars[argument]
	}
	number, _ := value.Static()
	return number
}

// decompose sets the outer indices of a point.
func (m *machine) decompose(point int64) {
	outer := m.kernel.Outer
	m.index = m.index[:len(outer)]
	for dimension := len(outer) - 1; dimension >= 0; dimension-- {
		size := m.int(outer[dimension])
		m.index[dimension] = point % size
		point /= size
	}
	if span := m.kernel.Span; span != nil {
		size := m.int(span.Size)
		m.scalars[m.kernel.Scalars] = max(0, min(size, m.int(span.Total)-m.index[span.Dimension]*size))
	}
}

func (m *machine) stage(stage *loop.Stage) {
	if len(stage.Inner) == 0 {
		m.body(stage)
		return
	}
	m.sums = map[loop.Value]*accumulator{}
	for position := range stage.Body {
		if in := &stage.Body[position]; in.Op == loop.OpReduce {
			typ := m.kernel.Instruction(in.Args[0]).Type
			m.sums[stage.First+loop.Value(position)] = newAccumulator(in.Reduction, typ)
		}
	}
	m.inner = 0
	m.nest(stage, 0)
	for value, sum := range m.sums {
		m.values[value] = sum.result()
	}
}

func (m *machine) nest(stage *loop.Stage, level int) {
	if level == len(stage.Inner) {
		m.body(stage)
		m.inner++
		return
	}
	m.index = append(m.index, 0)
	dimension, size := len(m.index)-1, m.int(stage.Inner[level])
	for position := range size {
		m.index[dimension] = position
		m.nest(stage, level+1)
	}
	m.index = m.index[:dimension]
}

func (m *machine) body(stage *loop.Stage) {
	for position := range stage.Body {
		m.instruction(stage.First+loop.Value(position), &stage.Body[position])
	}
}

func (m *machine) address(access *loop.Access) int64 {
	address := m.int(access.Offset)
	for dimension, stride := range access.Strides {
		address += m.index[dimension] * m.int(stride)
	}
	return address
}

func (m *machine) instruction(value loop.Value, in *loop.Instruction) {
	switch in.Op {
	case loop.OpConstant:
		m.values[value] = in.Bits
	case loop.OpArgument:
		m.values[value] = loop.Bits(m.scalars[in.Index])
	case loop.OpIndex:
		m.values[value] = loop.IntBits(m.index[in.Index])
	case loop.OpLoad:
		m.values[value] = m.load(in)
	case loop.OpStore:
		if len(in.Args) == 1 || m.values[in.Args[1]].Bool() {
			m.buffers[in.Access.Buffer].Store(m.address(in.Access), m.values[in.Args[0]])
		}
	case loop.OpReduce:
		m.sums[value].add(m, m.values[in.Args[0]])
	default:
		m.values[value] = m.compute(in)
	}
}

func (m *machine) load(in *loop.Instruction) loop.Bits {
	if len(in.Args) > 0 && !m.values[in.Args[0]].Bool() {
		return 0
	}
	address := m.address(in.Access)
	for number, indirect := range in.Access.Indirect {
		index := m.values[in.Args[1+number]].Int()
		if index < 0 || index >= m.int(indirect.Size) {
			m.failed = true
			return 0
		}
		address += index * m.int(indirect.Stride)
	}
	return m.buffers[in.Access.Buffer].Load(address)
}

func (m *machine) compute(in *loop.Instruction) loop.Bits {
	from := m.kernel.Instruction(in.Args[0]).Type
	args := make([]loop.Bits, len(in.Args))
	for index, arg := range in.Args {
		args[index] = m.values[arg]
	}
	switch in.Op {
	case loop.OpSelect:
		if args[0].Bool() {
			return args[1]
		}
		return args[2]
	case loop.OpCast:
		return Cast(from, in.Type, args[0], m.exact)
	case loop.OpBitcast:
		return bitcast(from, in.Type, args[0])
	}
	return m.round(in.Type, Apply(in.Op, from, args))
}

// round brings a result of a floating-point operation to its type's precision.
func (m *machine) round(typ loop.Type, value loop.Bits) loop.Bits {
	if typ == loop.F32 && !m.exact {
		return loop.FloatBits(float64(float32(value.Float())))
	}
	return value
}
