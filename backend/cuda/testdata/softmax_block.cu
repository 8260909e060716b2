/*
kernel softmax_block scalars 0 {
  buffer 0: read bf16 align 2 x
  buffer 1: write bf16 align 2 out
  outer [3]
  stage [2560] {
    %0 = load bf16 b0[2560*i0 + j0]
    %1 = cast f32 %0
    %2 = reduce f32 maximum %1
  }
  stage [2560] {
    %3 = load bf16 b0[2560*i0 + j0]
    %4 = cast f32 %3
    %5 = subtract f32 %4 %2
    %6 = exp f32 %5
    %7 = reduce f32 sum %6
  }
  stage [2560] {
    %8 = load bf16 b0[2560*i0 + j0]
    %9 = cast f32 %8
    %10 = subtract f32 %9 %2
    %11 = exp f32 %10
    %12 = divide f32 %11 %7
    %13 = cast bf16 %12
    store bf16 b1[2560*i0 + j0] %13
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

__device__ __forceinline__ float maximum(float a, float b) { return a != a ? a : b != b ? b : fmaxf(a, b); }
__device__ __forceinline__ double maximum(double a, double b) { return a != a ? a : b != b ? b : fmax(a, b); }

__device__ __forceinline__ float greatest(float a, float b)
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

extern "C" __global__ void __launch_bounds__(256)
softmax_block(
    const bf16 *__restrict__ x_0,
    bf16 *__restrict__ out_1,
    const i64 work) {
    const u32 rank = threadIdx.x;
    const i32 i = blockIdx.x;
    if ((u64)out_1 % 16 == 0 && (u64)x_0 % 16 == 0) {
        Vector<bf16, 8> v0[2];

        float v2 = __uint_as_float(0xff800000u);
#pragma unroll
        for (u32 step = 0; step < 2; ++step) {
            const i32 j = (step * 256 + rank) * 8;
            if (j < 2560) {
                v0[step] = load<bf16, 8>(x_0 + i * 2560 + j);
#pragma unroll
                for (u32 lane = 0; lane < 8; ++lane) {
                    const float v1 = to_float_bf16(v0[step].at[lane]);
                    v2 = greatest(v2, v1);
                }
            }
        }
#pragma unroll
        for (u32 distance = 16; distance > 0; distance /= 2) {
            const float other2 = __shfl_xor_sync(0xffffffffu, v2, distance);
            v2 = greatest(v2, other2);
        }
        __shared__ float v2_of_warp[8];
        if (threadIdx.x % 32 == 0) {
            v2_of_warp[threadIdx.x / 32] = v2;
        }
        __syncthreads();
        v2 = v2_of_warp[threadIdx.x % 8];
#pragma unroll
        for (u32 distance = 4; distance > 0; distance /= 2) {
            const float other2 = __shfl_xor_sync(0xffffffffu, v2, distance);
            v2 = greatest(v2, other2);
        }

        float v7 = 0.0f;
#pragma unroll
        for (u32 step = 0; step < 2; ++step) {
            const i32 j = (step * 256 + rank) * 8;
            if (j < 2560) {
#pragma unroll
                for (u32 lane = 0; lane < 8; ++lane) {
                    const float v4 = to_float_bf16(v0[step].at[lane]);
                    const float v5 = v4 - v2;
                    const float v6 = expf(v5);
                    v7 = v7 + v6;
                }
            }
        }
#pragma unroll
        for (u32 distance = 16; distance > 0; distance /= 2) {
            const float other7 = __shfl_xor_sync(0xffffffffu, v7, distance);
            v7 = v7 + other7;
        }
        __shared__ float v7_of_warp[8];
        if (threadIdx.x % 32 == 0) {
            v7_of_warp[threadIdx.x / 32] = v7;
        }
        __syncthreads();
        v7 = v7_of_warp[threadIdx.x % 8];
#pragma unroll
        for (u32 distance = 4; distance > 0; distance /= 2) {
            const float other7 = __shfl_xor_sync(0xffffffffu, v7, distance);
            v7 = v7 + other7;
        }

#pragma unroll
        for (u32 step = 0; step < 2; ++step) {
            const i32 j = (step * 256 + rank) * 8;
            if (j < 2560) {
                Vector<bf16, 8> v14;
#pragma unroll
                for (u32 lane = 0; lane < 8; ++lane) {
                    const float v9 = to_float_bf16(v0[step].at[lane]);
                    const float v10 = v9 - v2;
                    const float v11 = expf(v10);
                    const float v12 = v11 / v7;
                    const bf16 v13 = to_bf16(v12);
                    v14.at[lane] = v13;
                }
                store(out_1 + i * 2560 + j, v14);
            }
        }
        return;
    }

    float v2 = __uint_as_float(0xff800000u);
#pragma unroll 1
    for (i32 j = rank; j < 2560; j += 256) {
        const bf16 v0 = x_0[i * 2560 + j];
        const float v1 = to_float_bf16(v0);
        v2 = greatest(v2, v1);
    }
#pragma unroll
    for (u32 distance = 16; distance > 0; distance /= 2) {
        const float other2 = __shfl_xor_sync(0xffffffffu, v2, distance);
        v2 = greatest(v2, other2);
    }
    __shared__ float v2_of_warp[8];
    if (threadIdx.x % 32 == 0) {
        v2_of_warp[threadIdx.x / 32] = v2;
    }
    __syncthreads();
    v2 = v2_of_warp[threadIdx.x % 8];
#pragma unroll
    for (u32 distance = 4; distance > 0; distance /= 2) {
        const float other2 = __shfl_xor_sync(0xffffffffu, v2, distance);
        v2 = greatest(v2, other2);
    }

    float v7 = 0.0f;
#pragma unroll 1
    for (i32 j = rank; j < 2560; j += 256) {
        const bf16 v3 = x_0[i * 2560 + j];
        const float v4 = to_float_bf16(v3);
        const float v5 = v4 - v2;
        const float v6 = expf(v5);
        v7 = v7 + v6;
    }
#pragma unroll
    for (u32 distance = 16; distance > 0; distance /= 2) {
        const float other7 = __shfl_xor_sync(0xffffffffu, v7, distance);
        v7 = v7 + other7;
    }
    __shared__ float v7_of_warp[8];
    if (threadIdx.x % 32 == 0) {
        v7_of_warp[threadIdx.x / 32] = v7;
    }
    __syncthreads();
    v7 = v7_of_warp[threadIdx.x % 8];
#pragma unroll
    for (u32 distance = 4; distance > 0; distance /= 2) {
        const float other7 = __shfl_xor_sync(0xffffffffu, v7, distance);
        v7 = v7 + other7;
    }

#pragma unroll 1
    for (i32 j = rank; j < 2560; j += 256) {
        const bf16 v8 = x_0[i * 2560 + j];
        const float v9 = to_float_bf16(v8);
        const float v10 = v9 - v2;
        const float v11 = expf(v10);
        const float v12 = v11 / v7;
        const bf16 v13 = to_bf16(v12);
        out_1[i * 2560 + j] = v13;
    }
}
