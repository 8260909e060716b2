package backend

import (
	"slices"

	"fusee/backend/loop"
	"fusee/graph"
)

// Images of another size: each point of the result computes which element of the image it shows.

// resampling describes one side of an image that is resampled.
type resampling struct {
	*recipe
	dimension, rank int
	from, to        int64
	scale           float64 // of a step in the result, in steps in the image
	centered        bool    // positions are those of the elements' middles
}

// resampled reads one side for each of the last dimensions. Reads of single elements are no faster than a CPU's library where there are more of them than
// elements of the image.
func (r *recipe) resampled(width int) (self *tensor, sides []resampling) {
	self = r.tensor("input", 0)
	output, rank := r.node.Outputs[0].Meta, len(self.meta.Sizes)
	if r.failed || rank != width+2 || !known(self) || product(output.Sizes) == 0 || len(r.node.Outputs) != 1 {
		r.failed = true
		return self, nil
	}
	given := r.scales(width)
	for side := range width {
		s := resampling{recipe: r, dimension: 2 + side, rank: rank, from: self.meta.Sizes[2+side].Hint, to: output.Sizes[2+side].Hint}
		r.failed = r.failed || output.Sizes[2+side].Expr != nil
		s.scale = float64(float32(s.from) / float32(s.to))
		if given[side] > 0 {
			s.scale = float64(float32(1 / given[side]))
		}
		sides = append(sides, s)
	}
	return self, sides
}

// scales reads the factors that the caller gave, 0 where none: in a list, or each by itself.
func (r *recipe) scales(width int) []float64 {
	result, first := make([]float64, width), 2
	list, isList := r.argument("", first).(graph.List)
	for side := range width {
		var value graph.Value
		switch {
		case isList && len(list.Items) == width:
			value = list.Items[side]
		case !isList:
			value = r.argument("", first+side)
		}
		switch number := value.(type) {
		case nil:
		case float64:
			result[side] = number
		case int64:
			result[side] = float64(number)
		default:
			r.failed = true
		}
	}
	return result
}

// position appends a formula of the position along the side, in single precision as the library computes it.
func (s *resampling) position(dtype graph.DType, body *graph.Expression) *tensor {
	shape := unitSizes(s.rank)
	shape[s.dimension] = graph.Static(s.to)
	result := s.formulaIn("position", graph.Float32, s.fresh(dtype, shape), body)
	s.pending[len(s.pending)-1].operands = []operand{{scalar: &scalar{typ: loop.I64, slot: -1, counted: 1 + s.dimension}, as: loop.F32}}
	return result
}

// nearest is the place in the image that a place in the result shows.
func (s *resampling) nearest() *tensor {
	at := arg(0)
	if s.centered {
		at = apply("add", at, number(0.5))
	}
	place := apply("floor", apply("mul", at, number(s.scale)))
	return s.position(graph.Int64, apply("minimum", place, number(float64(s.from-1))))
}

// resampledAt reads the image at places along its sides.
func (r *recipe) resampledAt(self *tensor, sides []resampling, places []*tensor, output *tensor) *tensor {
	p := picking{indices: places, axes: make([]int, len(self.meta.Sizes))}
	for dimension := range p.axes {
		p.axes[dimension] = dimension
	}
	for _, side := range sides {
		p.axes[side.dimension], p.picked = -1, append(p.picked, side.dimension)
	}
	return r.pick(self, p, output)
}

// nearestNeighbour reads the element nearest to each point; exact says which one that is where the library's older rule errs.
func (r *recipe) nearestNeighbour(width int, exact bool) bool {
	self, sides := r.resampled(width)
	if r.failed {
		return false
	}
	for index := range sides {
		sides[index].centered = exact
	}
	if r.device.Type == "cpu" && !slices.ContainsFunc(sides, func(s resampling) bool { return !s.repeats() }) && r.repeated(self, sides) {
		return true
	}
	var places []*tensor
	for index := range sides {
		places = append(places, sides[index].nearest())
	}
	return r.commit(r.resampledAt(self, sides, places, r.result(0)))
}

// place is where nearest finds an element of the result, as the library computes it.
func (s *resampling) place(at int64) int64 {
	position := float32(at)
	if s.centered {
		position += 0.5
	}
	return min(int64(position*float32(s.scale)), s.from-1)
}

// repeats reports whether a side shows each element equally often.
func (s *resampling) repeats() bool {
	if s.to%s.from != 0 {
		return false
	}
	for at := range s.to {
		if s.place(at) != at/(s.to/s.from) {
			return false
		}
	}
	return true
}

// repeated copies an image each element of which the result shows equally often, to neighbouring places.
func (r *recipe) repeated(self *tensor, sides []resampling) bool {
	output, view := r.node.Outputs[0].Meta, self
	if !slices.EqualFunc(output.Strides, contiguousStrides(r.b.program.graph.Shapes, output.Sizes), sameSize) {
		return false
	}
	for _, side := range slices.Backward(sides) {
		view = view.split(side.dimension, side.from, 1)
		view.meta.Sizes[side.dimension+1], view.meta.Strides[side.dimension+1] = graph.Static(side.to/side.from), graph.Static(0)
	}
	return r.copyOf(view)
}
