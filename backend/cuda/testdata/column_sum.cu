/*
kernel column_sum scalars 0 {
  buffer 0: read f32 align 4 x
  buffer 1: write f32 align 4 out
  outer [100]
  stage [6] {
    %0 = load f32 b0[i0 + 100*j0]
    %1 = reduce f32 sum %0
  }
  stage [] {
    store f32 b1[i0] %1
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

extern "C" __global__ void __launch_bounds__(128)
column_sum(
    const float *__restrict__ x_0,
    float *__restrict__ out_1,
    const i64 work) {
    const u32 column = threadIdx.x % 128;
    const u32 rank = threadIdx.x / 128;
    const i32 item = (i32)blockIdx.x * 128 + column;
    const bool active = item < work;
    const i32 i = active ? item : work - 1;

    float v1 = 0.0f;
#pragma unroll 8
    for (i32 j = rank; j < 6; j += 1) {
        const float v0 = x_0[i + j * 100];
        v1 = v1 + v0;
    }

    if (active)
        out_1[i] = v1;
}
