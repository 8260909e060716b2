/*
kernel softmax_dynamic scalars 2 {
  buffer 0: read f32 align 4 x
  buffer 1: write f32 align 4 out
  outer [$0]
  stage [$1] {
    %0 = load f32 b0[$1*i0 + j0]
    %1 = cast f32 %0
    %2 = reduce f32 maximum %1
  }
  stage [$1] {
    %3 = load f32 b0[$1*i0 + j0]
    %4 = cast f32 %3
    %5 = subtract f32 %4 %2
    %6 = exp f32 %5
    %7 = reduce f32 sum %6
  }
  stage [$1] {
    %8 = load f32 b0[$1*i0 + j0]
    %9 = cast f32 %8
    %10 = subtract f32 %9 %2
    %11 = exp f32 %10
    %12 = divide f32 %11 %7
    %13 = cast f32 %12
    store f32 b1[$1*i0 + j0] %13
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

__device__ __forceinline__ float power(float x) { return __expf(x); }
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

template <typename T> __device__ __forceinline__ void join_exponentials(T least, T &most, T &sum, T other, T other_sum)
{
    const T top = greatest(most, other);
    const T shift = top == least ? T(0) : top;
    sum = sum * power(most - shift) + other_sum * power(other - shift);
    most = top;
}

extern "C" __global__ void __launch_bounds__(512)
softmax_dynamic(
    const float *__restrict__ x_0,
    float *__restrict__ out_1,
    const i64 n0,
    const i64 n1,
    const i64 work) {
    const u32 rank = threadIdx.x;
    const i64 i = blockIdx.x;
    if ((u64)out_1 % 16 == 0 && (u64)x_0 % 16 == 0 && n1 % 4 == 0) {

        float v2 = __uint_as_float(0xff800000u);
        float v7 = 0.0f;
#pragma unroll 4
        for (i64 j = rank * 4; j < n1; j += 2048) {
            float online2[4];
            const Vector<float, 4> v0 = load<float, 4>(x_0 + i * n1 + j);
#pragma unroll
            for (u32 lane = 0; lane < 4; ++lane) {
                const float v1 = v0.at[lane];
                online2[lane] = v1;
            }
            add_exponentials(__uint_as_float(0xff800000u), v2, v7, online2);
        }
#pragma unroll
        for (u32 distance = 16; distance > 0; distance /= 2) {
            join_exponentials(__uint_as_float(0xff800000u), v2, v7, __shfl_xor_sync(0xffffffffu, v2, distance), __shfl_xor_sync(0xffffffffu, v7, distance));
        }
        __shared__ float v2_of_warp[16];
        __shared__ float v7_of_warp[16];
        if (threadIdx.x % 32 == 0) {
            v2_of_warp[threadIdx.x / 32] = v2;
            v7_of_warp[threadIdx.x / 32] = v7;
        }
        __syncthreads();
        v2 = v2_of_warp[threadIdx.x % 16];
        v7 = v7_of_warp[threadIdx.x % 16];
#pragma unroll
        for (u32 distance = 8; distance > 0; distance /= 2) {
            join_exponentials(__uint_as_float(0xff800000u), v2, v7, __shfl_xor_sync(0xffffffffu, v2, distance), __shfl_xor_sync(0xffffffffu, v7, distance));
        }
        v7 = v7 + (v2 - v2);

#pragma unroll 3
        for (i64 j = rank * 4; j < n1; j += 2048) {
            const Vector<float, 4> v8 = load<float, 4>(x_0 + i * n1 + j);
            Vector<float, 4> v14;
#pragma unroll
            for (u32 lane = 0; lane < 4; ++lane) {
                const float v9 = v8.at[lane];
                const float v10 = v9 - v2;
                const float v11 = expf(v10);
                const float v12 = v11 / v7;
                const float v13 = v12;
                v14.at[lane] = v13;
            }
            store(out_1 + i * n1 + j, v14);
        }
        return;
    }

    float v2 = __uint_as_float(0xff800000u);
    float v7 = 0.0f;
#pragma unroll 1
    for (i64 j = rank; j < n1; j += 512) {
        float online2[1];
        const float v0 = x_0[i * n1 + j];
        const float v1 = v0;
        online2[0] = v1;
        add_exponentials(__uint_as_float(0xff800000u), v2, v7, online2);
    }
#pragma unroll
    for (u32 distance = 16; distance > 0; distance /= 2) {
        join_exponentials(__uint_as_float(0xff800000u), v2, v7, __shfl_xor_sync(0xffffffffu, v2, distance), __shfl_xor_sync(0xffffffffu, v7, distance));
    }
    __shared__ float v2_of_warp[16];
    __shared__ float v7_of_warp[16];
    if (threadIdx.x % 32 == 0) {
        v2_of_warp[threadIdx.x / 32] = v2;
        v7_of_warp[threadIdx.x / 32] = v7;
    }
    __syncthreads();
    v2 = v2_of_warp[threadIdx.x % 16];
    v7 = v7_of_warp[threadIdx.x % 16];
#pragma unroll
    for (u32 distance = 8; distance > 0; distance /= 2) {
        join_exponentials(__uint_as_float(0xff800000u), v2, v7, __shfl_xor_sync(0xffffffffu, v2, distance), __shfl_xor_sync(0xffffffffu, v7, distance));
    }
    v7 = v7 + (v2 - v2);

#pragma unroll 1
    for (i64 j = rank; j < n1; j += 512) {
        const float v8 = x_0[i * n1 + j];
        const float v9 = v8;
        const float v10 = v9 - v2;
        const float v11 = expf(v10);
        const float v12 = v11 / v7;
        const float v13 = v12;
        out_1[i * n1 + j] = v13;
    }
}
