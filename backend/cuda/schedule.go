package cuda

import (
	"math"
	"math/bits"
	"slices"

	"fusee/internal/slice"
)

// Choices measured on an H200; the package comment says more.
const (
	vectorBytes      = 16  // the widest plain load
	vectorElements   = 8   // of 16 signed bytes, NVRTC 13.0 for sm_90 leaves the maximum with 0 out of every fourth
	pointwiseThreads = 256 // per block
	warp             = 32
	groupThreads     = 128  // per block, where a warp or less reduces a row
	smallBlock       = 256  // threads of a row of up to smallBlock*2 vectors
	largeBlock       = 512  // threads of a longer row, and of one that fits in no registers
	hugeBlock        = 1024 // threads of a row that only so many can keep in registers
	flightBytes      = 64   // loads in flight per thread of a reduction; half for 2-byte elements
	unrolledWeight   = 96   // instructions in a loop body once it is unrolled; more costs compile time for nothing
	shortSteps       = 4    // of a row, which are unrolled whole
	shortWeight      = 192  // if they make no more instructions than this
	residentBytes    = 128  // registers per thread that may hold a row between stages
	columnsPerBlock  = 32   // outer points side by side when inner points are far apart
	columnRows       = 16   // at most so many inner points of a column at once
	longColumn       = 1024 // inner points from which all columnRows are used
)

// schedule says how the points of a nest are laid out over threads.
//
// Threads form groups; a group has one outer point and its threads share the inner points. In the row layout a group's
// threads are neighbours (thread = column*group + rank), so that they read neighbouring inner points; in the column layout
// they are apart (thread = rank*columns + column), so that neighbouring threads read neighbouring outer points.
type schedule struct {
	threads int  // per block
	group   int  // threads per outer point
	columns bool // column layout
	rows    int  // outer points that a group takes one after another
	vector  int  // neighbouring elements per thread: outer points of pointwise nests, inner points otherwise
	narrow  bool // 32-bit indices suffice
}

// items is the number of outer points per block.
func (s schedule) items(pointwise bool) int {
	if pointwise {
		return s.threads * s.vector
	}
	return s.threads / s.group * s.rows
}

func (n *nest) schedule() schedule {
	s := schedule{vector: 1, rows: 1, narrow: n.narrow()}
	if n.kernel.Pointwise() {
		s.threads, s.group, s.vector = pointwiseThreads, 1, n.pointwiseVector()
		return s
	}
	if n.prefersColumns() {
		s = n.columnSchedule(s)
	} else {
		s = n.rowSchedule(s)
	}
	if n.pieces != nil && s.items(false) > 1 && !n.evenPieces(s.vector) {
		s.vector = 1 // points of one block must agree on whether vectors fit
	}
	return s
}

// evenPieces reports whether every piece is a multiple of width.
func (n *nest) evenPieces(width int) bool { return n.pieceUnit()%int64(width) == 0 }

// longest returns the largest number of inner points of any stage; unknown sizes count as many.
func (n *nest) longest() int64 {
	longest := int64(1)
	for _, s := range n.stages {
		if s.dynamic {
			return math.MaxInt32
		}
		longest = max(longest, s.points)
	}
	return longest
}

func (n *nest) rowSchedule(s schedule) schedule {
	s.vector = n.innerVector()
	vectors := (n.longest() + int64(s.vector) - 1) / int64(s.vector)
	switch {
	case vectors <= 4*warp:
		s.threads, s.group = groupThreads, min(powerOfTwo(vectors), warp)
	case vectors <= 2*smallBlock:
		s.threads, s.group = smallBlock, smallBlock
	case vectors > 8*largeBlock && vectors <= 8*hugeBlock:
		s.threads, s.group = hugeBlock, hugeBlock
	default:
		s.threads, s.group = largeBlock, largeBlock
	}
	return s
}

// without takes back the threads that only keep rows in registers, unless they do.
func (s schedule) without(keepsRows bool) schedule {
	if s.threads == hugeBlock && !keepsRows {
		s.threads, s.group = largeBlock, largeBlock
	}
	return s
}

func (n *nest) columnSchedule(s schedule) schedule {
	s.columns, s.group = true, 1
	s.threads = groupThreads
	if longest := n.longest(); longest >= longColumn {
		s.group = columnRows
	} else if longest >= warp {
		s.group = columnRows / 4
	}
	if s.group > 1 {
		s.threads = s.group * columnsPerBlock
	}
	return s
}

// powerOfTwo returns the smallest power of two that is not below value.
func powerOfTwo(value int64) int { return 1 << bits.Len64(uint64(max(value, 1)-1)) }

