package cpu

import (
	"math"

	"fusee/backend/loop"
)

// Functions of float32 are computed in double and rounded once, which makes them correct to within 0.51 units in the last place. For the most used ones
// short polynomials below reach the 2^-32 that takes; the others call libmvec's double variants. Most exp are expSingle.
var cores = map[loop.Op]func(c *core, x string) string{
	loop.OpExp:   (*core).exp,
	loop.OpExp2:  func(c *core, x string) string { return c.exp(c.mul(x, c.number(math.Ln2))) },
	loop.OpExpM1: (*core).expM1,
	loop.OpTanH:  (*core).tanH,
	loop.OpLog:   (*core).log,
	loop.OpLog2:  func(c *core, x string) string { return c.mul(c.log(x), c.number(math.Log2E)) },
	loop.OpLog10: func(c *core, x string) string { return c.mul(c.log(x), c.number(math.Log10E)) },
	loop.OpLog1P: (*core).log1P,
	loop.OpErf:   (*core).erf,
}

// core appends arithmetic on vectors of one type of floats.
type core struct {
	*emitter
	typ   loop.Type
	lanes int
}

func (c *core) vector() string { return vectorType(c.typ, c.lanes) }

func (c *core) integers() loop.Type {
	if c.typ == loop.F32 {
		return loop.I32
	}
	return loop.I64
}

func (c *core) number(value float64) string { return floatConstant(c.typ, value, c.lanes) }

func (c *core) integer(value int64) string { return integerConstant(c.integers(), value, c.lanes) }

func (c *core) float(instruction, left, right string) string {
	return c.assign("%s %s %s, %s", instruction, c.vector(), left, right)
}

func (c *core) add(left, right string) string    { return c.float("fadd", left, right) }
func (c *core) sub(left, right string) string    { return c.float("fsub", left, right) }
func (c *core) mul(left, right string) string    { return c.float("fmul", left, right) }
func (c *core) div(left, right string) string    { return c.float("fdiv", left, right) }
func (c *core) less(left, right string) string   { return c.float("fcmp olt", left, right) }
func (c *core) equal(left, right string) string  { return c.float("fcmp oeq", left, right) }
func (c *core) pick(test, yes, no string) string { return c.choose(test, c.typ, c.lanes, yes, no) }
func (c *core) fma(a, b, d string) string {
	return c.intrinsic("fma", c.typ, c.lanes, []string{a, b, d})
}
func (c *core) bits(op, left, right string) string {
	return c.assign("%s %s %s, %s", op, vectorType(c.integers(), c.lanes), left, right)
}

func (c *core) toBits(x string) string {
	return c.assign("bitcast %s %s to %s", c.vector(), x, vectorType(c.integers(), c.lanes))
}

func (c *core) fromBits(x string) string {
	return c.assign("bitcast %s %s to %s", vectorType(c.integers(), c.lanes), x, c.vector())
}

// polynomial evaluates coefficients, highest power first, by Horner's rule.
func (c *core) polynomial(x string, coefficients ...float64) string {
	result := c.number(coefficients[0])
	for _, coefficient := range coefficients[1:] {
		result = c.fma(result, x, c.number(coefficient))
	}
	return result
}

// shifter is 1.5·2^52: adding it to a number below 2^51 rounds the number to an integer and leaves that in the low bits.
const shifter = 0x1.8p52

// reduceExp splits x into k·ln 2 + r with |r| at most ln 2 / 2, and returns r, the exponent field of 2^k, and (e^r − 1) / r to 2^-31 (by interpolation at the
// Chebyshev nodes of that interval). Beyond the range of float32 x is clamped; NaN passes.
func (c *core) reduceExp(x string) (r, exponent, quotient string) {
	x = c.pick(c.less(c.number(90), x), c.number(90), x)
	x = c.pick(c.less(x, c.number(-110)), c.number(-110), x)
	shifted := c.fma(x, c.number(math.Log2E), c.number(shifter))
	k := c.sub(shifted, c.number(shifter))
	r = c.fma(k, c.number(-math.Ln2), x)
	exponent = c.bits("shl", c.toBits(shifted), c.integer(52))
	quotient = c.polynomial(r, 0.00019899285575896282, 0.0013941118895837, 0.00833329846980059, 0.04166635277111221, 0.16666666719028936,
		0.5000000047146057, 1)
	return r, exponent, quotient
}

