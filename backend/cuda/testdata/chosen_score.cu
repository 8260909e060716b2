/*
kernel chosen_score scalars 0 {
  buffer 0: read f32 align 4 x
  buffer 1: write f32 align 4 out
  buffer 2: read u8 align 1 index
  outer [5]
  stage [] {
    %0 = load u8 b2[i0]
    %1 = cast i64 %0
    %2 = constant i64 3
    %3 = not_equal bool %1 %2
    %4 = load f32 b0[3000*i0 + 1*index0<3000] %3 %1
  }
  stage [3000] {
    %5 = load f32 b0[3000*i0 + j0]
    %6 = reduce f32 maximum %5
  }
  stage [] {
    %7 = subtract f32 %6 %4
    store f32 b1[i0] %7
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

extern "C" __device__ void __assertfail(const char *, const char *, unsigned, const char *, size_t);
__device__ __noinline__ void index_out_of_range()
{
    __assertfail("index out of range", "fusee", 0, "kernel", 1);
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

extern "C" __global__ void __launch_bounds__(512)
chosen_score(
    const float *__restrict__ x_0,
    float *__restrict__ out_1,
    const u8 *__restrict__ index_2,
    const i64 work) {
    const u32 rank = threadIdx.x;
    const i32 i = blockIdx.x;
    if ((u64)x_0 % 16 == 0) {

        const u8 v0 = index_2[i];

        float v6 = __uint_as_float(0xff800000u);
#pragma unroll 2
        for (i32 j = rank * 4; j < 3000; j += 2048) {
            const Vector<float, 4> v5 = load<float, 4>(x_0 + i * 3000 + j);
#pragma unroll
            for (u32 lane = 0; lane < 4; ++lane) {
                v6 = greatest(v6, v5.at[lane]);
            }
        }
        const i64 v1 = (i64)v0;
        const bool v3 = v1 != 3ll;
        if (v3 && (u64)v1 >= 3000)
            index_out_of_range();
        const float v4 = v3 ? x_0[i * 3000 + v1 * 1] : 0.0f;
#pragma unroll
        for (u32 distance = 16; distance > 0; distance /= 2) {
            const float other6 = __shfl_xor_sync(0xffffffffu, v6, distance);
            v6 = greatest(v6, other6);
        }
        __shared__ float v6_of_warp[16];
        if (threadIdx.x % 32 == 0) {
            v6_of_warp[threadIdx.x / 32] = v6;
        }
        __syncthreads();
        v6 = v6_of_warp[threadIdx.x % 16];
#pragma unroll
        for (u32 distance = 8; distance > 0; distance /= 2) {
            const float other6 = __shfl_xor_sync(0xffffffffu, v6, distance);
            v6 = greatest(v6, other6);
        }

        const float v7 = v6 - v4;
        if (rank == 0)
            out_1[i] = v7;
        return;
    }

    const u8 v0 = index_2[i];

    float v6 = __uint_as_float(0xff800000u);
#pragma unroll 1
    for (i32 j = rank; j < 3000; j += 512) {
        const float v5 = x_0[i * 3000 + j];
        v6 = greatest(v6, v5);
    }
    const i64 v1 = (i64)v0;
    const bool v3 = v1 != 3ll;
    if (v3 && (u64)v1 >= 3000)
        index_out_of_range();
    const float v4 = v3 ? x_0[i * 3000 + v1 * 1] : 0.0f;
#pragma unroll
    for (u32 distance = 16; distance > 0; distance /= 2) {
        const float other6 = __shfl_xor_sync(0xffffffffu, v6, distance);
        v6 = greatest(v6, other6);
    }
    __shared__ float v6_of_warp[16];
    if (threadIdx.x % 32 == 0) {
        v6_of_warp[threadIdx.x / 32] = v6;
    }
    __syncthreads();
    v6 = v6_of_warp[threadIdx.x % 16];
#pragma unroll
    for (u32 distance = 8; distance > 0; distance /= 2) {
        const float other6 = __shfl_xor_sync(0xffffffffu, v6, distance);
        v6 = greatest(v6, other6);
    }

    const float v7 = v6 - v4;
    if (rank == 0)
        out_1[i] = v7;
}
