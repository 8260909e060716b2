/*
kernel dynamic_rows scalars 3 {
  buffer 0: read f32 align 4 x
  buffer 1: read f32 align 4 row
  buffer 2: write f32 align 4 out
  outer [$0, $1]
  stage [] {
    %0 = load f32 b0[$2*i0 + i1]
    %1 = load f32 b1[i1]
    %2 = add f32 %0 %1
    store f32 b2[$1*i0 + i1] %2
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

// 64-bit division costs ten times as much as 32-bit division, and few sizes need it
__device__ __forceinline__ i64 divide(i64 dividend, i64 divisor)
{
    if (((dividend | divisor) >> 31) == 0)
        return (u32)dividend / (u32)divisor;
    return dividend / divisor;
}

extern "C" __global__ void __launch_bounds__(256)
dynamic_rows(
    const float *__restrict__ x_0,
    const float *__restrict__ row_1,
    float *__restrict__ out_2,
    const i64 n0,
    const i64 n1,
    const i64 n2,
    const i64 work) {
    const i64 i = ((i64)blockIdx.x * 256 + threadIdx.x) * 4;
    if (i + 4 <= work && (u64)x_0 % 16 == 0 && n2 % 4 == 0 && (u64)row_1 % 16 == 0 && (u64)out_2 % 16 == 0 && n1 % 4 == 0) {
        Vector<float, 4> v0;
        Vector<float, 4> v1;
        {
            const i64 i1_rest = divide(i, n1);
            const i64 i1 = i - i1_rest * (n1);
            v0 = load<float, 4>(x_0 + i1_rest * n2 + i1);
            v1 = load<float, 4>(row_1 + i1);
        }
        Vector<float, 4> v3;
#pragma unroll
        for (u32 lane = 0; lane < 4; ++lane) {
            const float v2 = v0.at[lane] + v1.at[lane];
            v3.at[lane] = v2;
        }
        {
            const i64 i1_rest = divide(i, n1);
            const i64 i1 = i - i1_rest * (n1);
            store(out_2 + i1_rest * n1 + i1, v3);
        }
        return;
    }
#pragma unroll 1
    for (i64 at = i; at < i + 4 && at < work; ++at) {
        const i64 i1_rest = divide(at, n1);
        const i64 i1 = at - i1_rest * (n1);
        const float v0 = x_0[i1_rest * n2 + i1];
        const float v1 = row_1[i1];
        const float v2 = v0 + v1;
        out_2[i1_rest * n1 + i1] = v2;
    }
}
