package cuda

import (
	"cmp"
	"iter"
	"slices"

	"fusee/backend/loop"
	"fusee/internal/slice"
)

// nest is a kernel with as few dimensions as its accesses allow. Outer points may run in any order, so outer
// dimensions of pointwise kernels are also sorted to make the last one the densest in memory.
type nest struct {
	kernel *loop.Kernel
	outer  []extent
	stages []stage
	pieces *instruction // its dimension is the outer one that pieces of an inner one are counted along; nil for none
}

// stage is a stage of the kernel over merged dimensions.
type stage struct {
	inner    []extent
	body     []instruction
	dynamic  bool // the number of inner points is known at launch only
	points   int64
	hasInner bool
	late     []instruction // of the outer point, computed after the loop over inner points
}

// instruction adds what the emitter needs to an instruction of the loop IR.
type instruction struct {
	loop.Instruction
	value     loop.Value
	offset    extent
	strides   []extent // outer, then inner; nil without access
	indirect  []indirect
	partner   loop.Value // onlineMaximum: the sum
	dimension int        // OpIndex: position among the merged dimensions
}

// indirect is a dimension of a buffer that a load reads at a computed index.
type indirect struct{ stride, size extent }

// newNest merges the dimensions of kernel, which must have been verified.
func newNest(kernel *loop.Kernel) *nest {
	n := &nest{kernel: kernel, outer: extentsOf(kernel.Outer)}
	for i := range kernel.Stages {
		n.stages = append(n.stages, newStage(&kernel.Stages[i]))
	}
	if kernel.Span != nil {
		n.pieces = &instruction{Instruction: loop.Instruction{Op: loop.OpIndex}, dimension: kernel.Span.Dimension}
		n.countPieces()
	}
	if kernel.Pointwise() {
		n.sortOuter()
	}
	n.mergeOuter()
	for i := range n.stages {
		n.stages[i].mergeInner(len(n.outer))
	}
	return n
}

// countPieces has the length of a piece counted in units that pieces and the whole are multiples of, so that it is plain to see what divides it.
func (n *nest) countPieces() {
	unit := n.pieceUnit()
	for s := range n.stages {
		for d, size := range n.stages[s].inner {
			if slices.Contains(size.arguments, n.kernel.Scalars) {
				n.stages[s].inner[d].factor *= unit
			}
		}
	}
}

// pieceUnit is the greatest number known to divide every piece's length.
func (n *nest) pieceUnit() int64 {
	size, known := n.kernel.Span.Size.Static()
	total, alsoKnown := n.kernel.Span.Total.Static()
	if !known || !alsoKnown {
		return 1
	}
	for total != 0 {
		size, total = total, size%total
	}
	return max(size, 1)
}

func newStage(source *loop.Stage) stage {
	s := stage{inner: extentsOf(source.Inner), hasInner: len(source.Inner) > 0}
	for i, in := range source.Body {
		added := instruction{Instruction: in, value: source.First + loop.Value(i), dimension: in.Index}
		if in.Access != nil {
			added.offset, added.strides = extentOf(in.Access.Offset), extentsOf(in.Access.Strides)
			for _, dimension := range in.Access.Indirect {
				added.indirect = append(added.indirect, indirect{extentOf(dimension.Stride), extentOf(dimension.Size)})
			}
		}
		s.body = append(s.body, added)
	}
	points, known := product(s.inner).static()
	s.points, s.dynamic = points, !known
	return s
}

// sortOuter orders the outer dimensions by falling stride of the first store when all its strides are static.
func (n *nest) sortOuter() {
	store := n.firstStore()
	if store == nil {
		return
	}
	order := make([]int, len(n.outer))
	for d := range order {
		order[d] = d
		if _, known := store.strides[d].static(); !known {
			return
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(magnitude(store.strides[b].factor), magnitude(store.strides[a].factor))
	})
	n.permuteOuter(order)
}

