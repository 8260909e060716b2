// Runs the printed kernels on a CPU: threads of a block are fibers that a scheduler resumes one after another, and that
// pause at barriers and shuffles. For tests only.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __constant__ static const
#define __launch_bounds__(threads)
#define __restrict__ __restrict

struct Dimensions { unsigned x; };
static Dimensions blockIdx, threadIdx;

static ucontext_t scheduler, fibers[1024];
static bool finished[1024];
static void (*body)();

static void pause_fiber()
{
    const unsigned thread = threadIdx.x;
    swapcontext(&fibers[thread], &scheduler);
    threadIdx.x = thread;
}

static void __syncthreads() { pause_fiber(); }

// Lanes write, all pause, lanes read; two places take turns so that one pause is enough.
template <typename T> static T __shfl_xor_sync(unsigned, T value, unsigned distance)
{
    static T places[2][1024];
    static unsigned turns[1024];
    T *const turn = places[turns[threadIdx.x]++ % 2];
    turn[threadIdx.x] = value;
    pause_fiber();
    return turn[threadIdx.x ^ distance];
}

static void enter()
{
    body();
    finished[threadIdx.x] = true;
}

// Runs `call` for all threads of all blocks.
static void launch(unsigned blocks, unsigned threads, void (*call)())
{
    static std::vector<char> stacks(1024 * 65536);
    body = call;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
        for (unsigned t = 0; t < threads; ++t) {
            finished[t] = false;
            getcontext(&fibers[t]);
            fibers[t].uc_stack.ss_sp = stacks.data() + t * 65536;
            fibers[t].uc_stack.ss_size = 65536;
            fibers[t].uc_link = &scheduler;
            makecontext(&fibers[t], enter, 0);
        }
        for (bool running = true; running;) {
            running = false;
            for (unsigned t = 0; t < threads; ++t) {
                if (finished[t])
                    continue;
                threadIdx.x = t;
                swapcontext(&scheduler, &fibers[t]);
                running = running || !finished[t];
            }
        }
    }
}

#define __noinline__
static void __assertfail(const char *, const char *, unsigned, const char *, size_t) { abort(); }

static float __fmul_rn(float a, float b) { return a * b; }
#define __expf expf
#define __fdividef(a, b) ((a) / (b))
static double __dmul_rn(double a, double b) { return a * b; }
static float rsqrtf(float a) { return 1.0f / std::sqrt(a); }
static double rsqrt(double a) { return 1.0 / std::sqrt(a); }
static float __uint_as_float(unsigned bits)
{
    float value;
    memcpy(&value, &bits, 4);
    return value;
}
static double __longlong_as_double(long long bits)
{
    double value;
    memcpy(&value, &bits, 8);
    return value;
}

// The conversions that kernels spell in PTX, as the PTX manual defines them.
static unsigned short ptx_cvt_rn_bf16_f32(float value)
{
    unsigned bits;
    memcpy(&bits, &value, 4);
    return value != value ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
static float ptx_cvt_f32_f16(unsigned short bits)
{
    _Float16 half;
    memcpy(&half, &bits, 2);
    return float(half);
}
static unsigned short ptx_cvt_rn_f16_f32(float value)
{
    const _Float16 half = _Float16(value);
    unsigned short bits;
    memcpy(&bits, &half, 2);
    return value != value ? 0x7fff : bits;
}