// scaled multiplies by 2^k by adding to the exponent field.
func (c *core) scaled(x, exponent string) string {
	return c.fromBits(c.bits("add", c.toBits(x), exponent))
}

func (c *core) exp(x string) string {
	r, exponent, quotient := c.reduceExp(x)
	return c.scaled(c.fma(r, quotient, c.number(1)), exponent)
}

// expM1 keeps the small part apart from 2^k − 1, so that nothing cancels.
func (c *core) expM1(x string) string {
	r, exponent, quotient := c.reduceExp(x)
	scale := c.scaled(c.number(1), exponent)
	return c.fma(scale, c.mul(r, quotient), c.sub(scale, c.number(1)))
}

// tanH is e/(e+2) for e = exp(2|x|) − 1, with x's sign.
func (c *core) tanH(x string) string {
	magnitude := c.intrinsic("fabs", loop.F64, c.lanes, []string{x})
	e := c.expM1(c.add(magnitude, magnitude))
	return c.intrinsic("copysign", loop.F64, c.lanes, []string{c.div(e, c.add(e, c.number(2))), x})
}

// log splits x into 2^k·m with m in [√½, √2) and adds 2·artanh((m−1)/(m+1)), to 2^-37 by interpolation in the square. Doubles made of float32 are never subnormal.
func (c *core) log(x string) string {
	rootHalf := int64(math.Float64bits(math.Sqrt2 / 2))
	field := c.bits("sub", c.toBits(x), c.integer(rootHalf))
	mantissa := c.bits("sub", c.toBits(x), c.bits("and", field, c.integer(-1<<52)))
	biased := c.bits("lshr", c.bits("add", field, c.integer(1024<<52)), c.integer(52))
	k := c.sub(c.fromBits(c.bits("or", biased, c.integer(0x433<<52))), c.number(1<<52+1024))
	f := c.sub(c.fromBits(mantissa), c.number(1))
	s := c.div(f, c.add(f, c.number(2)))
	series := c.polynomial(c.mul(s, s), 0.11808272010075525, 0.1426752075978582, 0.2000019241115328, 0.3333333262337656, 1.0000000000041824)
	result := c.fma(k, c.number(math.Ln2), c.mul(c.add(s, s), series))
	result = c.pick(c.equal(x, c.number(math.Inf(1))), x, result)
	result = c.pick(c.equal(x, c.number(0)), c.number(math.Inf(-1)), result)
	negative := c.float("fcmp ult", x, c.number(0)) // or NaN
	return c.pick(negative, c.number(math.NaN()), result)
}

// log1P adds 1 exactly enough, except close to 0, where three terms of the series are exact.
func (c *core) log1P(x string) string {
	small := c.less(c.intrinsic("fabs", loop.F64, c.lanes, []string{x}), c.number(1./4096))
	series := c.mul(x, c.polynomial(x, -1./4, 1./3, -1./2, 1))
	return c.pick(small, series, c.log(c.add(x, c.number(1))))
}

// erf is x times a rational function of x² that is right to 2^-31 up to 3.937 (least squares at the Chebyshev nodes, reweighted towards equal errors); from there on float32
// rounds erf to 1.
func (c *core) erf(x string) string {
	limit := math.Sqrt(15.5)
	x = c.pick(c.less(c.number(limit), x), c.number(limit), x)
	x = c.pick(c.less(x, c.number(-limit)), c.number(-limit), x)
	square := c.mul(x, x)
	numerator := c.polynomial(square, -2.6983077994977277e-09, 8.509335531379829e-07, 6.795446338530012e-05, 0.0009582030539795981,
		0.012355464278518679, 0.08244808635666558, 0.36216419301368746, 1.1283791670380876)
	denominator := c.polynomial(square, 1.1088871174942663e-05, 0.0002677251176406075, 0.0036988906163740753, 0.03305163971866884,
		0.19116541273274948, 0.6542929891131082, 1)
	return c.mul(x, c.div(numerator, denominator))
}

// math32 computes a function of float32 in double.
func (e *emitter) math32(op loop.Op, function mathFunction, lanes int, args []string) string {
	wide := make([]string, len(args))
	for index, arg := range args {
		wide[index] = e.convert("fpext", loop.F32, loop.F64, lanes, arg)
	}
	var result string
	if write, ok := cores[op]; ok {
		result = write(&core{e, loop.F64, lanes}, wide[0])
	} else {
		result = e.math(function, loop.F64, lanes, wide)
	}
	return e.convert("fptrunc", loop.F64, loop.F32, lanes, result)
}