func magnitude(value int64) int64 { return max(value, -value) }

func (n *nest) firstStore() *instruction {
	for in := range n.instructions() {
		if in.Op == loop.OpStore {
			return in
		}
	}
	return nil
}

// permuteOuter makes dimension order[d] the d-th.
func (n *nest) permuteOuter(order []int) {
	n.outer = permuted(n.outer, order)
	for in := range n.instructions() {
		if in.strides != nil {
			in.strides = append(permuted(in.strides[:len(order)], order), in.strides[len(order):]...)
		}
		if in.Op == loop.OpIndex && in.dimension < len(order) {
			in.dimension = slices.Index(order, in.dimension)
		}
	}
}

func permuted(values []extent, order []int) []extent {
	return slice.Map(order, func(from int) extent { return values[from] })
}

// mergeOuter merges neighbouring outer dimensions that every access walks as one, and drops those of size one.
func (n *nest) mergeOuter() {
	users := slice.FlatMap(n.stages, func(s stage) []*instruction { return s.users() })
	if n.pieces != nil {
		users = append(users, n.pieces)
	}
	n.outer = merge(n.outer, 0, users)
}

// mergeInner does the same for the stage's inner dimensions but keeps one of them.
func (s *stage) mergeInner(outer int) {
	if s.hasInner {
		s.inner = merge(s.inner, outer, s.users())
		if len(s.inner) == 0 {
			s.restoreUnitDimension()
		}
	}
}

func (s *stage) restoreUnitDimension() {
	s.inner = []extent{{factor: 1}}
	for _, in := range s.users() {
		if in.strides != nil {
			in.strides = append(in.strides, extent{})
		}
	}
}

// users returns the instructions that know of dimensions.
func (s *stage) users() []*instruction {
	var result []*instruction
	for i := range s.body {
		if in := &s.body[i]; in.strides != nil || in.Op == loop.OpIndex {
			result = append(result, in)
		}
	}
	return result
}

// merge simplifies sizes, which are dimensions base, base+1… of the users' accesses.
func merge(sizes []extent, base int, users []*instruction) []extent {
	sizes = slices.Clone(sizes)
	for d := len(sizes) - 1; d >= 0; d-- {
		switch {
		case indexed(users, base+d):
		case sizes[d].is(1):
			sizes = drop(sizes, d, base, users)
		case d+1 < len(sizes) && mergeable(users, base+d, sizes[d+1]):
			sizes[d+1] = sizes[d].times(sizes[d+1])
			sizes = drop(sizes, d, base, users)
		}
	}
	return sizes
}

// indexed reports whether some instruction asks for the position along dimension.
func indexed(users []*instruction, dimension int) bool {
	return slices.ContainsFunc(users, func(in *instruction) bool {
		return in.Op == loop.OpIndex && in.dimension == dimension
	})
}

// mergeable reports whether a step along dimension is size steps along the next one, in every access.
func mergeable(users []*instruction, dimension int, size extent) bool {
	return !indexed(users, dimension+1) && !slices.ContainsFunc(users, func(in *instruction) bool {
		return in.strides != nil && !in.strides[dimension].equal(in.strides[dimension+1].times(size))
	})
}

// drop removes dimension base+d everywhere.
func drop(sizes []extent, d, base int, users []*instruction) []extent {
	for _, in := range users {
		if in.strides != nil {
			in.strides = slices.Delete(slices.Clone(in.strides), base+d, base+d+1)
		}
		if in.Op == loop.OpIndex && in.dimension > base+d {
			in.dimension--
		}
	}
	return slices.Delete(sizes, d, d+1)
}

// instructions walks the bodies of all stages.
func (n *nest) instructions() iter.Seq[*instruction] {
	return func(yield func(*instruction) bool) {
		for s := range n.stages {
			for i := range n.stages[s].body {
				if !yield(&n.stages[s].body[i]) {
					return
				}
			}
		}
	}
}
