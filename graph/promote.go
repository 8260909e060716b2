package graph

// This file follows torch.result_type (aten/src/ATen/native/TypeProperties.cpp, c10/core/ScalarType.h).

// promoted is the type of the result of two types of equal standing; NoDType when torch defines none.
func promoted(a, b DType) DType {
	switch {
	case a == b || b == NoDType:
		return a
	case a == NoDType:
		return b
	case a.unpromotable() || b.unpromotable():
		return promoteUnusual(a, b)
	case a.Category() < b.Category():
		a, b = b, a
	}
	switch a.Category() {
	case CategoryComplex:
		return promoteComplex(a, b)
	case CategoryFloat:
		return promoteFloat(a, b)
	}
	return promoteInt(a, b)
}

// unpromotable types mix with few others: 8-bit floats, and wide unsigned integers.
func (d DType) unpromotable() bool {
	switch d {
	case Float8E5M2, Float8E4M3FN, Float8E5M2FNUZ, Float8E4M3FNUZ, Uint16, Uint32, Uint64:
		return true
	}
	return false
}

func promoteUnusual(a, b DType) DType {
	if a.isWideUnsigned() && b.IsDifferentiable() && !b.unpromotable() {
		return b
	}
	if b.isWideUnsigned() && a.IsDifferentiable() && !a.unpromotable() {
		return a
	}
	return NoDType
}

func (d DType) isWideUnsigned() bool { return d == Uint16 || d == Uint32 || d == Uint64 }

func promoteComplex(a, b DType) DType {
	if !b.IsDifferentiable() {
		return a
	}
	return complexOf(promoteFloat(a.Real(), b.Real()))
}

func promoteFloat(a, b DType) DType {
	switch {
	case a == b || !b.IsFloat() || a.Bytes() > b.Bytes():
		return a
	case a.Bytes() == b.Bytes():
		return Float32 // of float16 and bfloat16
	}
	return b
}

// promoteInt mixes integers and bool; uint8 with a signed type needs a wider signed one.
func promoteInt(a, b DType) DType {
	switch {
	case b == Bool || b == a:
		return a
	case a == Uint8 || b == Uint8:
		signed := a
		if a == Uint8 {
			signed = b
		}
		if signed == Int8 {
			return Int16
		}
		return signed
	case a.Bytes() >= b.Bytes():
		return a
	}
	return b
}

// resultType collects operands and answers their common type: tensors with dimensions outrank 0-d tensors, which outrank
// Python numbers, unless the lower rank has a higher category.
type resultType struct {
	dimensional, zero, wrapped DType
	failed                     bool
}

func (r *resultType) join(slot *DType, d DType) {
	joined := promoted(*slot, d)
	r.failed = r.failed || joined == NoDType
	*slot = joined
}

func (r *resultType) addTensor(m *Meta) {
	if m.Dim() > 0 {
		r.join(&r.dimensional, m.DType)
	} else {
		r.join(&r.zero, m.DType)
	}
}

// addNumber joins a Python number.
func (r *resultType) addNumber(d DType, defaultType DType) {
	r.join(&r.wrapped, d.ofNumber(defaultType))
}

// ofNumber is the type that a Python number counts as: the default type for floats and, made complex, for complex numbers.
func (d DType) ofNumber(defaultType DType) DType {
	switch {
	case d.IsFloat():
		return defaultType
	case d.IsComplex():
		return complexOf(defaultType)
	}
	return d
}

// complexOf is the complex type whose parts have a floating-point type: none for bfloat16. Other types stay what they are.
func complexOf(d DType) DType {
	switch d {
	case Float16, Float32, Float64:
		return d - Float16 + Complex32 // the types stand in the same order
	case BFloat16:
		return NoDType
	}
	return d
}

// common is the result; NoDType when there is none.
func (r *resultType) common() DType {
	lower := combineCategories(r.zero, r.wrapped)
	result := combineCategories(r.dimensional, lower)
	if r.failed {
		return NoDType
	}
	return result
}

func combineCategories(higher, lower DType) DType {
	switch {
	case higher.IsComplex():
		return higher
	case higher.IsFloat():
		if lower.IsComplex() {
			return complexOf(higher) // none for bfloat16
		}
		return higher
	case higher == Bool || lower.IsFloat() || lower.IsComplex():
		return promoted(higher, lower)
	case higher != NoDType:
		return higher
	}
	return lower
}

// canCast says whether an in-place operation may store a result of type from into a tensor of type to.
func canCast(from, to DType) bool {
	switch {
	case from.IsComplex() && !to.IsComplex(), from.IsFloat() && !to.IsDifferentiable():
		return false
	}
	return from == Bool || to != Bool
}

// numberType is the type of a Python number that takes part in promotion.
func numberType(v Value) (DType, bool) {
	switch v := v.(type) {
	case bool:
		return Bool, true
	case int64, Size:
		return Int64, true
	case float64:
		return Float64, true
	case complex128:
		return Complex128, true
	case *Input:
		switch v.Kind {
		case Int:
			return Int64, true
		case Float:
			return Float64, true
		}
	}
	return NoDType, false
}
