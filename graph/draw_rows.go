package graph

import "math"

// drawRow says how an operator that draws random numbers follows from uniform ones.
type drawRow struct {
	fits      func(d *drawer, made *draw) bool
	uniform   func(DType) DType // the type of the uniform numbers for a type of the result
	write     func(w *drawWriter) Value
	tensors   int  // of uniform numbers that it takes; 0 for one
	vectors   bool // a thread of eager's kernel takes neighbours at once
	fusedOnly bool // eager's numbers are not reproduced
}

// drawRows lists the operators whose random numbers kernels draw.
var drawRows = map[string]drawRow{
	"aten.dropout.default":      {fits: fitsDropout, uniform: single, write: writeDropout, vectors: true},
	"aten.dropout_.default":     {fits: fitsDropout, uniform: wide, write: writeDropoutInto, fusedOnly: true},
	"aten.rand.default":         {fits: isFloat, uniform: wide, write: writeUniform},
	"aten.rand_like.default":    {fits: isFloat, uniform: wide, write: writeUniform},
	"aten.uniform_.default":     {fits: fitsUniform, uniform: wide, write: writeUniform},
	"aten.bernoulli_.float":     {fits: isFloat, uniform: wide, write: writeBernoulli},
	"aten.randn.default":        {fits: isFloat, uniform: wide, write: writeNormal, tensors: 2, fusedOnly: true},
	"aten.randn_like.default":   {fits: isFloat, uniform: wide, write: writeNormal, tensors: 2, fusedOnly: true},
	"aten.normal_.default":      {fits: isFloat, uniform: wide, write: writeNormal, tensors: 2, fusedOnly: true},
	"aten.exponential_.default": {fits: isFloat, uniform: wide, write: writeExponential, fusedOnly: true},
	"aten.randint.low":          {fits: fitsIntegers, uniform: double, write: writeIntegers, fusedOnly: true},
}

func single(DType) DType { return Float32 }

func double(DType) DType { return Float64 }

// wide is the type that eager draws uniform numbers in for tensors of a type.
func wide(dtype DType) DType {
	if dtype == Float64 {
		return Float64
	}
	return Float32
}

func isFloat(_ *drawer, made *draw) bool { return made.meta.DType.IsFloat() }

func fitsDropout(_ *drawer, made *draw) bool {
	p, known := made.node.Argument("p")
	rate, isNumber := p.(float64)
	return known && isNumber && rate > 0 && rate < 1
}

// fitsUniform leaves bounds to the library where eager's rounding would have to be followed.
func fitsUniform(d *drawer, made *draw) bool {
	from, known := made.constant("from")
	to, knownToo := made.constant("to")
	return isFloat(d, made) && known && knownToo && from < to && (d.how.Fused || from == 0 && (to == 1 || made.meta.DType.Bytes() > 2))
}

func fitsIntegers(_ *drawer, made *draw) bool {
	low, known := made.constant("low")
	high, knownToo := made.constant("high")
	return known && knownToo && high-low < 1<<48 && math.Abs(low) < 1<<48
}

// constant reads an argument that is a number known beforehand.
func (d *draw) constant(name string) (float64, bool) {
	value, _ := d.node.Argument(name)
	switch v := value.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	}
	return 0, false
}

// drawWriter appends the formula of one draw. The first error sticks.
type drawWriter struct {
	graph     *Graph
	state     State
	draw      *draw
	arguments map[string]Value
	taken     int64 // tensors of uniform numbers so far
	err       error
}

func (w *drawWriter) call(target string, args []Value, keywords ...Keyword) Value {
	if w.err != nil {
		return nil
	}
	node, err := w.graph.Call(target, args, keywords, w.state)
	if err != nil {
		w.err = err
		return nil
	}
	return node.Result
}

func (w *drawWriter) apply(target string, args ...Value) Value { return w.call(target, args) }

// uniform gives the next tensor of uniform numbers.
func (w *drawWriter) uniform() Value {
	m := w.draw.meta
	args := []Value{w.draw.state, w.draw.number + w.taken, w.draw.lanes, sizesValue(m.Sizes), sizesValue(m.Strides)}
	w.taken++
	return w.call(UniformTarget, args, Keyword{"dtype", w.draw.dtype}, Keyword{"device", m.Device})
}

func sizesValue(sizes []Size) Value {
	list := List{}
	for _, size := range sizes {
		if size.IsStatic() {
			list.Items = append(list.Items, size.Hint)
		} else {
			list.Items = append(list.Items, size)
		}
	}
	return list
}

