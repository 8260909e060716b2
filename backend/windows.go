package backend

import (
	"math"
	"slices"

	"fusee/backend/loop"
	"fusee/graph"
	"fusee/internal/slice"
)

// Maxima and means over small windows along the last dimensions, of which only the results are asked for: each point reads the elements of its window one
// after another, so that what is before and after is computed in the same pass.

// sides describes windows along the last dimensions of a tensor, by a number for each of them.
type sides struct {
	size, stride, padding, dilation []int64
	image, count                    []int64
	first                           int // dimension that the first side is
}

// windowed makes the result of an operator over windows, whose channels lie together where those of the image do.
func (r *recipe) windowed(self *tensor) *tensor {
	output := r.result(0)
	if _, arranged := r.b.arranging.declared[self]; arranged && len(output.meta.Sizes) == 4 {
		return r.b.arranged(output)
	}
	return output
}

// sides reads the arguments of an operator over windows; the recipe fails where windows are large or sizes are not known.
func (r *recipe) sides(self, output *tensor, width int) sides {
	rank := len(self.meta.Sizes)
	w := sides{first: rank - width}
	unknownToEager := width == 3 && r.device.Type == "cpu" && self.meta.DType.Bytes() < 4
	r.failed = r.failed || unknownToEager || w.first < 1 || w.first > 2 || !known(self) || !known(output) || len(output.meta.Sizes) != rank || product(output.meta.Sizes) == 0
	if r.failed {
		return w
	}
	w.size = r.perSide("kernel_size", 1, width, nil)
	w.stride = r.perSide("stride", 2, width, w.size)
	w.padding = r.perSide("padding", 3, width, make([]int64, width))
	w.dilation = slices.Repeat([]int64{1}, width)
	for side := range width {
		w.image, w.count = append(w.image, self.meta.Sizes[w.first+side].Hint), append(w.count, output.meta.Sizes[w.first+side].Hint)
		r.failed = r.failed || w.size[side] <= 0 || w.stride[side] <= 0 || w.image[side] > math.MaxInt32/4
	}
	r.failed = r.failed || w.elements() > mostWindowElements
	return w
}

// elements is the number of elements of a window.
func (w *sides) elements() int64 {
	result := int64(1)
	for _, size := range w.size {
		result *= size
	}
	return result
}

// perSide reads an argument of one number for all sides, or one for each.
func (r *recipe) perSide(name string, position, width int, otherwise []int64) []int64 {
	value := r.argument(name, position)
	if single, ok := value.(int64); ok {
		return slices.Repeat([]int64{single}, width)
	}
	list, ok := value.(graph.List)
	if !ok || len(list.Items) == 0 {
		r.failed = r.failed || otherwise == nil || value != nil && !ok
		return otherwise
	}
	numbers := r.numbers(name, position)
	if len(numbers) == 1 {
		numbers = slices.Repeat(numbers, width)
	}
	r.failed = r.failed || len(numbers) != width
	return numbers
}

// along appends a formula of the position along one side, its operand 0.
func (r *recipe) along(w *sides, side int, dtype graph.DType, body *graph.Expression) *tensor {
	shape := unitSizes(w.first + len(w.size))
	shape[w.first+side] = graph.Static(w.count[side])
	result := r.formulaIn("along", graph.Int32, r.fresh(dtype, shape), body)
	r.pending[len(r.pending)-1].operands = []operand{{scalar: &scalar{typ: loop.I64, slot: -1, counted: 1 + w.first + side}, as: loop.I32}}
	return result
}

// within says where the element that lies so far behind each window's begin lies in the image along one side; nil where it always does.
func (r *recipe) within(w *sides, side int, at int64) *tensor {
	first := at*w.dilation[side] - w.padding[side]
	if first >= 0 && (w.count[side]-1)*w.stride[side]+first < w.image[side] {
		return nil
	}
	place := apply("add", apply("mul", arg(0), number(w.stride[side])), number(first))
	return r.along(w, side, graph.Bool, apply("and", apply("ge", place, number(int64(0))), apply("lt", place, number(w.image[side]))))
}

// every is the conjunction of conditions, some of which may be nil, for always.
func (r *recipe) every(conditions []*tensor) *tensor {
	var result *tensor
	for _, condition := range conditions {
		switch {
		case condition == nil:
		case result == nil:
			result = condition
		default:
			sizes := slices.Clone(result.meta.Sizes)
			for dimension, size := range condition.meta.Sizes {
				if !isStatic(size, 1) {
					sizes[dimension] = size
				}
			}
			result = r.formula("and", r.fresh(graph.Bool, sizes), apply("and", arg(0), arg(1)), result, condition)
		}
	}
	return result
}

// inWindow reads the element of each window at a place in it, and another number where that lies outside.
func (r *recipe) inWindow(w *sides, self, like *tensor, place []int64, outside float64) *tensor {
	meta := like.meta
	meta.DType, meta.Strides = self.meta.DType, slices.Clone(self.meta.Strides)
	offset := self.meta.Offset.Hint
	var conditions []*tensor
	for side, at := range place {
		stride := self.meta.Strides[w.first+side].Hint
		meta.Strides[w.first+side] = graph.Static(stride * w.stride[side])
		offset += (at*w.dilation[side] - w.padding[side]) * stride
		conditions = append(conditions, r.within(w, side, at))
	}
	meta.Offset = graph.Static(offset)
	view, condition := self.under(meta), r.every(conditions)
	if condition == nil {
		return view
	}
	element := r.readWhere(operand{tensor: view, gather: &gathering{}}, picking{condition: condition}, r.freshLike(meta.DType, like))
	return r.choose("inside", meta.DType, r.freshLike(meta.DType, like), apply("where", arg(0), arg(1), number(outside)), condition, element)
}

