/*
kernel layer_norm scalars 0 {
  buffer 0: read bf16 align 2 x
  buffer 1: read bf16 align 2 weight
  buffer 2: write bf16 align 2 out
  outer [5]
  stage [768] {
    %0 = load bf16 b0[768*i0 + j0]
    %1 = cast f32 %0
    %2 = reduce f32 sum %1
  }
  stage [] {
    %3 = constant f32 768
    %4 = divide f32 %2 %3
  }
  stage [768] {
    %5 = load bf16 b0[768*i0 + j0]
    %6 = cast f32 %5
    %7 = subtract f32 %6 %4
    %8 = multiply f32 %7 %7
    %9 = reduce f32 sum %8
  }
  stage [] {
    %10 = constant f32 768
    %11 = divide f32 %9 %10
    %12 = constant f32 1.52587890625e-05
    %13 = add f32 %11 %12
    %14 = rsqrt f32 %13
  }
  stage [768] {
    %15 = load bf16 b0[768*i0 + j0]
    %16 = cast f32 %15
    %17 = subtract f32 %16 %4
    %18 = multiply f32 %17 %14
    %19 = load bf16 b1[j0]
    %20 = cast f32 %19
    %21 = multiply f32 %18 %20
    %22 = cast bf16 %21
    store bf16 b2[768*i0 + j0] %22
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

struct bf16 { u16 bits; };

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

extern "C" __global__ void __launch_bounds__(128)
layer_norm(
    const bf16 *__restrict__ x_0,
    const bf16 *__restrict__ weight_1,
    bf16 *__restrict__ out_2,
    const i64 work) {
    const u32 rank = threadIdx.x % 32;
    const i32 item = (i32)blockIdx.x * 4 + threadIdx.x / 32;
    const bool active = item < work;
    const i32 i = active ? item : work - 1;
    if ((u64)out_2 % 16 == 0 && (u64)weight_1 % 16 == 0 && (u64)x_0 % 16 == 0) {
        Vector<bf16, 8> v0[3];

        float v2 = 0.0f;
#pragma unroll
        for (u32 step = 0; step < 3; ++step) {
            const i32 j = (step * 32 + rank) * 8;
            v0[step] = load<bf16, 8>(x_0 + i * 768 + j);
#pragma unroll
            for (u32 lane = 0; lane < 8; ++lane) {
                const float v1 = to_float_bf16(v0[step].at[lane]);
                v2 = v2 + v1;
            }
        }
#pragma unroll
        for (u32 distance = 16; distance > 0; distance /= 2) {
            const float other2 = __shfl_xor_sync(0xffffffffu, v2, distance);
            v2 = v2 + other2;
        }

        const float v4 = v2 / 768.0f;

        float v9 = 0.0f;
#pragma unroll
        for (u32 step = 0; step < 3; ++step) {
            const i32 j = (step * 32 + rank) * 8;
#pragma unroll
            for (u32 lane = 0; lane < 8; ++lane) {
                const float v6 = to_float_bf16(v0[step].at[lane]);
                const float v7 = v6 - v4;
                const float v8 = __fmul_rn(v7, v7);
                v9 = v9 + v8;
            }
        }
#pragma unroll
        for (u32 distance = 16; distance > 0; distance /= 2) {
            const float other9 = __shfl_xor_sync(0xffffffffu, v9, distance);
            v9 = v9 + other9;
        }

        const float v11 = v9 / 768.0f;
        const float v13 = v11 + 1.5258789e-05f;
        const float v14 = rsqrtf(v13);

#pragma unroll
        for (u32 step = 0; step < 3; ++step) {
            const i32 j = (step * 32 + rank) * 8;
            const Vector<bf16, 8> v19 = load<bf16, 8>(weight_1 + j);
            Vector<bf16, 8> v23;
#pragma unroll
            for (u32 lane = 0; lane < 8; ++lane) {
                const float v16 = to_float_bf16(v0[step].at[lane]);
                const float v17 = v16 - v4;
                const float v18 = __fmul_rn(v17, v14);
                const float v20 = to_float_bf16(v19.at[lane]);
                const float v21 = __fmul_rn(v18, v20);
                const bf16 v22 = to_bf16(v21);
                v23.at[lane] = v22;
            }
            if (active) {
                store(out_2 + i * 768 + j, v23);
            }
        }
        return;
    }

    float v2 = 0.0f;
#pragma unroll 1
    for (i32 j = rank; j < 768; j += 32) {
        const bf16 v0 = x_0[i * 768 + j];
        const float v1 = to_float_bf16(v0);
        v2 = v2 + v1;
    }
#pragma unroll
    for (u32 distance = 16; distance > 0; distance /= 2) {
        const float other2 = __shfl_xor_sync(0xffffffffu, v2, distance);
        v2 = v2 + other2;
    }

    const float v4 = v2 / 768.0f;

    float v9 = 0.0f;
#pragma unroll 1
    for (i32 j = rank; j < 768; j += 32) {
        const bf16 v5 = x_0[i * 768 + j];
        const float v6 = to_float_bf16(v5);
        const float v7 = v6 - v4;
        const float v8 = __fmul_rn(v7, v7);
        v9 = v9 + v8;
    }
#pragma unroll
    for (u32 distance = 16; distance > 0; distance /= 2) {
        const float other9 = __shfl_xor_sync(0xffffffffu, v9, distance);
        v9 = v9 + other9;
    }

    const float v11 = v9 / 768.0f;
    const float v13 = v11 + 1.5258789e-05f;
    const float v14 = rsqrtf(v13);

#pragma unroll 1
    for (i32 j = rank; j < 768; j += 32) {
        const bf16 v15 = x_0[i * 768 + j];
        const float v16 = to_float_bf16(v15);
        const float v17 = v16 - v4;
        const float v18 = __fmul_rn(v17, v14);
        const bf16 v19 = weight_1[j];
        const float v20 = to_float_bf16(v19);
        const float v21 = __fmul_rn(v18, v20);
        const bf16 v22 = to_bf16(v21);
        if (active) {
            out_2[i * 768 + j] = v22;
        }
    }
}
