package cpu

import (
	"fmt"
	"math"

	"fusee/backend/loop"
)

// exponential computes exp of float32 in single precision, except where another function is taken of it: that may make more of its error.
func (e *emitter) exponential(in *loop.Instruction, typ loop.Type, lanes int, args []string) string {
	if typ != loop.F32 || e.nested[in] {
		return e.operation(loop.OpExp, typ, lanes, args)
	}
	c := &core{e, typ, lanes}
	if in.Short {
		return c.expShort(args[0])
	}
	return c.expSingle(args[0])
}

// quotient divides. Where the result may err and all lanes share the divisor, they are multiplied by its reciprocal, found before; a divisor that has no accurate one
// is brought closer to 1 first, and the dividend with it.
func (e *emitter) quotient(in *loop.Instruction, lanes int, args []string) string {
	divisor := e.values[in.Args[1]]
	if !in.Short || lanes == 1 || divisor.lanes != 1 {
		return e.operation(loop.OpDivide, in.Type, lanes, args)
	}
	c := &core{e, loop.F32, 1}
	magnitude := c.intrinsic("fabs", loop.F32, 1, []string{divisor.text})
	scale := c.pick(c.less(magnitude, c.number(0x1p-100)), c.number(0x1p60), c.number(1))
	scale = c.pick(c.less(c.number(0x1p100), magnitude), c.number(0x1p-60), scale)
	reciprocal := c.div(c.number(1), c.mul(divisor.text, scale))
	wide := &core{e, loop.F32, lanes}
	scaled := wide.mul(args[0], e.splat("float", scale, lanes))
	return wide.mul(scaled, e.splat("float", reciprocal, lanes))
}

// nested marks what functions are taken of.
func nested(kernel *loop.Kernel) map[*loop.Instruction]bool {
	result := map[*loop.Instruction]bool{}
	for stage := range kernel.Stages {
		for _, in := range kernel.Stages[stage].Body {
			if _, function := mathFunctions[in.Op]; !function {
				continue
			}
			for _, arg := range in.Args {
				result[kernel.Instruction(arg)] = true
			}
		}
	}
	return result
}

// reduceSingle splits x into k·ln 2 + r + low, where r is exact and low the rest that ln 2 has beyond single precision. vanishes says where e^x is 0, which processors are
// slow to find by rounding.
func (c *core) reduceSingle(x string) (r, k, shifted, vanishes string) {
	x = c.pick(c.less(c.number(89), x), c.number(89), x)
	vanishes = c.less(x, c.number(-104))
	x = c.pick(vanishes, c.number(0), x)
	shifted = c.fma(x, c.number(math.Log2E), c.number(shifterSingle))
	k = c.sub(shifted, c.number(shifterSingle))
	return c.fma(k, c.number(-float64(float32(math.Ln2))), x), k, shifted, vanishes
}

// expSingle computes exp in single precision to within 0.61 units in the last place. e^r is 1 + r + r²·p(r), by interpolation of p at the Chebyshev nodes, and what the
// sum 1 + r loses is added to the small terms.
func (c *core) expSingle(x string) string {
	r, k, shifted, vanishes := c.reduceSingle(x)
	low := c.mul(k, c.number(float64(float32(math.Ln2))-math.Ln2))
	square := c.mul(r, r)
	p := c.polynomial(r, 0.000198912799526017, 0.0013933910353940131, 0.008333310664235417, 0.04166646257283667, 0.1666666668188549, 0.5000000013701955)
	sum := c.add(c.number(1), r)
	lost := c.sub(r, c.sub(sum, c.number(1)))
	small := c.fma(square, p, c.fma(low, c.fma(square, c.number(0.5), sum), lost))
	return c.pick(vanishes, c.number(0), c.scaleSingle(c.add(sum, small), k, shifted))
}

// expShort computes exp to 2^-17, relative to the result.
func (c *core) expShort(x string) string {
	r, k, shifted, vanishes := c.reduceSingle(x)
	power := c.polynomial(r, 0.04187606351591703, 0.16792394814372918, 0.4999936962002844, 0.9999621433322496, 1.0)
	return c.pick(vanishes, c.number(0), c.scaleSingle(power, k, shifted))
}

// shifterSingle does for single precision what shifter does for double.
const shifterSingle = 0x1.8p23

// scaleSingle multiplies by 2^k, which may leave the range of normal numbers: by the processor's own instruction, or by two factors. The low bits of shifted are k.
func (c *core) scaleSingle(x, k, shifted string) string {
	if c.target.masks && c.lanes > 1 {
		return c.inPieces(loop.F32, c.target.VectorBytes/4, c.lanes, []string{x, k}, c.scaleVector)
	}
	exponent := c.bits("shl", c.toBits(shifted), c.integer(23))
	half := c.bits("and", c.bits("ashr", exponent, c.integer(1)), c.integer(-1<<23))
	rest := c.fromBits(c.bits("add", c.bits("sub", exponent, half), c.integer(127<<23)))
	return c.mul(c.fromBits(c.bits("add", c.toBits(x), half)), rest)
}

// scaleVector is AVX-512's vscalefps on one register.
func (c *core) scaleVector(args []string) string {
	lanes := c.target.VectorBytes / 4
	vector, mask := vectorType(loop.F32, lanes), fmt.Sprintf("i%d", lanes)
	name := fmt.Sprintf("llvm.x86.avx512.mask.scalef.ps.%d", 8*c.target.VectorBytes)
	const currentRounding = "4"
	return c.call(vector, name, []string{vector, vector, vector, mask, "i32"}, []string{args[0], args[1], args[0], "-1", currentRounding})
}
