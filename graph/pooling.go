package graph

import "slices"

func poolingRows() []row {
	pooling := func(schema string, r rule) row { return row{schema: schema, kind: KindLibrary, accepts: "hf", rule: r} }
	return []row{
		pooling("max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor", inferPool2D),
		pooling("avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor", inferPool2D),
		pooling("adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor", inferAdaptivePool2D),
	}
}

// inferPool2D covers floor mode; the batch dimension may be absent.
func inferPool2D(c *inference) error {
	m, e := c.self(), c.shapes
	if err := c.requireAccepted(m.DType); err != nil {
		return err
	}
	if m.Dim() != 3 && m.Dim() != 4 || c.boolean("ceil_mode") || e.anyZero(m.Sizes) || m.DType.Bytes() < 4 {
		return unknown("pooling arguments")
	}
	kernel, stride := c.pair("kernel_size", 0), c.pair("stride", 0)
	padding, dilation := c.pair("padding", 0), c.pair("dilation", 1)
	if list, _ := c.value("stride").(List); len(list.Items) == 0 {
		stride = kernel
	}
	sizes := slices.Clone(m.Sizes)
	for i := range 2 {
		if kernel[i] < 1 || stride[i] < 1 || padding[i] < 0 || padding[i] > kernel[i]/2 || dilation[i] < 1 {
			return unknown("pooling parameters")
		}
		d := m.Dim() - 2 + i
		reach := dilation[i]*(kernel[i]-1) + 1
		sizes[d] = e.Add(e.FloorDivide(e.Add(sizes[d], Static(2*padding[i]-reach)), Static(stride[i])), Static(1))
		if !e.Less(Static(0), sizes[d]) {
			return unknown("pooling to nothing")
		}
	}
	return c.pooled(m, sizes)
}

// pair reads a list of two numbers.
func (c *inference) pair(name string, absent int64) [2]int64 {
	numbers, _ := c.integers(name)
	if len(numbers) != 1 && len(numbers) != 2 {
		return [2]int64{absent, absent}
	}
	return [2]int64{numbers[0], numbers[len(numbers)-1]}
}

// pooled keeps channels-last.
func (c *inference) pooled(m *Meta, sizes []Size) error {
	strides, _ := c.shapes.formatStrides(c.shapes.suggestedFormat(m), sizes)
	return c.make(m.DType, sizes, strides)
}

func inferAdaptivePool2D(c *inference) error {
	m := c.self()
	output, ok := c.sizes("output_size")
	if err := c.requireAccepted(m.DType); err != nil || !ok || len(output) != 2 {
		return unknown("adaptive pooling arguments")
	}
	if m.Dim() != 3 && m.Dim() != 4 || c.shapes.anyZero(m.Sizes) || output[0].Hint < 1 || output[1].Hint < 1 {
		return unknown("adaptive pooling input")
	}
	sizes := append(slices.Clone(m.Sizes[:m.Dim()-2]), output...)
	return c.pooled(m, sizes)
}