// places lists the places in a window, the last side first.
func (w *sides) places() [][]int64 {
	result := [][]int64{nil}
	for _, size := range w.size {
		result = slice.FlatMap(result, func(place []int64) [][]int64 {
			var longer [][]int64
			for at := range size {
				longer = append(longer, append(slices.Clone(place), at))
			}
			return longer
		})
	}
	return result
}

// windowMaximum takes the first greatest element, NaN before all others.
func (r *recipe) windowMaximum(width int) bool {
	self := r.tensor("self", 0)
	if r.failed || r.used(1) || !self.meta.DType.IsFloat() {
		return false
	}
	output := r.windowed(self)
	w := r.sides(self, output, width)
	if r.failed {
		return false
	}
	w.dilation = r.perSide("dilation", 4, width, w.dilation)
	greatest := r.formula("least", r.freshLike(self.meta.DType, output), number(math.Inf(-1)))
	exceeds := apply("or", apply("gt", arg(1), arg(0)), apply("isnan", arg(1)))
	places := w.places()
	for index, place := range places {
		next := r.freshLike(self.meta.DType, output)
		if index == len(places)-1 {
			next = output
		}
		element := r.inWindow(&w, self, output, place, math.Inf(-1))
		greatest = r.formula("max_pool", next, apply("where", exceeds, arg(1), arg(0)), greatest, element)
	}
	if len(r.node.Outputs) == 1 {
		return r.commit(greatest)
	}
	return r.commit(greatest, r.formula("place", r.result(1), number(int64(0)))) // nothing reads the places, so that they are not computed
}

// windowMean divides the sum by the number of elements, those of the padding among them where the operator counts these.
func (r *recipe) windowMean(width int) bool {
	self := r.tensor("self", 0)
	if r.failed || len(r.node.Outputs) != 1 {
		return false
	}
	output, wide := r.windowed(self), r.wide(self.meta.DType)
	w := r.sides(self, output, width)
	if r.failed {
		return false
	}
	var total *tensor
	for _, place := range w.places() {
		element, next := r.inWindow(&w, self, output, place, 0), r.freshLike(wide, output)
		if total == nil {
			total = r.formula("avg_pool", next, arg(0), element)
		} else {
			total = r.formula("avg_pool", next, apply("add", arg(0), arg(1)), total, element)
		}
	}
	counted, divisors := r.divisors(&w)
	return r.commit(r.formulaIn("avg_pool", wide, output, apply("div", arg(0), counted), append([]*tensor{total}, divisors...)...))
}

// adaptiveMean is the mean of windows that divide the sides of an image evenly, on a CPU, whose library takes them element by element.
func (r *recipe) adaptiveMean(width int) bool {
	self := r.tensor("self", 0)
	if r.failed || len(r.node.Outputs) != 1 || r.device.Type != "cpu" || !known(self) {
		return false
	}
	output, wide := r.result(0), r.wide(self.meta.DType)
	split, count := self, int64(1)
	reduced := make([]bool, len(self.meta.Sizes))
	for dimension := len(self.meta.Sizes) - 1; dimension >= len(self.meta.Sizes)-width; dimension-- {
		from, to := self.meta.Sizes[dimension].Hint, output.meta.Sizes[dimension].Hint
		if to == 0 || from == 0 || from%to != 0 || output.meta.Sizes[dimension].Expr != nil {
			return false
		}
		split, count = split.split(dimension, to, from/to), count*(from/to)
		reduced = slices.Insert(reduced, dimension+1, true)
	}
	total := r.reduce(loop.Sum, split, reduced, wide, r.fresh(wide, kept(split.meta.Sizes, reduced)))
	return r.commit(r.formulaIn("avg_pool", wide, output, apply("div", arg(0), number(float64(count))), r.reshaped(total, output.meta.Sizes)))
}

// divisors is the number of elements of each window, as a formula whose operands begin at number 1.
func (r *recipe) divisors(w *sides) (counted *graph.Expression, operands []*tensor) {
	if divisor := r.argument("divisor_override", 6); divisor != nil {
		return number(r.number("divisor_override", 6, 1)), nil
	}
	padded, given := r.argument("count_include_pad", 5).(bool)
	padded = padded || !given
	counted = number(1.0)
	for side, size := range w.size {
		before, end := int64(0), w.image[side]
		if padded {
			before, end = w.padding[side], w.image[side]+w.padding[side]
		}
		first := -w.padding[side]
		if first >= -before && (w.count[side]-1)*w.stride[side]+first+size <= end {
			counted = apply("mul", counted, number(float64(size)))
			continue
		}
		start := apply("add", apply("mul", arg(0), number(w.stride[side])), number(first))
		low := apply("maximum", start, number(-before))
		high := apply("minimum", apply("add", start, number(size)), number(end))
		operands = append(operands, r.along(w, side, graph.Int32, apply("sub", high, low)))
		counted = apply("mul", counted, arg(len(operands)))
	}
	return counted, operands
}
