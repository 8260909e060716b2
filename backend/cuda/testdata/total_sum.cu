/*
kernel total_sum scalars 0 {
  buffer 0: read f32 align 4 x
  buffer 1: write f32 align 4 out
  outer []
  stage [10001] {
    %0 = load f32 b0[j0]
    %1 = reduce f32 sum %0
  }
  stage [] {
    store f32 b1[0] %1
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

extern "C" __global__ void __launch_bounds__(512)
total_sum(
    const float *__restrict__ x_0,
    float *__restrict__ out_1,
    const i64 work) {
    const u32 rank = threadIdx.x;
    const i32 i = blockIdx.x;

    float v1 = 0.0f;
#pragma unroll 8
    for (i32 j = rank; j < 10001; j += 512) {
        const float v0 = x_0[j];
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
        out_1[0] = v1;
}