// prefersColumns reports whether more inner accesses are dense along the last outer dimension than along the last inner one. Those that move along
// both dimensions decide, as they are most of what is read, unless there are none.
func (n *nest) prefersColumns() bool {
	if len(n.outer) == 0 {
		return false
	}
	var columns, rows [2]int // of all, and of those that move along both
	for _, in := range n.innerAccesses() {
		last, outer := in.strides[len(in.strides)-1], in.strides[len(n.outer)-1]
		both := 0
		if !last.is(0) && !outer.is(0) {
			both = 1
		}
		switch {
		case last.is(1):
			rows[both]++
		case outer.is(1):
			columns[both]++
		}
	}
	if rows[1]+columns[1] > 0 {
		return columns[1] > rows[1]
	}
	return columns[0] > rows[0]
}

// innerAccesses returns the loads and stores of stages with inner points.
func (n *nest) innerAccesses() []*instruction {
	var result []*instruction
	for i := range n.stages {
		if n.stages[i].hasInner {
			result = append(result, n.stages[i].accesses()...)
		}
	}
	return result
}

func (s *stage) accesses() []*instruction {
	var result []*instruction
	for _, in := range s.users() {
		if in.strides != nil {
			result = append(result, in)
		}
	}
	return result
}

// pointwiseVector returns how many neighbouring outer points a thread takes.
func (n *nest) pointwiseVector() int {
	if len(n.outer) == 0 || n.outer[len(n.outer)-1].is(1) {
		return 1
	}
	accesses := slice.FlatMap(n.stages, func(s stage) []*instruction { return s.accesses() })
	return widest(accesses, len(n.outer)-1, n.outer, len(n.outer) > 1)
}

// innerVector returns how many neighbouring inner points a thread takes; one number for all stages.
func (n *nest) innerVector() int {
	width := math.MaxInt
	for i := range n.stages {
		if s := &n.stages[i]; s.hasInner {
			width = min(width, widest(s.accesses(), len(n.outer)+len(s.inner)-1, s.inner, true))
		}
	}
	return width
}

// widest returns the largest power of two so that vectors of so many elements along dimension stay within vectorBytes and vectorElements and
// never start off their alignment by what is known now; when exact, they also must cover the last of sizes exactly.
func widest(accesses []*instruction, dimension int, sizes []extent, exact bool) int {
	largest := 0
	for _, in := range accesses {
		if in.strides[dimension].is(1) {
			largest = max(largest, in.Type.Bytes())
		}
	}
	if largest == 0 {
		return 1
	}
	width := min(vectorBytes/largest, vectorElements)
	for width > 1 && !fits(accesses, dimension, sizes[len(sizes)-1], int64(width), exact) {
		width /= 2
	}
	return width
}

func fits(accesses []*instruction, dimension int, row extent, width int64, exact bool) bool {
	if size, known := row.static(); known && (size < width || exact && size%width != 0) {
		return false
	}
	return !slices.ContainsFunc(accesses, func(in *instruction) bool {
		return in.strides[dimension].is(1) && !startsAligned(in, dimension, width)
	})
}

// startsAligned reports whether rows of the access can start at multiples of width; what scalar arguments decide is
// checked at run time.
func startsAligned(in *instruction, dimension int, width int64) bool {
	if offset, known := in.offset.static(); known && offset%width != 0 {
		return false
	}
	for d, stride := range in.strides {
		if value, known := stride.static(); known && d != dimension && value%width != 0 {
			return false
		}
	}
	return true
}

// narrow reports whether every index fits 31 bits, with room for the excess of the last block.
func (n *nest) narrow() bool {
	const limit = math.MaxInt32 - 1<<16
	if work, known := product(n.outer).static(); !known || work > limit {
		return false
	}
	for i := range n.stages {
		if n.stages[i].dynamic || n.stages[i].points > limit {
			return false
		}
		for _, in := range n.stages[i].accesses() {
			if !reachesAtMost(in, append(append([]extent{}, n.outer...), n.stages[i].inner...), limit) {
				return false
			}
		}
	}
	return true
}

// reachesAtMost reports whether the access stays within elements -limit…limit of its buffer, by static numbers.
func reachesAtMost(in *instruction, sizes []extent, limit int64) bool {
	offset, known := in.offset.static()
	reach := float64(magnitude(offset))
	for d, stride := range in.strides {
		size, sizeKnown := sizes[d].static()
		step, stepKnown := stride.static()
		known = known && sizeKnown && stepKnown
		reach += float64(max(size-1, 0)) * math.Abs(float64(step))
	}
	return known && reach <= float64(limit)
}
