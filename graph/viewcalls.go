package graph

import (
	"strings"

	"fusee/internal/slice"
)

// viewFunctions covers functions that are views or copies depending on strides, and shorthand for views.
func viewFunctions() map[string]function {
	return map[string]function{
		"reshape": reshape, "flatten": flatten, "ravel": ravel, "split": split, "view": viewMethod,
		"broadcast_tensors": broadcastTensors, "atleast_1d": refuse, "unflatten": unflattenMethod,
	}
}

// reshapeTo views when strides allow and copies otherwise.
func (c *caller) reshapeTo(v Value, requested []Size) (Value, error) {
	m, e := meta(v), c.graph.Shapes
	sizes, ok := e.inferredSizes(requested, e.Product(m.Sizes))
	if !ok {
		return nil, unknown("sizes do not fit the elements")
	}
	if _, ok := e.viewStrides(m, sizes); !ok {
		var err error
		if v, err = c.clone(v, ContiguousFormat); err != nil {
			return nil, err
		}
		return c.call("aten._unsafe_view.default", v, sizeValues(sizes))
	}
	return c.call("aten.view.default", v, sizeValues(sizes))
}

// sizesAfterSelf reads f(tensor, 2, 3), f(tensor, (2, 3)) and f(tensor, name=(2, 3)).
func (c *caller) sizesAfterSelf(name string) (Value, []Size, error) {
	args := c.args
	for _, k := range c.keywords {
		if k.Name != name {
			return nil, nil, unknown("unexpected keyword " + k.Name)
		}
		args = append(args[:len(args):len(args)], k.Value)
	}
	if len(args) < 2 || meta(args[0]).DType == NoDType {
		return nil, nil, unknown(c.target + " arguments")
	}
	list := Value(List{Items: args[1:]})
	if only, ok := args[1].(List); ok && len(args) == 2 {
		list = only
	} else if !strings.HasPrefix(c.target, "Tensor.") {
		return nil, nil, unknown(c.target + " of separate sizes")
	}
	sizes, ok := SizesOf(list)
	if !ok {
		return nil, nil, unknown(c.target + " sizes")
	}
	return args[0], sizes, nil
}

func reshape(c *caller) (Value, error) {
	v, sizes, err := c.sizesAfterSelf("shape")
	if err != nil {
		return nil, err
	}
	return c.reshapeTo(v, sizes)
}

func reshapeAs(c *caller) (Value, error) {
	self, other, err := c.selfAndOther()
	if err != nil {
		return nil, err
	}
	return c.reshapeTo(self, other.Sizes)
}

// viewMethod is Tensor.view: sizes as varargs or a list, or an element type.
func viewMethod(c *caller) (Value, error) {
	if len(c.args) == 2 && len(c.keywords) == 0 {
		if d, ok := c.args[1].(DType); ok {
			return c.call("aten.view.dtype", c.args[0], d)
		}
	}
	v, sizes, err := c.sizesAfterSelf("size")
	if err != nil {
		return nil, err
	}
	return c.call("aten.view.default", v, sizeValues(sizes))
}

func flatten(c *caller) (Value, error) {
	bound, err := c.arguments("input", "start_dim", "end_dim")
	if err != nil {
		return nil, err
	}
	m, ok := MetaOf(bound["input"])
	if !ok {
		return nil, unknown("flatten of something that is no tensor")
	}
	start, okStart := c.dimArgument(bound, "start_dim", 0, m)
	end, okEnd := c.dimArgument(bound, "end_dim", -1, m)
	if !okStart || !okEnd || start > end {
		return nil, unknown("flatten dimensions")
	}
	if m.Dim() == 0 {
		return c.reshapeTo(bound["input"], Statics(1))
	}
	if start == end {
		return bound["input"], nil
	}
	sizes := append(append([]Size{}, m.Sizes[:start]...), c.graph.Shapes.Product(m.Sizes[start:end+1]))
	return c.reshapeTo(bound["input"], append(sizes, m.Sizes[end+1:]...))
}

func (c *caller) dimArgument(bound map[string]Value, name string, absent int64, m *Meta) (int, bool) {
	v, given := bound[name]
	if !given {
		v = absent
	}
	n, isNumber := v.(int64)
	d, inRange := wrapDim(n, m.Dim())
	return d, isNumber && inRange
}

