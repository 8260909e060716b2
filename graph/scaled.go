package graph

import "strings"

// addcdiv and addcmul take a number as value; torch reads it from a tensor with one element, which a graph does without reading. The new
// optimizers pass step sizes so.

func scaledFunctions() map[string]function {
	return map[string]function{"addcdiv": scaled, "addcdiv_": scaled, "addcmul": scaled, "addcmul_": scaled}
}

// scaled is self + (value * tensor1) / tensor2, or * tensor2, each step in the order of the operator's own formula.
func scaled(c *caller) (Value, error) {
	name := c.target[strings.LastIndexByte(c.target, '.')+1:]
	value, ok := c.scaleTensor()
	if !ok {
		return c.overloaded(name, strings.HasPrefix(c.target, "Tensor."))
	}
	combine, inPlace := "aten.mul.Tensor", ""
	if strings.HasPrefix(name, "addcdiv") {
		combine = "aten.div.Tensor"
	}
	if strings.HasSuffix(name, "_") {
		inPlace = "_"
	}
	value, err := c.scaleOfType(value, meta(c.args[0]).DType)
	if err != nil {
		return nil, err
	}
	s := (&chain{caller: c, value: c.args[1]}).then("aten.mul.Tensor", value).then(combine, c.args[2])
	if s.err != nil {
		return nil, s.err
	}
	return c.call("aten.add"+inPlace+".Tensor", c.args[0], s.value)
}

// scaleTensor is the value of the call where it is a tensor without dimensions that changes no type and carries no gradient.
func (c *caller) scaleTensor() (Value, bool) {
	if len(c.args) != 3 || len(c.keywords) != 1 || c.keywords[0].Name != "value" {
		return nil, false
	}
	value := c.keywords[0].Value
	scale, ok := MetaOf(value)
	if !ok || len(scale.Sizes) != 0 || c.state.GradMode && c.graph.RequiresGrad(value) {
		return nil, false
	}
	for _, argument := range c.args {
		m, ok := MetaOf(argument)
		if !ok || m.DType != Float32 && m.DType != Float64 || scale.DType != Float64 && scale.DType != Float32 || m.Device != scale.Device && scale.Device.Type != "cpu" {
			return nil, false
		}
	}
	return value, true
}

// scaleOfType gives a scale in the type that the operator computes in, to which it would round the number.
func (c *caller) scaleOfType(scale Value, dtype DType) (Value, error) {
	if meta(scale).DType == dtype {
		return scale, nil
	}
	op, _ := LookUp("aten._to_copy.default")
	return c.emitBound(op, []Value{scale}, []Keyword{{"dtype", dtype}})
}
