package cpu

import "fusee/backend/loop"

// cast converts between types as loop.OpCast says.
func (e *emitter) cast(from, to loop.Type, lanes int, text string) string {
	switch {
	case from == to:
		return text
	case from == loop.BF16:
		return e.cast(loop.F32, to, lanes, e.widenBrain(lanes, text))
	case from == loop.F16 && to != loop.F32:
		return e.cast(loop.F32, to, lanes, e.convert("fpext", from, loop.F32, lanes, text))
	case to == loop.Bool:
		return e.operation(loop.OpNotEqual, from, lanes, []string{text, constant(from, 0, lanes)})
	case to == loop.BF16:
		return e.narrowBrain(lanes, e.cast(from, loop.F32, lanes, text))
	case to == loop.F16:
		return e.convert("fptrunc", loop.F32, to, lanes, e.cast(from, loop.F32, lanes, text))
	case to.Is(loop.ClassFloat):
		return e.toFloat(from, to, lanes, text)
	case from.Is(loop.ClassFloat):
		return e.floatToInteger(from, to, lanes, text)
	}
	return e.toInteger(from, to, lanes, text)
}

// convert appends a conversion instruction.
func (e *emitter) convert(instruction string, from, to loop.Type, lanes int, text string) string {
	return e.assign("%s %s %s to %s", instruction, vectorType(from, lanes), text, vectorType(to, lanes))
}

func (e *emitter) toFloat(from, to loop.Type, lanes int, text string) string {
	switch {
	case from.Is(loop.ClassSigned):
		return e.convert("sitofp", from, to, lanes, text)
	case from.Is(loop.ClassUnsigned | loop.ClassBool):
		return e.convert("uitofp", from, to, lanes, text)
	case from.Bytes() < to.Bytes():
		return e.convert("fpext", from, to, lanes, text)
	}
	return e.convert("fptrunc", from, to, lanes, text)
}

// floatToInteger converts to a width the hardware has and narrows from there, so that out-of-range values give the bits eager's conversion gives.
func (e *emitter) floatToInteger(from, to loop.Type, lanes int, text string) string {
	wider := loop.I32
	if to.Bytes() == 8 || to.Is(loop.ClassUnsigned) {
		wider = loop.I64
	}
	return e.toInteger(wider, to, lanes, e.convert("fptosi", from, wider, lanes, text))
}

func (e *emitter) toInteger(from, to loop.Type, lanes int, text string) string {
	switch {
	case from != loop.Bool && from.Bytes() == to.Bytes():
		return text
	case from != loop.Bool && from.Bytes() > to.Bytes():
		return e.convert("trunc", from, to, lanes, text)
	case from.Is(loop.ClassSigned):
		return e.convert("sext", from, to, lanes, text)
	}
	return e.convert("zext", from, to, lanes, text)
}

// widenBrain turns the bits of bfloat16 into float: they are its upper half.
func (e *emitter) widenBrain(lanes int, text string) string {
	bits := e.assign("zext %s %s to %s", wide("i16", lanes), text, wide("i32", lanes))
	bits = e.assign("shl %s %s, %s", wide("i32", lanes), bits, splatConstant("i32", "16", lanes))
	return e.assign("bitcast %s %s to %s", wide("i32", lanes), bits, wide("float", lanes))
}

// narrowBrain rounds to nearest even by adding half a unit, less one where the kept part is even, and cutting; every NaN becomes 0x7fc0.
func (e *emitter) narrowBrain(lanes int, text string) string {
	integer, float := wide("i32", lanes), wide("float", lanes)
	number := func(value string) string { return splatConstant("i32", value, lanes) }
	bits := e.assign("bitcast %s %s to %s", float, text, integer)
	odd := e.assign("and %s %s, %s", integer, e.assign("lshr %s %s, %s", integer, bits, number("16")), number("1"))
	rounded := e.assign("add %s %s, %s", integer, bits, e.assign("add %s %s, %s", integer, odd, number("32767")))
	upper := e.assign("lshr %s %s, %s", integer, rounded, number("16"))
	nan := e.assign("fcmp uno %s %s, %s", float, text, text)
	chosen := e.assign("select %s %s, %s %s, %s %s", wide("i1", lanes), nan, integer, number("32704"), integer, upper)
	return e.assign("trunc %s %s to %s", integer, chosen, wide("i16", lanes))
}
