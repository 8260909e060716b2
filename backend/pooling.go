package backend

import (
	"math"
	"slices"

	"fusee/backend/loop"
	"fusee/graph"
	"fusee/internal/slice"
)

// Maxima over windows of images that are trained, on a GPU: the library takes two to four times as long as memory does, in both directions.

// windows says which elements of an image, [N, C, H, W], the maxima are taken over. All pairs are height and width.
type windows struct {
	size, stride, padding [2]int64
	image, count          [2]int64
}

// mostWindowElements bounds the length of the kernels, which read each element of a window, or each window of an element, one after another.
const mostWindowElements = 9

// windows reads the arguments that the operator and its gradient have in common; the recipe fails where windows have gaps, or sizes are not known.
func (r *recipe) windows(image, maxima *tensor, position int) windows {
	w := windows{size: r.pair("kernel_size", position, [2]int64{})}
	w.stride = r.pair("stride", position+1, w.size)
	w.padding = r.pair("padding", position+2, [2]int64{})
	apart := r.pair("dilation", position+3, [2]int64{1, 1})
	plain := r.device.Type == "cuda" && len(image.meta.Sizes) == 4 && len(maxima.meta.Sizes) == 4 && apart == [2]int64{1, 1}
	if r.failed || !plain || !known(image) || !known(maxima) || image.meta.DType == graph.Bool || product(image.meta.Sizes) == 0 {
		r.failed = true
		return w
	}
	for side := range 2 {
		w.image[side], w.count[side] = image.meta.Sizes[2+side].Hint, maxima.meta.Sizes[2+side].Hint
		r.failed = r.failed || w.size[side] <= 0 || w.stride[side] <= 0 || w.padding[side] >= w.size[side]
	}
	r.failed = r.failed || w.image[0]*w.image[1] > math.MaxInt32
	return w
}

// pair reads an argument of one number for both sides, or one for each.
func (r *recipe) pair(name string, position int, otherwise [2]int64) [2]int64 {
	list, ok := r.argument(name, position).(graph.List)
	if value, single := r.argument(name, position).(int64); single {
		list, ok = graph.List{Items: []graph.Value{value}}, true
	}
	if !ok || len(list.Items) == 0 {
		return otherwise
	}
	first, isFirst := list.Items[0].(int64)
	last, isLast := list.Items[len(list.Items)-1].(int64)
	r.failed = r.failed || !isFirst || !isLast || len(list.Items) > 2
	return [2]int64{first, last}
}

// counting2D appends a formula of int32 positions along the sides given, its operands; the result has one element for each position.
func (r *recipe) counting2D(name string, dtype graph.DType, body *graph.Expression, sizes [2]int64, sides ...int) *tensor {
	shape := unitSizes(4)
	for _, side := range sides {
		shape[2+side] = graph.Static(sizes[side])
	}
	result := r.formulaIn(name, graph.Int32, r.fresh(dtype, shape), body)
	r.pending[len(r.pending)-1].operands = slice.Map(sides, counter)
	return result
}

// counter is the position along one side of an image.
func counter(side int) operand {
	return operand{scalar: &scalar{typ: loop.I64, slot: -1, counted: 3 + side}, as: loop.I32}
}

// choose is formulaIn whose operand 0 is a condition.
func (r *recipe) choose(name string, dtype graph.DType, output *tensor, body *graph.Expression, operands ...*tensor) *tensor {
	result := r.formulaIn(name, dtype, output, body, operands...)
	r.pending[len(r.pending)-1].operands[0].as = loop.Bool
	return result
}

// both is the conjunction of conditions on the rows and on the columns of an image, either of which may be nil, for always.
func (r *recipe) both(rows, columns *tensor) *tensor {
	if rows == nil {
		return columns
	}
	if columns == nil {
		return rows
	}
	sizes := unitSizes(4)
	sizes[2], sizes[3] = rows.meta.Sizes[2], columns.meta.Sizes[3]
	return r.formula("and", r.fresh(graph.Bool, sizes), apply("and", arg(0), arg(1)), rows, columns)
}

