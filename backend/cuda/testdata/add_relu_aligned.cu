/*
kernel add_relu_aligned scalars 0 {
  buffer 0: read f32 align 16 x
  buffer 1: read f32 align 16 y
  buffer 2: write f32 align 16 out
  outer [2048]
  stage [] {
    %0 = load f32 b0[i0]
    %1 = load f32 b1[i0]
    %2 = add f32 %0 %1
    %3 = constant f32 0
    %4 = maximum f32 %2 %3
    %5 = constant f32 2
    %6 = multiply f32 %4 %5
    store f32 b2[i0] %6
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

extern "C" __global__ void __launch_bounds__(256)
add_relu_aligned(
    const float *__restrict__ x_0,
    const float *__restrict__ y_1,
    float *__restrict__ out_2,
    const i64 work) {
    const i32 i = ((i32)blockIdx.x * 256 + threadIdx.x) * 4;
    if (i >= work)
        return;
    const Vector<float, 4> v0 = load<float, 4>(x_0 + i);
    const Vector<float, 4> v1 = load<float, 4>(y_1 + i);
    Vector<float, 4> v7;
#pragma unroll
    for (u32 lane = 0; lane < 4; ++lane) {
        const float v2 = v0.at[lane] + v1.at[lane];
        const float v4 = maximum(v2, 0.0f);
        const float v6 = __fmul_rn(v4, 2.0f);
        v7.at[lane] = v6;
    }
    store(out_2 + i, v7);
}
