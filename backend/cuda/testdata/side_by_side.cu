/*
kernel side_by_side scalars 0 {
  buffer 0: read f32 align 4 x
  buffer 1: read f32 align 4 y
  buffer 2: write f32 align 4 out
  outer [5, 20]
  stage [] {
    %0 = index i64 i1
    %1 = constant i64 7
    %2 = less bool %0 %1
    %3 = constant i64 8
    %4 = greater_equal bool %0 %3
    %5 = load f32 b0[6 + 7*i0 + -1*i1] %2
    %6 = load f32 b1[-8 + 12*i0 + i1] %4
    %7 = constant f32 1
    %8 = select f32 %4 %6 %7
    %9 = select f32 %2 %5 %8
    store f32 b2[20*i0 + i1] %9
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

extern "C" __global__ void __launch_bounds__(256)
side_by_side(
    const float *__restrict__ x_0,
    const float *__restrict__ y_1,
    float *__restrict__ out_2,
    const i64 work) {
    const i32 i = ((i32)blockIdx.x * 256 + threadIdx.x) * 4;
    if (i >= work)
        return;
    if ((u64)y_1 % 16 == 0 && (u64)out_2 % 16 == 0) {
        Vector<float, 4> v6 = {};
        bool whole4;
        {
            const i32 i1_rest = i / 20;
            const i32 i1 = i - i1_rest * (20);
            whole4 = (i1 >= 8ll);
            if (whole4)
                v6 = load<float, 4>(y_1 + i1_rest * 12 + i1 + -8);
        }
        Vector<float, 4> v10;
        const i32 i1_rest = i / 20;
        const i32 i1 = i - i1_rest * (20);
#pragma unroll
        for (u32 lane = 0; lane < 4; ++lane) {
            const i64 v0 = (i1 | (i32)lane);
            const bool v2 = v0 < 7ll;
            const float v5 = v2 ? x_0[i1_rest * 7 + (i1 | (i32)lane) * -1 + 6] : 0.0f;
            const float v8 = whole4 ? v6.at[lane] : 1.0f;
            const float v9 = v2 ? v5 : v8;
            v10.at[lane] = v9;
        }
        {
            const i32 i1_rest = i / 20;
            const i32 i1 = i - i1_rest * (20);
            store(out_2 + i1_rest * 20 + i1, v10);
        }
        return;
    }
#pragma unroll 1
    for (i32 at = i; at < i + 4 && at < work; ++at) {
        const i32 i1_rest = at / 20;
        const i32 i1 = at - i1_rest * (20);
        const i64 v0 = i1;
        const bool v2 = v0 < 7ll;
        const bool v4 = v0 >= 8ll;
        const float v5 = v2 ? x_0[i1_rest * 7 + i1 * -1 + 6] : 0.0f;
        const float v6 = v4 ? y_1[i1_rest * 12 + i1 + -8] : 0.0f;
        const float v8 = v4 ? v6 : 1.0f;
        const float v9 = v2 ? v5 : v8;
        out_2[i1_rest * 20 + i1] = v9;
    }
}
