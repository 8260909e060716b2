package cuda

import (
	"slices"
	"strings"
)

// helper is a piece of CUDA C that a kernel's source starts with when it is used.
type helper struct {
	name string
	uses []string
	text string
}

// helpers returns all helpers, each after those it uses.
func helpers() []helper {
	return []helper{
		{"types", nil, `typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
`},
		{"f16", []string{"types"}, "struct f16 { u16 bits; };\n"},
		{"bf16", []string{"types"}, "struct bf16 { u16 bits; };\n"},
		{"to_float_f16", []string{"f16"}, `__device__ __forceinline__ float to_float_f16(f16 value)
{
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
    return result;
}
`},
		{"to_f16", []string{"f16"}, `__device__ __forceinline__ f16 to_f16(float value)
{
    f16 result;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
    return result;
}
`},
		{"to_float_bf16", []string{"bf16"}, `__device__ __forceinline__ float to_float_bf16(bf16 value)
{
    return __uint_as_float((u32)value.bits << 16);
}
`},
		{"to_bf16", []string{"bf16"}, `__device__ __forceinline__ bf16 to_bf16(float value)
{
    bf16 result;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
    return result;
}
`},
		{"vector", []string{"types"}, `template <typename T, int width> struct alignas(sizeof(T) * width) Vector { T at[width]; };
template <typename T, int width> __device__ __forceinline__ Vector<T, width> load(const T *from)
{
    return *reinterpret_cast<const Vector<T, width> *>(from);
}
template <typename T, int width> __device__ __forceinline__ void store(T *to, const Vector<T, width> &values)
{
    *reinterpret_cast<Vector<T, width> *>(to) = values;
}
`},
		{"divide", []string{"types"}, `// 64-bit division costs ten times as much as 32-bit division, and few sizes need it
__device__ __forceinline__ i64 divide(i64 dividend, i64 divisor)
{
    if (((dividend | divisor) >> 31) == 0)
        return (u32)dividend / (u32)divisor;
    return dividend / divisor;
}
`},
		// As the assertions of at::native's own kernels: the device's context is lost, and the next call that waits for it raises the error.
		{"index_out_of_range", []string{"types"}, `extern "C" __device__ void __assertfail(const char *, const char *, unsigned, const char *, size_t);
__device__ __noinline__ void index_out_of_range()
{
    __assertfail("index out of range", "fusee", 0, "kernel", 1);
}
`},
		{"bitcast", nil, `template <typename To, typename From> __device__ __forceinline__ To bitcast(From from)
{
    To to;
    memcpy(&to, &from, sizeof(to));
    return to;
}
`},
		// NaN operands come back as they are, as from at::maximum and at::minimum.
		{"maximum", nil, `__device__ __forceinline__ float maximum(float a, float b) { return a != a ? a : b != b ? b : fmaxf(a, b); }
__device__ __forceinline__ double maximum(double a, double b) { return a != a ? a : b != b ? b : fmax(a, b); }
`},
		// As maximum, but what NaN it gives is its own choice. One instruction on the architectures that have it.
		{"greatest", []string{"maximum"}, `__device__ __forceinline__ float greatest(float a, float b)
{
#if __CUDA_ARCH__ >= 800
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
#else
    return maximum(a, b);
#endif
}
__device__ __forceinline__ double greatest(double a, double b) { return maximum(a, b); }
`},
		// The error of the short exponential grows with its argument's size, as its share in a sum whose greatest term is 1 falls.
		{"add_exponentials", []string{"greatest"}, `__device__ __forceinline__ float power(float x) { return __expf(x); }
__device__ __forceinline__ double power(double x) { return exp(x); }
template <typename T, int count>
__device__ __forceinline__ void add_exponentials(T least, T &most, T &sum, const T (&x)[count])
{
    T top = most;
#pragma unroll
    for (int i = 0; i < count; ++i)
        top = greatest(top, x[i]);
    const T shift = top == least ? T(0) : top;
    T total = sum * power(most - shift);
#pragma unroll
    for (int i = 0; i < count; ++i)
        total = total + power(x[i] - shift);
    most = top;
    sum = total;
}
`},
		{"join_exponentials", []string{"add_exponentials"}, `template <typename T> __device__ __forceinline__ void join_exponentials(T least, T &most, T &sum, T other, T other_sum)
{
    const T top = greatest(most, other);
    const T shift = top == least ? T(0) : top;
    sum = sum * power(most - shift) + other_sum * power(other - shift);
    most = top;
}
`},
		// Of the error of rounding to 16 bits these leave nothing to see; they take one or two of the few instructions for functions that a multiprocessor
		// starts in a cycle. The quotient is of the full range, as opposed to that of __fdividef.
		{"short_exp", nil, `__device__ __forceinline__ float short_exp(float x) { return __expf(x); }
`},
		{"short_divide", nil, `__device__ __forceinline__ float short_divide(float a, float b)
{
#ifdef __CUDA_ARCH__
    float result;
    asm("div.full.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
#else
    return a / b;
#endif
}
`},
		{"raise_two", nil, `__device__ __forceinline__ float raise_two(float x)
{
#ifdef __CUDA_ARCH__
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
#else
    return exp2f(x);
#endif
}
`},
		// Near zero the difference loses what makes the result, which there is x.
		{"short_tanh", []string{"raise_two"}, `__device__ __forceinline__ float short_tanh(float x)
{
    const float result = 1.0f - __fdividef(2.0f, 1.0f + raise_two(x * 2.885390082f));
    return fabsf(x) < 0.0078125f ? x : result;
}
`},
		// The logistic function of an odd polynomial, fitted to log(erfc(-x) / erfc(x)): the relative error is below 5e-5 up to x = 2.5, and
		// beyond it less than that of eager's 1 + erf(-x). The polynomial grows without end, so that the result ends at 0 and 2.
		{"short_erfc", []string{"raise_two"}, `__device__ __forceinline__ float short_erfc(float x)
{
    const float square = x * x;
    float slope = 2.41073977e-07f;
    slope = fmaf(slope, square, -1.08052843e-05f);
    slope = fmaf(slope, square, 0.00018789768f);
    slope = fmaf(slope, square, -0.00144355524f);
    slope = fmaf(slope, square, -0.00140721824f);
    slope = fmaf(slope, square, 0.29740997f);
    slope = fmaf(slope, square, 3.25555826f);
    return __fdividef(2.0f, 1.0f + raise_two(x * slope));
}
`},
		{"minimum", nil, `__device__ __forceinline__ float minimum(float a, float b) { return a != a ? a : b != b ? b : fminf(a, b); }
__device__ __forceinline__ double minimum(double a, double b) { return a != a ? a : b != b ? b : fmin(a, b); }
`},
		{"divide_truncate", nil, `template <typename T> __device__ __forceinline__ T divide_truncate(T a, T b)
{
    const bool negative = T(-1) < T(0);
    return negative && b == T(-1) ? T(0ull - (unsigned long long)a) : T(a / b);
}
`},
		{"remainder", nil, `template <typename T> __device__ __forceinline__ T truncated_remainder(T a, T b)
{
    const bool negative = T(-1) < T(0);
    return negative && b == T(-1) ? T(0) : T(a % b);
}
`},
		{"divide_floor", []string{"divide_truncate", "remainder"}, `template <typename T> __device__ __forceinline__ T divide_floor(T a, T b)
{
    const bool inexact = truncated_remainder(a, b) != 0 && (a < 0) != (b < 0);
    return T(divide_truncate(a, b) - T(inexact));
}
`},
		{"modulo", []string{"remainder"}, `template <typename T> __device__ __forceinline__ T modulo(T a, T b)
{
    const T rest = truncated_remainder(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? T(rest + b) : rest;
}
`},
		{"modulo_float", nil, `__device__ __forceinline__ float modulo(float a, float b)
{
    const float rest = fmodf(a, b);
    return rest != 0.0f && (b < 0.0f) != (rest < 0.0f) ? rest + b : rest;
}
__device__ __forceinline__ double modulo(double a, double b)
{
    const double rest = fmod(a, b);
    return rest != 0.0 && (b < 0.0) != (rest < 0.0) ? rest + b : rest;
}
`},
		{"shift_left", []string{"types"}, `template <typename T> __device__ __forceinline__ T shift_left(T value, T count)
{
    return count < 0 || (u64)count >= 8 * sizeof(T) ? T(0) : T((u64)value << count);
}
`},
		{"shift_right", []string{"types"}, `template <typename T> __device__ __forceinline__ T shift_right(T value, T count)
{
    const bool negative = T(-1) < T(0);
    const bool outside = count < 0 || (u64)count >= 8 * sizeof(T);
    return outside ? (negative && value < 0 ? T(-1) : T(0)) : T(value >> count);
}
`},
		// The first of equal values wins, and NaN wins over numbers, as in at::argmax. Position -1 marks no value.
		{"take", []string{"types"}, `template <bool greatest, typename T>
__device__ __forceinline__ void take(T &best, i64 &place, T value, i64 position)
{
    const bool nan = value != value, best_nan = best != best;
    const bool equal = nan ? best_nan : value == best;
    const bool better = nan ? !best_nan : !best_nan && (greatest ? value > best : value < best);
    if (position >= 0 && (place < 0 || better || (equal && position < place))) {
        best = value;
        place = position;
    }
}
`},
	}
}

// declarations returns the source of the named helpers and of all that they use, in the table's order.
func declarations(used map[string]bool) string {
	table := helpers()
	needed := map[string]bool{}
	for _, h := range slices.Backward(table) {
		if used[h.name] || needed[h.name] {
			needed[h.name] = true
			for _, name := range h.uses {
				needed[name] = true
			}
		}
	}
	var text strings.Builder
	for _, h := range table {
		if needed[h.name] {
			text.WriteString(h.text + "\n")
		}
	}
	return text.String()
}
