/*
kernel pieces_odd scalars 0 {
  buffer 0: read f32 align 4 x
  buffer 1: write f32 align 4 out
  outer [4, 1]
  span $0: pieces of 6720 along i0, 20001 in all
  stage [$0] {
    %0 = load f32 b0[6720*i0 + i1 + j0]
    %1 = reduce f32 sum %0
  }
  stage [] {
    store f32 b1[i0 + 4*i1] %1
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

extern "C" __global__ void __launch_bounds__(512)
pieces_odd(
    const float *__restrict__ x_0,
    float *__restrict__ out_1,
    const i64 work) {
    const u32 rank = threadIdx.x;
    const i64 i = blockIdx.x;
    const i64 n0_rest = 6667 - (i64)i * 2240;
    const i64 n0 = n0_rest < 2240 ? n0_rest : 2240;
    if ((u64)x_0 % 16 == 0 && 3 * n0 % 4 == 0) {

        float v1 = 0.0f;
#pragma unroll 4
        for (i64 j = rank * 4; j < 3 * n0; j += 2048) {
            const Vector<float, 4> v0 = load<float, 4>(x_0 + i * 6720 + j);
#pragma unroll
            for (u32 lane = 0; lane < 4; ++lane) {
                v1 = v1 + v0.at[lane];
            }
        }
#pragma unroll
        for (u32 distance = 16; distance > 0; distance /= 2) {
            const float other1 = __shfl_xor_sync(0xffffffffu, v1, distance);
            v1 = v1 + other1;
        }
        __shared__ float v1_of_warp[16];
        if (threadIdx.x % 32 == 0) {
            v1_of_warp[threadIdx.x / 32] = v1;
        }
        __syncthreads();
        v1 = v1_of_warp[threadIdx.x % 16];
#pragma unroll
        for (u32 distance = 8; distance > 0; distance /= 2) {
            const float other1 = __shfl_xor_sync(0xffffffffu, v1, distance);
            v1 = v1 + other1;
        }

        if (rank == 0)
            out_1[i] = v1;
        return;
    }

    float v1 = 0.0f;
#pragma unroll 1
    for (i64 j = rank; j < 3 * n0; j += 512) {
        const float v0 = x_0[i * 6720 + j];
        v1 = v1 + v0;
    }
#pragma unroll
    for (u32 distance = 16; distance > 0; distance /= 2) {
        const float other1 = __shfl_xor_sync(0xffffffffu, v1, distance);
        v1 = v1 + other1;
    }
    __shared__ float v1_of_warp[16];
    if (threadIdx.x % 32 == 0) {
        v1_of_warp[threadIdx.x / 32] = v1;
    }
    __syncthreads();
    v1 = v1_of_warp[threadIdx.x % 16];
#pragma unroll
    for (u32 distance = 8; distance > 0; distance /= 2) {
        const float other1 = __shfl_xor_sync(0xffffffffu, v1, distance);
        v1 = v1 + other1;
    }

    if (rank == 0)
        out_1[i] = v1;
}
