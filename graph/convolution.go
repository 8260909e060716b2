package graph

import "slices"

func convolutionRows() []row {
	rows := []row{}
	for _, schema := range []string{
		"conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] padding=[0], SymInt[1] dilation=[1], SymInt groups=1) -> Tensor",
		"conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], str padding=\"valid\", SymInt[1] dilation=[1], SymInt groups=1) -> Tensor",
		"conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor",
		"conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], str padding=\"valid\", SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor",
		"conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0], SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor",
		"conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], str padding=\"valid\", SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor",
		"conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] padding=[0], SymInt[1] output_padding=[0], SymInt groups=1, SymInt[1] dilation=[1]) -> Tensor",
		"conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], SymInt[2] output_padding=[0, 0], SymInt groups=1, SymInt[2] dilation=[1, 1]) -> Tensor",
		"conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0], SymInt[3] output_padding=[0, 0, 0], SymInt groups=1, SymInt[3] dilation=[1, 1, 1]) -> Tensor",
		"convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
	} {
		rows = append(rows, row{schema: schema, kind: KindMatrix, rule: inferConvolution})
	}
	return rows
}

// convolution holds the arguments of any convolution, one entry per spatial dimension.
type convolution struct {
	*inference
	spatial                             int
	unbatched                           bool // the input lacks the batch dimension, and so does the result
	input, weight, bias                 *Meta
	stride, padding, dilation, enlarged []Size
	transposed, same                    bool
	groups                              Size
}

func (c *inference) convolution() (*convolution, error) {
	v := &convolution{inference: c, input: c.tensor("input"), weight: c.tensor("weight"), bias: c.tensor("bias")}
	v.spatial = v.weight.Dim() - 2
	if v.spatial < 1 || v.spatial > 3 || c.wrongSpatial(v.spatial) {
		return nil, unknown("convolution weight")
	}
	v.transposed = c.op.Schema.Position("output_padding") >= 0 && (c.op.Schema.Name != "convolution" || c.boolean("transposed"))
	v.same = c.text("padding") == "same"
	v.stride, v.padding, v.dilation, v.enlarged = c.perSpatial("stride"), c.perSpatial("padding"), c.perSpatial("dilation"), c.perSpatial("output_padding")
	v.groups, _ = c.size("groups")
	if v.input.Dim() == v.spatial+1 {
		v.unbatched = true
		v.input = &Meta{DType: v.input.DType, Device: v.input.Device, Sizes: slices.Concat(Statics(1), v.input.Sizes),
			Strides: slices.Concat([]Size{c.shapes.Multiply(v.input.Sizes[0], v.input.Strides[0])}, v.input.Strides)}
	}
	return v, v.check()
}

func (c *inference) wrongSpatial(spatial int) bool {
	name := c.op.Schema.Name
	return name != "convolution" && name[len(name)-2] != byte('0'+spatial)
}

// perSpatial reads a list argument; a missing or text one counts as zeros.
func (c *inference) perSpatial(name string) []Size {
	sizes, _ := c.sizes(name)
	if len(sizes) == 0 {
		return make([]Size, 3)
	}
	missing := max(3-len(sizes), 0)
	return slices.Concat(sizes, slices.Repeat(sizes[len(sizes)-1:], missing))
}

func (v *convolution) check() error {
	e := v.shapes
	d := v.input.DType
	if v.weight.DType != d || !d.IsFloat() || v.bias != nil && v.bias.DType != d {
		return unknown("convolution types")
	}
	plain := plainlyContiguous(v.input.Sizes, v.input.Strides) && plainlyContiguous(v.weight.Sizes, v.weight.Strides)
	if (d.Bytes() < 4 || v.unbatched) && !plain {
		return unknown("convolution layout")
	}
	if v.input.Dim() != v.spatial+2 || v.groups.Hint < 1 {
		return unknown("convolution input")
	}
	channels := e.Multiply(v.weight.Sizes[1], v.groups)
	if v.transposed {
		channels = v.weight.Sizes[0]
	}
	if !e.Equal(v.input.Sizes[1], channels) || !e.IsZero(e.Modulo(v.weight.Sizes[0], v.groups)) {
		return unknown("convolution channels")
	}
	if v.bias != nil && (v.bias.Dim() != 1 || !e.Equal(v.bias.Sizes[0], v.outputChannels())) {
		return unknown("convolution bias")
	}
	for i := range v.spatial {
		if v.stride[i].Hint < 1 || v.padding[i].Hint < 0 || v.dilation[i].Hint < 1 || v.same && v.stride[i].Hint != 1 {
			return unknown("convolution parameters")
		}
	}
	return nil
}

func (v *convolution) outputChannels() Size {
	if v.transposed {
		return v.shapes.Multiply(v.weight.Sizes[1], v.groups)
	}
	return v.weight.Sizes[0]
}

// outputSize is the length of spatial dimension i of the result.
func (v *convolution) outputSize(i int) Size {
	e := v.shapes
	input, kernel := v.input.Sizes[2+i], v.weight.Sizes[2+i]
	reach := e.Add(e.Multiply(v.dilation[i], e.Subtract(kernel, Static(1))), Static(1))
	padded := e.Multiply(Static(2), v.padding[i])
	switch {
	case v.same:
		return input
	case v.transposed:
		grown := e.Add(e.Multiply(e.Subtract(input, Static(1)), v.stride[i]), reach)
		return e.Add(e.Subtract(grown, padded), v.enlarged[i])
	}
	return e.Add(e.FloorDivide(e.Subtract(e.Add(input, padded), reach), v.stride[i]), Static(1))
}

func inferConvolution(c *inference) error {
	v, err := c.convolution()
	if err != nil {
		return err
	}
	sizes := []Size{v.input.Sizes[0], v.outputChannels()}
	for i := range v.spatial {
		size := v.outputSize(i)
		if !c.shapes.Less(Static(0), size) {
			return unknown("convolution result without elements")
		}
		sizes = append(sizes, size)
	}
	if c.shapes.anyZero(v.input.Sizes) || c.shapes.anyZero(v.weight.Sizes) {
		return unknown("convolution of nothing")
	}
	return v.layout(sizes)
}

// layout is channels-last when the input or the weight is laid out so, row-major when both are row-major.
func (v *convolution) layout(sizes []Size) error {
	e := v.shapes
	format := ContiguousFormat
	if e.stridesLikeChannelsLast(v.input) || e.stridesLikeChannelsLast(v.weight) {
		format = e.suggestedFormat(v.input)
		if format == ContiguousFormat {
			format = e.suggestedFormat(v.weight)
		}
	}
	strides, _ := e.formatStrides(format, sizes)
	if v.unbatched {
		sizes, strides = sizes[1:], strides[1:]
	}
	return v.make(v.input.DType, sizes, strides)
}
