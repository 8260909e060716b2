package graph

import (
	"slices"

	"fusee/internal/slice"
)

// indexer applies a Python index to a tensor: one view per int, slice or None, and one index operator for tensors at the end.
type indexer struct {
	caller  *caller
	current Value
	dim     int
	tensors []Value // index tensors by dimension of current
}

// indexItems lists the items of an index: those of a tuple, or the one that it is. Lists of ints become tensors, as in eager.
func (c *caller) indexItems(index Value) ([]Value, error) {
	items := []Value{index}
	if tuple, ok := index.(List); ok && tuple.Tuple {
		items = tuple.Items
	}
	return slice.TryMap(items, func(item Value) (Value, error) {
		if list, ok := item.(List); ok {
			return c.indexList(list, meta(c.args[0]).Device)
		}
		return item, nil
	})
}

// apply indexes the tensor and gives the view together with index tensors that remain to be applied.
func (c *caller) index(tensor, index Value) (*indexer, error) {
	items, err := c.indexItems(index)
	if err != nil {
		return nil, err
	}
	consumed, err := c.consumedDims(items)
	if err != nil {
		return nil, err
	}
	x := &indexer{caller: c, current: tensor}
	for _, item := range items {
		if err := x.item(item, meta(tensor).Dim()-consumed); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// consumedDims counts the dimensions that the items use up and rejects items that are not understood.
func (c *caller) consumedDims(items []Value) (int, error) {
	consumed, ellipses := 0, 0
	for _, item := range items {
		m, isTensor := MetaOf(item)
		switch {
		case isTensor && (!isIndexType(m.DType) || m.Dim() == 0):
			return 0, unknown("index tensor that is bool, small or 0-d")
		case item == nil:
		case item == Value(Ellipsis{}):
			ellipses++
		default:
			if _, isBool := item.(bool); isBool {
				return 0, unknown("bool index")
			}
			consumed++
		}
	}
	if ellipses > 1 || consumed > meta(c.args[0]).Dim() {
		return 0, unknown("too many indices")
	}
	return consumed, nil
}

func (x *indexer) item(item Value, skipped int) error {
	switch v := item.(type) {
	case nil:
		return x.apply("aten.unsqueeze.default", 1, int64(x.dim))
	case Ellipsis:
		x.dim += skipped
		return nil
	case Slice:
		return x.slice(v)
	}
	if _, isTensor := MetaOf(item); isTensor {
		for len(x.tensors) < x.dim {
			x.tensors = append(x.tensors, nil)
		}
		x.tensors = append(x.tensors, item)
		x.dim++
		return nil
	}
	if _, isInt := SizeOf(item); !isInt {
		return unknown("index of this type")
	}
	return x.apply("aten.select.int", 0, int64(x.dim), item)
}

func (x *indexer) apply(target string, advance int, args ...Value) error {
	next, err := x.caller.call(target, append([]Value{x.current}, args...)...)
	if err != nil {
		return err
	}
	x.current = next
	x.dim += advance
	return nil
}

// slice leaves out slices that take everything, as torch does.
func (x *indexer) slice(s Slice) error {
	if s.Start == nil && s.Stop == nil && (s.Step == nil || s.Step == Value(int64(1))) {
		x.dim++
		return nil
	}
	step := s.Step
	if step == nil {
		step = int64(1)
	}
	for _, bound := range []Value{s.Start, s.Stop, step} {
		if _, ok := SizeOf(bound); bound != nil && !ok {
			return unknown("slice bound of this type")
		}
	}
	return x.apply("aten.slice.Tensor", 1, int64(x.dim), s.Start, s.Stop, step)
}

// getItem is tensor[index]. The result is never the tensor itself.
func getItem(c *caller) (Value, error) {
	if len(c.args) != 2 || len(c.keywords) > 0 || meta(c.args[0]).DType == NoDType {
		return nil, unknown(c.target)
	}
	x, err := c.index(c.args[0], c.args[1])
	if err != nil {
		return nil, err
	}
	if len(x.tensors) > 0 {
		return c.call("aten.index.Tensor", x.current, List{Items: x.tensors})
	}
	if SameValue(x.current, c.args[0]) {
		return c.call("aten.alias.default", x.current)
	}
	return x.current, nil
}

// setItem is tensor[index] = value: a copy into the view, or index_put_.
func setItem(c *caller) (Value, error) {
	if len(c.args) != 3 || len(c.keywords) > 0 || meta(c.args[0]).DType == NoDType {
		return nil, unknown(c.target)
	}
	if mask, ok := MetaOf(c.args[1]); ok && mask.DType == Bool {
		return nil, c.fillWhere(mask)
	}
	x, err := c.index(c.args[0], c.args[1])
	if err != nil {
		return nil, err
	}
	value := c.args[2]
	m, isTensor := MetaOf(value)
	switch {
	case len(x.tensors) > 0 && isTensor:
		_, err = c.call("aten.index_put_.default", x.current, List{Items: x.tensors}, value)
	case len(x.tensors) > 0 && isScalar(value):
		err = c.putNumber(x, value)
	case isTensor:
		err = c.setTensor(x.current, value, m)
	case isScalar(value):
		_, err = c.call("aten.fill_.Scalar", x.current, value)
	default:
		return nil, unknown("value of this type")
	}
	return nil, err
}

// fillWhere is tensor[mask] = value for one value, which eager too computes as masked_fill_; more values than one depend on data.
func (c *caller) fillWhere(mask *Meta) error {
	target, value := meta(c.args[0]), c.args[2]
	m, isTensor := MetaOf(value)
	if isTensor && (m.Dim() > 0 || m.DType != target.DType) || !isTensor && !isScalar(value) {
		return unknown("several values put under a mask")
	}
	n := mask.Dim()
	if n == 0 || n > target.Dim() || !c.graph.Shapes.AllEqual(mask.Sizes, target.Sizes[:n]) {
		return unknown("mask of another shape")
	}
	aligned := c.args[1]
	for range target.Dim() - n {
		var err error
		if aligned, err = c.call("aten.unsqueeze.default", aligned, int64(-1)); err != nil {
			return err
		}
	}
	overload := "aten.masked_fill_.Scalar"
	if isTensor {
		overload = "aten.masked_fill_.Tensor"
	}
	_, err := c.call(overload, c.args[0], aligned, value)
	return err
}

// putNumber makes a 0-d tensor of the number first, as torch's assignment does.
func (c *caller) putNumber(x *indexer, value Value) error {
	target := meta(x.current)
	tensor, err := c.scalarTensor(value, target.DType, target.Device)
	if err != nil {
		return err
	}
	_, err = c.call("aten.index_put_.default", x.current, List{Items: x.tensors}, tensor)
	return err
}

// setTensor gives the value the target's dimensions, as torch's assignment does: it drops leading ones of size 1, and expands.
func (c *caller) setTensor(target, value Value, m *Meta) error {
	extra := m.Dim() - meta(target).Dim()
	if extra > 0 {
		for _, s := range m.Sizes[:extra] {
			if !c.graph.Shapes.IsOne(s) {
				return unknown("assigned tensor with too many dimensions")
			}
		}
		var err error
		if value, err = c.call("aten.view.default", value, sizeValues(slices.Clone(m.Sizes[extra:]))); err != nil {
			return err
		}
	}
	var err error
	if sizes := meta(target).Sizes; meta(value).Dim() != len(sizes) {
		// A value that is a view of all of the target may be copied onto it only where their strides agree.
		if value, err = c.call("aten.expand.default", value, sizeValues(slices.Clone(sizes))); err != nil {
			return err
		}
	}
	_, err = c.call("aten.copy_.default", target, value)
	return err
}