func ravel(c *caller) (Value, error) {
	v, m, err := c.one()
	if err != nil {
		return nil, err
	}
	if !c.graph.Shapes.isContiguous(m) {
		if v, err = c.clone(v, ContiguousFormat); err != nil {
			return nil, err
		}
	}
	return c.call("aten.view.default", v, sizeValues([]Size{c.graph.Shapes.Product(m.Sizes)}))
}

// split takes one size or a list of sizes; torch.split and Tensor.split name their parameters differently.
func split(c *caller) (Value, error) {
	names := []string{"self", "split_size", "dim"}
	if c.target == "torch.split" || c.target == "torch.functional.split" {
		names = []string{"tensor", "split_size_or_sections", "dim"}
	}
	bound, err := c.arguments(names...)
	if err != nil {
		return nil, err
	}
	dim, given := bound["dim"]
	if !given {
		dim = int64(0)
	}
	target := "aten.split.Tensor"
	if _, isList := bound[names[1]].(List); isList {
		target = "aten.split_with_sizes.default"
	}
	return c.call(target, bound[names[0]], bound[names[1]], dim)
}

// unflattenMethod also takes one size instead of a list.
func unflattenMethod(c *caller) (Value, error) {
	bound, err := c.arguments(map[bool][]string{true: {"self", "dim", "sizes"}, false: {"input", "dim", "sizes"}}[c.target == "Tensor.unflatten"]...)
	if err != nil {
		return nil, err
	}
	tensor := bound["self"]
	if tensor == nil {
		tensor = bound["input"]
	}
	sizes := bound["sizes"]
	if n, ok := sizes.(int64); ok {
		sizes = List{Items: []Value{n}}
	}
	return c.call("aten.unflatten.int", tensor, bound["dim"], sizes)
}

// broadcastTensors expands all tensors to their common shape.
func broadcastTensors(c *caller) (Value, error) {
	args := c.args
	if len(args) == 1 {
		if list, ok := args[0].(List); ok {
			args = list.Items
		}
	}
	metas, ok := slice.MapAll(args, MetaOf)
	if !ok {
		return nil, unknown("broadcast of something that is no tensor")
	}
	shape, ok := c.graph.Shapes.broadcast(slice.Map(metas, func(m *Meta) []Size { return m.Sizes })...)
	if !ok || len(c.keywords) > 0 || len(args) == 0 {
		return nil, unknown("shapes do not broadcast")
	}
	items, err := slice.TryMap(args, func(v Value) (Value, error) { return c.expanded(v, shape) })
	return List{Items: items, Tuple: true}, err
}

// expanded gives a tensor of the shape: the tensor itself where it has it.
func (c *caller) expanded(v Value, shape []Size) (Value, error) {
	if c.graph.Shapes.AllEqual(meta(v).Sizes, shape) {
		return v, nil
	}
	return c.call("aten.expand.default", v, sizeValues(shape))
}

func (c *caller) unaryView(target string) (Value, error) {
	v, _, err := c.one()
	if err != nil {
		return nil, err
	}
	return c.call(target, v)
}

func reversed(c *caller) (Value, error) { return c.unaryView("aten.numpy_T.default") }

func matrixTransposed(c *caller) (Value, error) { return c.unaryView("aten.mT.default") }

// matrixAdjoint is the transpose of real matrices; complex ones would need the conjugate bit.
func matrixAdjoint(c *caller) (Value, error) {
	if _, err := itselfIfReal(c); err != nil {
		return nil, err
	}
	return c.unaryView("aten.mT.default")
}

func adjoint2D(c *caller) (Value, error) {
	if _, err := itselfIfReal(c); err != nil {
		return nil, err
	}
	if meta(c.args[0]).Dim() == 0 {
		return c.args[0], nil
	}
	return c.unaryView("aten.numpy_T.default")
}

func realPart(c *caller) (Value, error) {
	v, m, err := c.one()
	if err != nil || !m.DType.IsComplex() {
		return v, err
	}
	return c.part(v, 0)
}

func imaginaryPart(c *caller) (Value, error) {
	v, m, err := c.one()
	if err != nil || !m.DType.IsComplex() {
		return nil, unknown("imag of a real tensor")
	}
	return c.part(v, 1)
}

func (c *caller) part(v Value, index int64) (Value, error) {
	pairs, err := c.call("aten.view_as_real.default", v)
	if err != nil {
		return nil, err
	}
	return c.call("aten.select.int", pairs, int64(-1), index)
}
