/*
kernel gathered scalars 0 {
  buffer 0: read f32 align 4 table
  buffer 1: write f32 align 4 out
  buffer 2: read u8 align 1 index
  outer [6, 16]
  stage [] {
    %0 = index i64 i1
    %1 = constant i64 1
    %2 = and i64 %0 %1
    %3 = constant i64 0
    %4 = equal bool %2 %3
    %5 = load u8 b2[i0]
    %6 = cast i64 %5
    %7 = constant i64 3
    %8 = remainder i64 %6 %7
    %9 = load f32 b0[i1 + 16*index0<3] %4 %8
    store f32 b1[16*i0 + i1] %9
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

template <typename T> __device__ __forceinline__ T truncated_remainder(T a, T b)
{
    const bool negative = T(-1) < T(0);
    return negative && b == T(-1) ? T(0) : T(a % b);
}

extern "C" __global__ void __launch_bounds__(256)
gathered(
    const float *__restrict__ table_0,
    float *__restrict__ out_1,
    const u8 *__restrict__ index_2,
    const i64 work) {
    const i32 i = ((i32)blockIdx.x * 256 + threadIdx.x) * 4;
    if (i >= work)
        return;
    if ((u64)out_1 % 16 == 0) {
        Vector<u8, 4> v5;
        {
            const i32 i1_rest = i / 16;
            const i32 i1 = i - i1_rest * (16);
#pragma unroll
            for (u32 lane = 0; lane < 4; ++lane) {
                v5.at[lane] = index_2[i1_rest];
            }
        }
        Vector<float, 4> v10;
        const i32 i1_rest = i / 16;
        const i32 i1 = i - i1_rest * (16);
#pragma unroll
        for (u32 lane = 0; lane < 4; ++lane) {
            const i64 v0 = (i1 | (i32)lane);
            const i64 v2 = (i64)(v0 & 1ll);
            const bool v4 = v2 == 0ll;
            const i64 v6 = (i64)v5.at[lane];
            const i64 v8 = truncated_remainder<i64>(v6, 3ll);
            if (v4 && (u64)v8 >= 3)
                index_out_of_range();
            const float v9 = v4 ? table_0[(i1 | (i32)lane) + v8 * 16] : 0.0f;
            v10.at[lane] = v9;
        }
        {
            const i32 i1_rest = i / 16;
            const i32 i1 = i - i1_rest * (16);
            store(out_1 + i1_rest * 16 + i1, v10);
        }
        return;
    }
#pragma unroll 1
    for (i32 at = i; at < i + 4 && at < work; ++at) {
        const i32 i1_rest = at / 16;
        const i32 i1 = at - i1_rest * (16);
        const i64 v0 = i1;
        const i64 v2 = (i64)(v0 & 1ll);
        const bool v4 = v2 == 0ll;
        const u8 v5 = index_2[i1_rest];
        const i64 v6 = (i64)v5;
        const i64 v8 = truncated_remainder<i64>(v6, 3ll);
        if (v4 && (u64)v8 >= 3)
            index_out_of_range();
        const float v9 = v4 ? table_0[i1 + v8 * 16] : 0.0f;
        out_1[i1_rest * 16 + i1] = v9;
    }
}
