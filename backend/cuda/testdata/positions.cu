/*
kernel positions scalars 0 {
  buffer 0: read f32 align 4 x
  buffer 1: write i64 align 8 out
  outer [3]
  stage [4, 300] {
    %0 = load f32 b0[1200*i0 + 300*j0 + j1]
    %1 = reduce i64 argmin %0
    %2 = reduce i64 argmax %0
  }
  stage [] {
    %3 = add i64 %1 %2
    store i64 b1[i0] %3
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

template <bool greatest, typename T>
__device__ __forceinline__ void take(T &best, i64 &place, T value, i64 position)
{
    const bool nan = value != value, best_nan = best != best;
    const bool equal = nan ? best_nan : value == best;
    const bool better = nan ? !best_nan : !best_nan && (greatest ? value > best : value < best);
    if (position >= 0 && (place < 0 || better || (equal && position < place))) {
        best = value;
        place = position;
    }
}

extern "C" __global__ void __launch_bounds__(256)
positions(
    const float *__restrict__ x_0,
    i64 *__restrict__ out_1,
    const i64 work) {
    const u32 rank = threadIdx.x;
    const i32 i = blockIdx.x;
    if ((u64)x_0 % 16 == 0) {

        float best1 = __uint_as_float(0x7f800000u);
        i64 v1 = -1;
        float best2 = __uint_as_float(0xff800000u);
        i64 v2 = -1;
#pragma unroll 1
        for (i32 j = rank * 4; j < 1200; j += 1024) {
            const Vector<float, 4> v0 = load<float, 4>(x_0 + i * 1200 + j);
#pragma unroll
            for (u32 lane = 0; lane < 4; ++lane) {
                take<false>(best1, v1, v0.at[lane], j + lane);
                take<true>(best2, v2, v0.at[lane], j + lane);
            }
        }
#pragma unroll 1
        for (u32 distance = 16; distance > 0; distance /= 2) {
            take<false>(best1, v1, __shfl_xor_sync(0xffffffffu, best1, distance), __shfl_xor_sync(0xffffffffu, v1, distance));
            take<true>(best2, v2, __shfl_xor_sync(0xffffffffu, best2, distance), __shfl_xor_sync(0xffffffffu, v2, distance));
        }
        __shared__ float best1_of_warp[8];
        __shared__ i64 v1_of_warp[8];
        __shared__ float best2_of_warp[8];
        __shared__ i64 v2_of_warp[8];
        if (threadIdx.x % 32 == 0) {
            best1_of_warp[threadIdx.x / 32] = best1;
            v1_of_warp[threadIdx.x / 32] = v1;
            best2_of_warp[threadIdx.x / 32] = best2;
            v2_of_warp[threadIdx.x / 32] = v2;
        }
        __syncthreads();
        best1 = best1_of_warp[threadIdx.x % 8];
        v1 = v1_of_warp[threadIdx.x % 8];
        best2 = best2_of_warp[threadIdx.x % 8];
        v2 = v2_of_warp[threadIdx.x % 8];
#pragma unroll 1
        for (u32 distance = 4; distance > 0; distance /= 2) {
            take<false>(best1, v1, __shfl_xor_sync(0xffffffffu, best1, distance), __shfl_xor_sync(0xffffffffu, v1, distance));
            take<true>(best2, v2, __shfl_xor_sync(0xffffffffu, best2, distance), __shfl_xor_sync(0xffffffffu, v2, distance));
        }

        const i64 v3 = (i64)((u64)v1 + (u64)v2);
        if (rank == 0)
            out_1[i] = v3;
        return;
    }

    float best1 = __uint_as_float(0x7f800000u);
    i64 v1 = -1;
    float best2 = __uint_as_float(0xff800000u);
    i64 v2 = -1;
#pragma unroll 1
    for (i32 j = rank; j < 1200; j += 256) {
        const float v0 = x_0[i * 1200 + j];
        take<false>(best1, v1, v0, j);
        take<true>(best2, v2, v0, j);
    }
#pragma unroll 1
    for (u32 distance = 16; distance > 0; distance /= 2) {
        take<false>(best1, v1, __shfl_xor_sync(0xffffffffu, best1, distance), __shfl_xor_sync(0xffffffffu, v1, distance));
        take<true>(best2, v2, __shfl_xor_sync(0xffffffffu, best2, distance), __shfl_xor_sync(0xffffffffu, v2, distance));
    }
    __shared__ float best1_of_warp[8];
    __shared__ i64 v1_of_warp[8];
    __shared__ float best2_of_warp[8];
    __shared__ i64 v2_of_warp[8];
    if (threadIdx.x % 32 == 0) {
        best1_of_warp[threadIdx.x / 32] = best1;
        v1_of_warp[threadIdx.x / 32] = v1;
        best2_of_warp[threadIdx.x / 32] = best2;
        v2_of_warp[threadIdx.x / 32] = v2;
    }
    __syncthreads();
    best1 = best1_of_warp[threadIdx.x % 8];
    v1 = v1_of_warp[threadIdx.x % 8];
    best2 = best2_of_warp[threadIdx.x % 8];
    v2 = v2_of_warp[threadIdx.x % 8];
#pragma unroll 1
    for (u32 distance = 4; distance > 0; distance /= 2) {
        take<false>(best1, v1, __shfl_xor_sync(0xffffffffu, best1, distance), __shfl_xor_sync(0xffffffffu, v1, distance));
        take<true>(best2, v2, __shfl_xor_sync(0xffffffffu, best2, distance), __shfl_xor_sync(0xffffffffu, v2, distance));
    }

    const i64 v3 = (i64)((u64)v1 + (u64)v2);
    if (rank == 0)
        out_1[i] = v3;
}