// readWhere reads a tensor where a condition holds, and 0 elsewhere.
func (r *recipe) readWhere(view operand, p picking, output *tensor) *tensor {
	typ, _ := machineType(view.tensor.meta.DType)
	view.as = typ
	op := &operation{kind: pointwise, name: "window", node: r.node, body: arg(0), compute: computeType(typ), result: typ, outputs: []*tensor{output}, operands: []operand{view}}
	r.addIndices(op, p, output)
	r.pending = append(r.pending, op)
	return output
}

// maxPool takes the first greatest element of each window, NaN before all others, and its place in the image.
func (r *recipe) maxPool() bool {
	self := r.tensor("self", 0)
	if !r.failed && !r.used(1) {
		return r.windowMaximum(2)
	}
	if r.failed || len(r.node.Outputs) != 2 || !self.meta.DType.IsFloat() {
		return false
	}
	values := r.result(0)
	w := r.windows(self, values, 1)
	elements := w.size[0] * w.size[1]
	if r.failed || elements < 2 || elements > mostWindowElements {
		return false
	}
	best, chosen := r.windowElement(w, self, 0, values), r.firstInside(w, values)
	for number := int64(1); number < elements; number++ {
		next := r.freshLike(self.meta.DType, values)
		if number == elements-1 {
			next = values
		}
		best, chosen = r.greater(r.windowElement(w, self, number, values), number, best, chosen, next)
	}
	return r.commit(best, r.placeInImage(w, chosen))
}

// greater compares an element of each window with the best before it, whose number is chosen.
func (r *recipe) greater(element *tensor, at int64, best, chosen, next *tensor) (greatest, its *tensor) {
	exceeds := apply("or", apply("gt", arg(0), arg(1)), apply("ne", arg(0), arg(0)))
	better := r.formulaIn("greater", element.meta.DType, r.freshLike(graph.Bool, next), exceeds, element, best)
	greatest = r.choose("max_pool2d", next.meta.DType, next, apply("where", arg(0), arg(1), arg(2)), better, element, best)
	its = r.choose("chosen", graph.Int32, r.freshLike(graph.Int32, next), apply("where", arg(0), number(at), arg(1)), better, chosen)
	return greatest, its
}

// insideImage says where element number at of a window, counted along one side, lies in the image; nil where it always does.
func (r *recipe) insideImage(w windows, side int, at int64) *tensor {
	first := at - w.padding[side]
	if last := (w.count[side]-1)*w.stride[side] + first; first >= 0 && last < w.image[side] {
		return nil
	}
	place := apply("add", apply("mul", arg(0), number(w.stride[side])), number(first))
	body := apply("and", apply("ge", place, number(int64(0))), apply("lt", place, number(w.image[side])))
	return r.counting2D("inside", graph.Bool, body, w.count, side)
}

// windowElement reads an element of each window; what lies outside of the image is less than all that does not.
func (r *recipe) windowElement(w windows, self *tensor, at int64, values *tensor) *tensor {
	row, column := at/w.size[1], at%w.size[1]
	meta := values.meta
	meta.DType, meta.Strides = self.meta.DType, slices.Clone(self.meta.Strides)
	offset := self.meta.Offset.Hint
	for side, place := range [2]int64{row, column} {
		stride := self.meta.Strides[2+side].Hint
		meta.Strides[2+side] = graph.Static(stride * w.stride[side])
		offset += (place - w.padding[side]) * stride
	}
	meta.Offset = graph.Static(offset)
	view := self.under(meta)
	condition := r.both(r.insideImage(w, 0, row), r.insideImage(w, 1, column))
	if condition == nil {
		return view
	}
	element := r.readWhere(operand{tensor: view, gather: &gathering{}}, picking{condition: condition}, r.freshLike(meta.DType, values))
	return r.choose("inside", meta.DType, r.freshLike(meta.DType, values), apply("where", arg(0), arg(1), number(math.Inf(-1))), condition, element)
}

// firstInside numbers the first element of each window that lies in the image.
func (r *recipe) firstInside(w windows, values *tensor) *tensor {
	outside := func(side int) *graph.Expression {
		return apply("maximum", apply("sub", number(w.padding[side]), apply("mul", arg(side), number(w.stride[side]))), number(int64(0)))
	}
	return r.counting2D("first", graph.Int32, apply("add", apply("mul", outside(0), number(w.size[1])), outside(1)), w.count, 0, 1)
}