// cast converts to the type of the operator's result.
func (w *drawWriter) cast(value Value) Value {
	if meta, ok := MetaOf(value); ok && meta.DType == w.draw.meta.DType {
		return value
	}
	return w.call("aten._to_copy.default", []Value{value}, Keyword{"dtype", w.draw.meta.DType})
}

// finish stores the numbers where an operator fills its argument.
func (w *drawWriter) finish(value Value) Value {
	if len(w.draw.node.Mutates) == 0 {
		return w.cast(value)
	}
	return w.apply("aten.copy_.default", w.arguments["self"], value)
}

// below gives where uniform numbers are below a probability: as they are compared in single precision, to the next number of that.
func (w *drawWriter) below(p float64) Value {
	u := w.uniform()
	if w.draw.dtype == Float32 {
		p = singleNotBelow(p)
	}
	return w.apply("aten.lt.Scalar", u, p)
}

func singleNotBelow(p float64) float64 {
	rounded := float32(p)
	if float64(rounded) < p {
		rounded = math.Nextafter32(rounded, 2)
	}
	return float64(rounded)
}

// writeDropout keeps an element where its number is below 1 − p, and makes up for the others, with both numbers in the type that eager computes in.
func writeDropout(w *drawWriter) Value {
	p, _ := w.draw.constant("p")
	kept := 1 - p
	scale := 1 / kept
	if w.draw.meta.DType != Float64 {
		kept = float64(float32(kept))
		scale = float64(float32(1 / kept))
	}
	mask := w.below(kept)
	return w.apply("aten.mul.Tensor", w.apply("aten.mul.Tensor", w.arguments["input"], mask), scale)
}

// writeDropoutInto multiplies by noise, which eager makes apart where it is to store over its argument.
func writeDropoutInto(w *drawWriter) Value {
	p, _ := w.draw.constant("p")
	noise := w.apply("aten.div.Tensor", w.cast(w.below(1-p)), 1-p)
	return w.finish(w.apply("aten.mul.Tensor", w.arguments["self"], noise))
}

// bound reads a number among the arguments, in the type of the result.
func (w *drawWriter) bound(name string, fallback float64) float64 {
	value, known := w.draw.constant(name)
	if !known {
		return fallback
	}
	if w.draw.meta.DType == Float32 {
		value = float64(float32(value))
	}
	return value
}

// writeUniform moves the one bound that is drawn to the one that is not, as eager does.
func writeUniform(w *drawWriter) Value {
	from, to := w.bound("from", 0), w.bound("to", 1)
	value := w.uniform()
	if to-from != 1 {
		value = w.apply("aten.mul.Tensor", value, to-from)
	}
	if from != 0 {
		value = w.apply("aten.add.Tensor", value, from)
	}
	value = w.cast(value)
	return w.finish(w.apply("aten.where.ScalarSelf", w.apply("aten.eq.Scalar", value, to), from, value))
}

func writeBernoulli(w *drawWriter) Value {
	p, _ := w.draw.constant("p")
	return w.finish(w.below(p))
}

// writeNormal is the transform of Box and Muller.
func writeNormal(w *drawWriter) Value {
	radius := w.apply("aten.sqrt.default", w.apply("aten.mul.Tensor", w.apply("aten.log.default", w.uniform()), -2.0))
	value := w.apply("aten.mul.Tensor", radius, w.apply("aten.cos.default", w.apply("aten.mul.Tensor", w.uniform(), 2*math.Pi)))
	if std := w.bound("std", 1); std != 1 {
		value = w.apply("aten.mul.Tensor", value, std)
	}
	if mean := w.bound("mean", 0); mean != 0 {
		value = w.apply("aten.add.Tensor", value, mean)
	}
	return w.finish(value)
}

func writeExponential(w *drawWriter) Value {
	return w.finish(w.apply("aten.mul.Tensor", w.apply("aten.log.default", w.uniform()), -1/w.bound("lambd", 1)))
}

// writeIntegers rounds numbers from 0 to below the range down; those drawn are above 0 and up to 1.
func writeIntegers(w *drawWriter) Value {
	low, _ := w.draw.constant("low")
	high, _ := w.draw.constant("high")
	part := w.apply("aten.mul.Tensor", w.apply("aten.rsub.Scalar", w.uniform(), 1.0), high-low)
	return w.apply("aten.add.Tensor", w.cast(part), int64(low))
}
