package loop

import "math/bits"

// Philox appends Philox4x32-10, the generator of Salmon, Moraes, Dror and Shaw (Parallel random numbers: as easy as 1, 2, 3), to a kernel.
type Philox struct{ *Builder }

const (
	philoxRounds  = 10
	philoxFactor0 = 0xD2511F53
	philoxFactor1 = 0xCD9E8D57
	philoxKey0    = 0x9E3779B9 // by which the halves of the key grow from round to round
	philoxKey1    = 0xBB67AE85
)

// Literal makes a constant of bits.
func (p Philox) Literal(typ Type, value uint64) Value { return p.Constant(typ, Bits(value)) }

// Convert casts a value unless it has the type.
func (p Philox) Convert(typ Type, value Value) Value {
	if p.Kernel.Instruction(value).Type == typ {
		return value
	}
	return p.Cast(typ, value)
}

// halves gives the low and the high 32 bits.
func (p Philox) halves(value Value) (low, high Value) {
	shifted := p.Do(OpShiftRight, U64, value, p.Literal(U64, 32))
	return p.Cast(U32, value), p.Cast(U32, shifted)
}

// Divide gives quotient and remainder by a power of two.
func (p Philox) Divide(value Value, divisor uint64) (quotient, remainder Value) {
	typ := p.Kernel.Instruction(value).Type
	quotient = p.Do(OpShiftRight, typ, value, p.Literal(typ, uint64(bits.TrailingZeros64(divisor))))
	return quotient, p.Do(OpAnd, typ, value, p.Literal(typ, divisor-1))
}

// Words gives the four words of a counter of 64 bits in a sequence, for a key of 64 bits.
func (p Philox) Words(key, counter, sequence Value) [4]Value {
	key0, key1 := p.halves(key)
	var state [4]Value
	state[0], state[1] = p.halves(counter)
	state[2], state[3] = p.halves(sequence)
	for round := range philoxRounds {
		if round > 0 {
			key0 = p.Do(OpAdd, U32, key0, p.Literal(U32, philoxKey0))
			key1 = p.Do(OpAdd, U32, key1, p.Literal(U32, philoxKey1))
		}
		low0, high0 := p.product(state[0], philoxFactor0)
		low1, high1 := p.product(state[2], philoxFactor1)
		state = [4]Value{p.mix(high1, state[1], key0), low1, p.mix(high0, state[3], key1), low0}
	}
	return state
}

// product multiplies by a constant to 64 bits.
func (p Philox) product(value Value, factor uint64) (low, high Value) {
	return p.halves(p.Do(OpMultiply, U64, p.Cast(U64, value), p.Literal(U64, factor)))
}

func (p Philox) mix(a, b, c Value) Value {
	return p.Do(OpXor, U32, p.Do(OpXor, U32, a, b), c)
}

// pick gives the word whose number is chosen.
func (p Philox) pick(words []Value, chosen Value) Value {
	result := words[len(words)-1]
	typ := p.Kernel.Instruction(chosen).Type
	for index := len(words) - 2; index >= 0; index-- {
		here := p.Do(OpEqual, Bool, chosen, p.Literal(typ, uint64(index)))
		result = p.Do(OpSelect, p.Kernel.Instruction(result).Type, here, words[index], result)
	}
	return result
}

// Single gives a number above 0, up to 1, in single precision, as curand does: the middle of one of 2^32 equal parts, rounded.
func (p Philox) Single(words [4]Value, chosen Value) Value {
	return p.middle(F32, p.Cast(F32, p.pick(words[:], chosen)), 1.0/(1<<32))
}

// Double gives a number in double precision of two words, of which 53 bits count.
func (p Philox) Double(words [4]Value, chosen Value) Value {
	var numbers []Value
	for _, pair := range [][2]Value{{words[0], words[1]}, {words[2], words[3]}} {
		high := p.Do(OpShiftLeft, U64, p.Cast(U64, pair[1]), p.Literal(U64, 53-32))
		numbers = append(numbers, p.Do(OpXor, U64, p.Cast(U64, pair[0]), high))
	}
	return p.middle(F64, p.Cast(F64, p.pick(numbers, chosen)), 1.0/(1<<53))
}

// middle is number·part + part/2. The product is exact.
func (p Philox) middle(typ Type, number Value, part float64) Value {
	scaled := p.Do(OpMultiply, typ, number, p.Constant(typ, FloatBits(part)))
	return p.Do(OpAdd, typ, scaled, p.Constant(typ, FloatBits(part/2)))
}
