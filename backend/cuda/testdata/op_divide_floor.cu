/*
kernel op_divide_floor scalars 0 {
  buffer 0: read u8 align 1 u8_a
  buffer 1: read u8 align 1 u8_b
  buffer 2: write u8 align 1 u8_out
  buffer 3: read u16 align 2 u16_a
  buffer 4: read u16 align 2 u16_b
  buffer 5: write u16 align 2 u16_out
  buffer 6: read u32 align 4 u32_a
  buffer 7: read u32 align 4 u32_b
  buffer 8: write u32 align 4 u32_out
  buffer 9: read u64 align 8 u64_a
  buffer 10: read u64 align 8 u64_b
  buffer 11: write u64 align 8 u64_out
  buffer 12: read i8 align 1 i8_a
  buffer 13: read i8 align 1 i8_b
  buffer 14: write i8 align 1 i8_out
  buffer 15: read i16 align 2 i16_a
  buffer 16: read i16 align 2 i16_b
  buffer 17: write i16 align 2 i16_out
  buffer 18: read i32 align 4 i32_a
  buffer 19: read i32 align 4 i32_b
  buffer 20: write i32 align 4 i32_out
  buffer 21: read i64 align 8 i64_a
  buffer 22: read i64 align 8 i64_b
  buffer 23: write i64 align 8 i64_out
  outer [1003]
  stage [] {
    %0 = load u8 b0[i0]
    %1 = load u8 b1[i0]
    %2 = divide_floor u8 %0 %1
    store u8 b2[i0] %2
    %4 = load u16 b3[i0]
    %5 = load u16 b4[i0]
    %6 = divide_floor u16 %4 %5
    store u16 b5[i0] %6
    %8 = load u32 b6[i0]
    %9 = load u32 b7[i0]
    %10 = divide_floor u32 %8 %9
    store u32 b8[i0] %10
    %12 = load u64 b9[i0]
    %13 = load u64 b10[i0]
    %14 = divide_floor u64 %12 %13
    store u64 b11[i0] %14
    %16 = load i8 b12[i0]
    %17 = load i8 b13[i0]
    %18 = divide_floor i8 %16 %17
    store i8 b14[i0] %18
    %20 = load i16 b15[i0]
    %21 = load i16 b16[i0]
    %22 = divide_floor i16 %20 %21
    store i16 b17[i0] %22
    %24 = load i32 b18[i0]
    %25 = load i32 b19[i0]
    %26 = divide_floor i32 %24 %25
    store i32 b20[i0] %26
    %28 = load i64 b21[i0]
    %29 = load i64 b22[i0]
    %30 = divide_floor i64 %28 %29
    store i64 b23[i0] %30
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

template <typename T> __device__ __forceinline__ T divide_truncate(T a, T b)
{
    const bool negative = T(-1) < T(0);
    return negative && b == T(-1) ? T(0ull - (unsigned long long)a) : T(a / b);
}

template <typename T> __device__ __forceinline__ T truncated_remainder(T a, T b)
{
    const bool negative = T(-1) < T(0);
    return negative && b == T(-1) ? T(0) : T(a % b);
}

template <typename T> __device__ __forceinline__ T divide_floor(T a, T b)
{
    const bool inexact = truncated_remainder(a, b) != 0 && (a < 0) != (b < 0);
    return T(divide_truncate(a, b) - T(inexact));
}

extern "C" __global__ void __launch_bounds__(256)
op_divide_floor(
    const u8 *__restrict__ u8_a_0,
    const u8 *__restrict__ u8_b_1,
    u8 *__restrict__ u8_out_2,
    const u16 *__restrict__ u16_a_3,
    const u16 *__restrict__ u16_b_4,
    u16 *__restrict__ u16_out_5,
    const u32 *__restrict__ u32_a_6,
    const u32 *__restrict__ u32_b_7,
    u32 *__restrict__ u32_out_8,
    const u64 *__restrict__ u64_a_9,
    const u64 *__restrict__ u64_b_10,
    u64 *__restrict__ u64_out_11,
    const i8 *__restrict__ i8_a_12,
    const i8 *__restrict__ i8_b_13,
    i8 *__restrict__ i8_out_14,
    const i16 *__restrict__ i16_a_15,
    const i16 *__restrict__ i16_b_16,
    i16 *__restrict__ i16_out_17,
    const i32 *__restrict__ i32_a_18,
    const i32 *__restrict__ i32_b_19,
    i32 *__restrict__ i32_out_20,
    const i64 *__restrict__ i64_a_21,
    const i64 *__restrict__ i64_b_22,
    i64 *__restrict__ i64_out_23,
    const i64 work) {
    const i32 i = ((i32)blockIdx.x * 256 + threadIdx.x) * 2;
    if (i + 2 <= work && (u64)u8_a_0 % 2 == 0 && (u64)u8_b_1 % 2 == 0 && (u64)u8_out_2 % 2 == 0 && (u64)u16_a_3 % 4 == 0 && (u64)u16_b_4 % 4 == 0 && (u64)u16_out_5 % 4 == 0 && (u64)u32_a_6 % 8 == 0 && (u64)u32_b_7 % 8 == 0 && (u64)u32_out_8 % 8 == 0 && (u64)u64_a_9 % 16 == 0 && (u64)u64_b_10 % 16 == 0 && (u64)u64_out_11 % 16 == 0 && (u64)i8_a_12 % 2 == 0 && (u64)i8_b_13 % 2 == 0 && (u64)i8_out_14 % 2 == 0 && (u64)i16_a_15 % 4 == 0 && (u64)i16_b_16 % 4 == 0 && (u64)i16_out_17 % 4 == 0 && (u64)i32_a_18 % 8 == 0 && (u64)i32_b_19 % 8 == 0 && (u64)i32_out_20 % 8 == 0 && (u64)i64_a_21 % 16 == 0 && (u64)i64_b_22 % 16 == 0 && (u64)i64_out_23 % 16 == 0) {
        const Vector<u8, 2> v0 = load<u8, 2>(u8_a_0 + i);
        const Vector<u8, 2> v1 = load<u8, 2>(u8_b_1 + i);
        const Vector<u16, 2> v4 = load<u16, 2>(u16_a_3 + i);
        const Vector<u16, 2> v5 = load<u16, 2>(u16_b_4 + i);
        const Vector<u32, 2> v8 = load<u32, 2>(u32_a_6 + i);
        const Vector<u32, 2> v9 = load<u32, 2>(u32_b_7 + i);
        const Vector<u64, 2> v12 = load<u64, 2>(u64_a_9 + i);
        const Vector<u64, 2> v13 = load<u64, 2>(u64_b_10 + i);
        const Vector<i8, 2> v16 = load<i8, 2>(i8_a_12 + i);
        const Vector<i8, 2> v17 = load<i8, 2>(i8_b_13 + i);
        const Vector<i16, 2> v20 = load<i16, 2>(i16_a_15 + i);
        const Vector<i16, 2> v21 = load<i16, 2>(i16_b_16 + i);
        const Vector<i32, 2> v24 = load<i32, 2>(i32_a_18 + i);
        const Vector<i32, 2> v25 = load<i32, 2>(i32_b_19 + i);
        const Vector<i64, 2> v28 = load<i64, 2>(i64_a_21 + i);
        const Vector<i64, 2> v29 = load<i64, 2>(i64_b_22 + i);
        Vector<u8, 2> v3;
        Vector<u16, 2> v7;
        Vector<u32, 2> v11;
        Vector<u64, 2> v15;
        Vector<i8, 2> v19;
        Vector<i16, 2> v23;
        Vector<i32, 2> v27;
        Vector<i64, 2> v31;
#pragma unroll
        for (u32 lane = 0; lane < 2; ++lane) {
            const u8 v2 = divide_floor<u8>(v0.at[lane], v1.at[lane]);
            v3.at[lane] = v2;
            const u16 v6 = divide_floor<u16>(v4.at[lane], v5.at[lane]);
            v7.at[lane] = v6;
            const u32 v10 = divide_floor<u32>(v8.at[lane], v9.at[lane]);
            v11.at[lane] = v10;
            const u64 v14 = divide_floor<u64>(v12.at[lane], v13.at[lane]);
            v15.at[lane] = v14;
            const i8 v18 = divide_floor<i8>(v16.at[lane], v17.at[lane]);
            v19.at[lane] = v18;
            const i16 v22 = divide_floor<i16>(v20.at[lane], v21.at[lane]);
            v23.at[lane] = v22;
            const i32 v26 = divide_floor<i32>(v24.at[lane], v25.at[lane]);
            v27.at[lane] = v26;
            const i64 v30 = divide_floor<i64>(v28.at[lane], v29.at[lane]);
            v31.at[lane] = v30;
        }
        store(u8_out_2 + i, v3);
        store(u16_out_5 + i, v7);
        store(u32_out_8 + i, v11);
        store(u64_out_11 + i, v15);
        store(i8_out_14 + i, v19);
        store(i16_out_17 + i, v23);
        store(i32_out_20 + i, v27);
        store(i64_out_23 + i, v31);
        return;
    }
#pragma unroll 1
    for (i32 at = i; at < i + 2 && at < work; ++at) {
        const u8 v0 = u8_a_0[at];
        const u8 v1 = u8_b_1[at];
        const u8 v2 = divide_floor<u8>(v0, v1);
        u8_out_2[at] = v2;
        const u16 v4 = u16_a_3[at];
        const u16 v5 = u16_b_4[at];
        const u16 v6 = divide_floor<u16>(v4, v5);
        u16_out_5[at] = v6;
        const u32 v8 = u32_a_6[at];
        const u32 v9 = u32_b_7[at];
        const u32 v10 = divide_floor<u32>(v8, v9);
        u32_out_8[at] = v10;
        const u64 v12 = u64_a_9[at];
        const u64 v13 = u64_b_10[at];
        const u64 v14 = divide_floor<u64>(v12, v13);
        u64_out_11[at] = v14;
        const i8 v16 = i8_a_12[at];
        const i8 v17 = i8_b_13[at];
        const i8 v18 = divide_floor<i8>(v16, v17);
        i8_out_14[at] = v18;
        const i16 v20 = i16_a_15[at];
        const i16 v21 = i16_b_16[at];
        const i16 v22 = divide_floor<i16>(v20, v21);
        i16_out_17[at] = v22;
        const i32 v24 = i32_a_18[at];
        const i32 v25 = i32_b_19[at];
        const i32 v26 = divide_floor<i32>(v24, v25);
        i32_out_20[at] = v26;
        const i64 v28 = i64_a_21[at];
        const i64 v29 = i64_b_22[at];
        const i64 v30 = divide_floor<i64>(v28, v29);
        i64_out_23[at] = v30;
    }
}
