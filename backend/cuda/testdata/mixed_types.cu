/*
kernel mixed_types scalars 0 {
  buffer 0: read bf16 align 2 x
  buffer 1: read f16 align 2 y
  buffer 2: read bool align 1 mask
  buffer 3: read f64 align 8 z
  buffer 4: write bf16 align 2 out bf16
  buffer 5: write f16 align 2 out f16
  buffer 6: write f32 align 4 out f32
  outer [1001]
  stage [] {
    %0 = load bf16 b0[i0]
    %1 = cast f32 %0
    %2 = load f16 b1[i0]
    %3 = cast f32 %2
    %4 = add f32 %1 %3
    %5 = load bool b2[i0]
    %6 = load f64 b3[i0]
    %7 = cast f32 %6
    %8 = select f32 %5 %4 %7
    %9 = cast bf16 %8
    store bf16 b4[i0] %9
    %11 = cast f16 %8
    store f16 b5[i0] %11
    %13 = cast f32 %8
    store f32 b6[i0] %13
  }
}
*/
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

struct f16 { u16 bits; };

struct bf16 { u16 bits; };

__device__ __forceinline__ float to_float_f16(f16 value)
{
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
    return result;
}

__device__ __forceinline__ f16 to_f16(float value)
{
    f16 result;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
    return result;
}

__device__ __forceinline__ float to_float_bf16(bf16 value)
{
    return __uint_as_float((u32)value.bits << 16);
}

__device__ __forceinline__ bf16 to_bf16(float value)
{
    bf16 result;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
    return result;
}

template <typename T, int width> struct alignas(sizeof(T) * width) Vector { T at[width]; };
template <typename T, int width> __device__ __forceinline__ Vector<T, width> load(const T *from)
{
    return *reinterpret_cast<const Vector<T, width> *>(from);
}
template <typename T, int width> __device__ __forceinline__ void store(T *to, const Vector<T, width> &values)
{
    *reinterpret_cast<Vector<T, width> *>(to) = values;
}

extern "C" __global__ void __launch_bounds__(256)
mixed_types(
    const bf16 *__restrict__ x_0,
    const f16 *__restrict__ y_1,
    const u8 *__restrict__ mask_2,
    const double *__restrict__ z_3,
    bf16 *__restrict__ out_bf16_4,
    f16 *__restrict__ out_f16_5,
    float *__restrict__ out_f32_6,
    const i64 work) {
    const i32 i = ((i32)blockIdx.x * 256 + threadIdx.x) * 2;
    if (i + 2 <= work && (u64)x_0 % 4 == 0 && (u64)y_1 % 4 == 0 && (u64)mask_2 % 2 == 0 && (u64)z_3 % 16 == 0 && (u64)out_bf16_4 % 4 == 0 && (u64)out_f16_5 % 4 == 0 && (u64)out_f32_6 % 8 == 0) {
        const Vector<bf16, 2> v0 = load<bf16, 2>(x_0 + i);
        const Vector<f16, 2> v2 = load<f16, 2>(y_1 + i);
        const Vector<u8, 2> v5 = load<u8, 2>(mask_2 + i);
        const Vector<double, 2> v6 = load<double, 2>(z_3 + i);
        Vector<bf16, 2> v10;
        Vector<f16, 2> v12;
        Vector<float, 2> v14;
#pragma unroll
        for (u32 lane = 0; lane < 2; ++lane) {
            const float v1 = to_float_bf16(v0.at[lane]);
            const float v3 = to_float_f16(v2.at[lane]);
            const float v4 = v1 + v3;
            const float v7 = (float)v6.at[lane];
            const float v8 = (v5.at[lane] != 0) ? v4 : v7;
            const bf16 v9 = to_bf16(v8);
            v10.at[lane] = v9;
            const f16 v11 = to_f16(v8);
            v12.at[lane] = v11;
            const float v13 = v8;
            v14.at[lane] = v13;
        }
        store(out_bf16_4 + i, v10);
        store(out_f16_5 + i, v12);
        store(out_f32_6 + i, v14);
        return;
    }
#pragma unroll 1
    for (i32 at = i; at < i + 2 && at < work; ++at) {
        const bf16 v0 = x_0[at];
        const float v1 = to_float_bf16(v0);
        const f16 v2 = y_1[at];
        const float v3 = to_float_f16(v2);
        const float v4 = v1 + v3;
        const bool v5 = (mask_2[at] != 0);
        const double v6 = z_3[at];
        const float v7 = (float)v6;
        const float v8 = v5 ? v4 : v7;
        const bf16 v9 = to_bf16(v8);
        out_bf16_4[at] = v9;
        const f16 v11 = to_f16(v8);
        out_f16_5[at] = v11;
        const float v13 = v8;
        out_f32_6[at] = v13;
    }
}
