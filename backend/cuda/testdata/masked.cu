/*
kernel masked scalars 0 {
  buffer 0: read f32 align 4 x
  buffer 1: write f32 align 4 out
  buffer 2: write f32 align 4 even
  outer [40]
  stage [] {
    %0 = index i64 i0
    %1 = constant i64 30
    %2 = less bool %0 %1
    %3 = load f32 b0[i0] %2
    store f32 b1[i0] %3
    %5 = constant i64 2
    %6 = constant i64 0
    %7 = remainder i64 %0 %5
    %8 = equal bool %7 %6
    store f32 b2[i0] %3 %8
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

template <typename T> __device__ __forceinline__ T truncated_remainder(T a, T b)
{
    const bool negative = T(-1) < T(0);
    return negative && b == T(-1) ? T(0) : T(a % b);
}

extern "C" __global__ void __launch_bounds__(256)
masked(
    const float *__restrict__ x_0,
    float *__restrict__ out_1,
    float *__restrict__ even_2,
    const i64 work) {
    const i32 i = ((i32)blockIdx.x * 256 + threadIdx.x) * 4;
    if (i >= work)
        return;
    if ((u64)out_1 % 16 == 0) {
        Vector<float, 4> v4;
#pragma unroll
        for (u32 lane = 0; lane < 4; ++lane) {
            const i32 at = i | lane;
            const i64 v0 = at;
            const bool v2 = v0 < 30ll;
            const float v3 = v2 ? x_0[at] : 0.0f;
            v4.at[lane] = v3;
            const i64 v7 = truncated_remainder<i64>(v0, 2ll);
            const bool v8 = v7 == 0ll;
            if (v8)
                even_2[at] = v3;
        }
        store(out_1 + i, v4);
        return;
    }
#pragma unroll 1
    for (i32 at = i; at < i + 4 && at < work; ++at) {
        const i64 v0 = at;
        const bool v2 = v0 < 30ll;
        const float v3 = v2 ? x_0[at] : 0.0f;
        out_1[at] = v3;
        const i64 v7 = truncated_remainder<i64>(v0, 2ll);
        const bool v8 = v7 == 0ll;
        if (v8)
            even_2[at] = v3;
    }
}