// placeInImage turns the number of an element of each window into its place in the image.
func (r *recipe) placeInImage(w windows, chosen *tensor) *tensor {
	from := func(side int, within *graph.Expression) *graph.Expression {
		return apply("add", apply("sub", apply("mul", arg(1+side), number(w.stride[side])), number(w.padding[side])), within)
	}
	row, column := from(0, apply("truncdiv", arg(0), number(w.size[1]))), from(1, apply("fmod", arg(0), number(w.size[1])))
	result := r.formulaIn("place", graph.Int32, r.result(1), apply("add", apply("mul", row, number(w.image[1])), column), chosen)
	made := r.pending[len(r.pending)-1]
	made.operands = append(made.operands, counter(0), counter(1))
	return result
}

// maxPoolBackward gives each element of the image the gradients of the windows that it is the greatest of.
func (r *recipe) maxPoolBackward() bool {
	gradient, self, places := r.tensor("grad_output", 0), r.tensor("self", 1), r.tensor("indices", 7)
	if r.failed || len(r.node.Outputs) != 1 || !self.meta.DType.IsFloat() || !known(places) {
		return false
	}
	w, wide := r.windows(self, gradient, 2), r.wide(self.meta.DType)
	if r.failed {
		return false
	}
	rows, columns := r.windowsOf(w, 0), r.windowsOf(w, 1)
	if len(rows)*len(columns) > mostWindowElements {
		return false
	}
	result := r.result(0)
	place := r.counting2D("place", graph.Int32, apply("add", apply("mul", arg(0), number(w.image[1])), arg(1)), w.image, 0, 1)
	var total *tensor
	for _, row := range slices.Backward(rows) {
		for _, column := range slices.Backward(columns) {
			total = r.addWindow(gradient, places, place, row, column, total, r.freshLike(wide, result))
		}
	}
	r.formulaIn("max_pool2d_backward", wide, result, arg(0), total)
	r.pending[len(r.pending)-1].apart = true
	return r.commit(result)
}

// window is one of those that an element of the image lies in, along one side: its number, and where there is such a one.
type window struct{ number, exists *tensor }

// windowsOf lists the windows that the elements of the image lie in along one side, the last one first.
func (r *recipe) windowsOf(w windows, side int) []window {
	size, stride := w.size[side], w.stride[side]
	end := apply("add", arg(0), number(w.padding[side]))
	var result []window
	for back := int64(0); back*stride < size; back++ {
		which := apply("sub", apply("truncdiv", end, number(stride)), number(back))
		reaches := apply("lt", apply("add", apply("fmod", end, number(stride)), number(back*stride)), number(size))
		exists := apply("and", apply("and", apply("ge", which, number(int64(0))), apply("lt", which, number(w.count[side]))), reaches)
		result = append(result, window{
			r.counting2D("window", graph.Int32, which, w.image, side),
			r.counting2D("exists", graph.Bool, exists, w.image, side),
		})
	}
	return result
}

// addWindow adds the gradient of one window where the element is its greatest.
func (r *recipe) addWindow(gradient, places, place *tensor, row, column window, total, next *tensor) *tensor {
	p := picking{picked: []int{2, 3}, indices: []*tensor{row.number, column.number}, condition: r.both(row.exists, column.exists), axes: []int{0, 1, -1, -1}}
	at := func(source *tensor) *tensor {
		return r.readWhere(r.pickOperand(source, loop.F32, p, next), p, r.freshLike(source.meta.DType, next))
	}
	same := r.formulaIn("eq", graph.Int32, r.freshLike(graph.Bool, next), apply("eq", arg(0), arg(1)), at(places), place)
	hit := r.formulaIn("and", graph.Bool, r.freshLike(graph.Bool, next), apply("and", arg(0), arg(1)), same, p.condition)
	value := at(gradient)
	if total == nil {
		return r.choose("max_pool2d_backward", next.meta.DType, next, apply("where", arg(0), arg(1), number(0.0)), hit, value)
	}
	return r.choose("max_pool2d_backward", next.meta.DType, next, apply("where", arg(0), apply("add", arg(1), arg(2)), arg(1)), hit, total, value)
}
