/*
kernel normaliser scalars 0 {
  buffer 0: read f32 align 4 x
  buffer 1: write f32 align 4 out
  outer [4]
  stage [5000] {
    %0 = load f32 b0[5000*i0 + j0]
    %1 = constant f32 0.5
    %2 = multiply f32 %0 %1
    %3 = reduce f32 maximum %2
  }
  stage [5000] {
    %4 = load f32 b0[5000*i0 + j0]
    %5 = constant f32 0.5
    %6 = multiply f32 %4 %5
    %7 = subtract f32 %6 %3
    %8 = exp f32 %7
    %9 = reduce f32 sum %8
  }
  stage [] {
    store f32 b1[2*i0] %3
    store f32 b1[1 + 2*i0] %9
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
normaliser(
    const float *__restrict__ x_0,
    float *__restrict__ out_1,
    const i64 work) {
    const u32 rank = threadIdx.x;
    const i32 i = blockIdx.x;
    if ((u64)x_0 % 16 == 0) {

        float v3 = __uint_as_float(0xff800000u);
        float v9 = 0.0f;
#pragma unroll 3
        for (i32 j = rank * 4; j < 5000; j += 2048) {
            float online3[4];
            const Vector<float, 4> v0 = load<float, 4>(x_0 + i * 5000 + j);
#pragma unroll
            for (u32 lane = 0; lane < 4; ++lane) {
                const float v2 = __fmul_rn(v0.at[lane], 0.5f);
                online3[lane] = v2;
            }
            add_exponentials(__uint_as_float(0xff800000u), v3, v9, online3);
        }
#pragma unroll
        for (u32 distance = 16; distance > 0; distance /= 2) {
            join_exponentials(__uint_as_float(0xff800000u), v3, v9, __shfl_xor_sync(0xffffffffu, v3, distance), __shfl_xor_sync(0xffffffffu, v9, distance));
        }
        __shared__ float v3_of_warp[16];
        __shared__ float v9_of_warp[16];
        if (threadIdx.x % 32 == 0) {
            v3_of_warp[threadIdx.x / 32] = v3;
            v9_of_warp[threadIdx.x / 32] = v9;
        }
        __syncthreads();
        v3 = v3_of_warp[threadIdx.x % 16];
        v9 = v9_of_warp[threadIdx.x % 16];
#pragma unroll
        for (u32 distance = 8; distance > 0; distance /= 2) {
            join_exponentials(__uint_as_float(0xff800000u), v3, v9, __shfl_xor_sync(0xffffffffu, v3, distance), __shfl_xor_sync(0xffffffffu, v9, distance));
        }
        v9 = v9 + (v3 - v3);

        if (rank == 0)
            out_1[i * 2] = v3;
        if (rank == 0)
            out_1[i * 2 + 1] = v9;
        return;
    }

    float v3 = __uint_as_float(0xff800000u);
    float v9 = 0.0f;
#pragma unroll 1
    for (i32 j = rank; j < 5000; j += 512) {
        float online3[1];
        const float v0 = x_0[i * 5000 + j];
        const float v2 = __fmul_rn(v0, 0.5f);
        online3[0] = v2;
        add_exponentials(__uint_as_float(0xff800000u), v3, v9, online3);
    }
#pragma unroll
    for (u32 distance = 16; distance > 0; distance /= 2) {
        join_exponentials(__uint_as_float(0xff800000u), v3, v9, __shfl_xor_sync(0xffffffffu, v3, distance), __shfl_xor_sync(0xffffffffu, v9, distance));
    }
    __shared__ float v3_of_warp[16];
    __shared__ float v9_of_warp[16];
    if (threadIdx.x % 32 == 0) {
        v3_of_warp[threadIdx.x / 32] = v3;
        v9_of_warp[threadIdx.x / 32] = v9;
    }
    __syncthreads();
    v3 = v3_of_warp[threadIdx.x % 16];
    v9 = v9_of_warp[threadIdx.x % 16];
#pragma unroll
    for (u32 distance = 8; distance > 0; distance /= 2) {
        join_exponentials(__uint_as_float(0xff800000u), v3, v9, __shfl_xor_sync(0xffffffffu, v3, distance), __shfl_xor_sync(0xffffffffu, v9, distance));
    }
    v9 = v9 + (v3 - v3);

    if (rank == 0)
        out_1[i * 2] = v3;
    if (rank == 0)
        out_1[i * 2 + 1] = v9;
}
