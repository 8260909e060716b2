package loop

// Mode says how a kernel uses a buffer.
type Mode uint8

// The modes.
const (
	Read Mode = iota
	Write
	ReadWrite // read and written at the same index only
)

// String returns the mode's name in the printed form.
func (m Mode) String() string { return [...]string{"read", "write", "readwrite"}[m%3] }

// Buffer is one pointer argument.
type Buffer struct {
	Name string // for people: of the graph's value
	Type Type
	Mode Mode
	// Constant says that nothing writes the buffer from the first kernel of its plan to the last.
	Constant bool
	// Alignment in bytes that emitters may assume of the pointer, a power of two; at least the element's size.
	Alignment int
}

// Access is a strided place in a buffer: element Offset + sum of index*Strides over the outer indices and then the stage's
// inner indices. Offset and strides count elements; a stride of 0 broadcasts. Indirect adds what values decide.
type Access struct {
	Buffer   int
	Offset   Int
	Strides  []Int
	Indirect []Indirect // of a load, as many as it has index arguments
}

// Indirect is a dimension of a buffer along which a load reads at an index that was computed: it adds index*Stride elements. The index lies in
// 0…Size-1; a load of another one fails the whole launch.
type Indirect struct {
	Stride, Size Int
}

// Value numbers the result of an instruction, counted through all stages of the kernel. Stores take a number too.
type Value int

// Instruction is one operation.
type Instruction struct {
	Op        Op
	Type      Type // of the result; of the stored value for a store
	Args      []Value
	Bits      Bits      // OpConstant
	Index     int       // OpArgument, OpIndex
	Access    *Access   // OpLoad, OpStore
	Reduction Reduction // OpReduce
	// Short admits a relative error of ShortError in an F32 result, which is rounded to 16 bits afterwards; for operations that HasShortForm only.
	Short bool
}

// ShortError is a sixteenth of what rounding to BF16 may change, relative to the result.
const ShortError = 0x1p-13

// Stage is a loop nest inside every outer point; without Inner the body runs once.
type Stage struct {
	Inner []Int
	First Value // number of Body[0]
	Body  []Instruction
}

// Kernel is one unit of code: called with a pointer for each buffer and a 64-bit integer for each scalar.
type Kernel struct {
	Name    string // a C identifier
	First   bool   // it must have waited for what ran before the plan when it lets the next kernel begin, as that reads constant buffers at once
	Buffers []Buffer
	Scalars int   // number of scalar arguments
	Outer   []Int // sizes of the parallel iteration, outermost first; empty: one point
	Stages  []Stage
	Span    *Span
	// Parts holds the numbers of outer points of kernels that run as one: each is this kernel over so many points, with pointers for all Buffers of
	// its own. The launch passes the pointers part by part, and the points of the parts are counted one after another. Nil for a kernel by itself.
	Parts []int64
}

// Span cuts an inner dimension of Total positions into pieces of Size, one for each position along an outer dimension, of which the last may be shorter
// and further ones empty. Inner sizes name the length of the point's piece as the scalar argument after the last one.
type Span struct {
	Dimension   int // of the outer ones
	Size, Total Int
}

// Work returns the number of outer points when all sizes are static; they are numbered row-major.
func (k *Kernel) Work() (int64, bool) {
	work := int64(1)
	for _, extent := range k.Outer {
		value, static := extent.Static()
		if !static {
			return 0, false
		}
		work *= value
	}
	return work, true
}

// Pointwise reports whether no stage has inner loops.
func (k *Kernel) Pointwise() bool {
	for index := range k.Stages {
		if len(k.Stages[index].Inner) > 0 {
			return false
		}
	}
	return true
}

// Values returns how many instructions there are in all stages.
func (k *Kernel) Values() int {
	if len(k.Stages) == 0 {
		return 0
	}
	last := &k.Stages[len(k.Stages)-1]
	return int(last.First) + len(last.Body)
}

// Instruction returns the instruction that defines value, or nil when there is none.
func (k *Kernel) Instruction(value Value) *Instruction {
	for index := range k.Stages {
		stage := &k.Stages[index]
		if value >= stage.First && int(value-stage.First) < len(stage.Body) {
			return &stage.Body[value-stage.First]
		}
	}
	return nil
}
