// CUDA's intrinsics: fast float functions (exact here), rounding modes, conversions, bits, integers, cached loads.
#pragma once

#include "special_math.h"
#include "vector_types.h"

// ---- fast float functions ----
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return exp10f(x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __tanhf(float x) { return tanhf(x); }
inline void __sincosf(float x, float *s, float *c) { sincos(x, s, c); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

// ---- arithmetic that is never fused; only rounding to nearest exists here, the other modes round likewise ----
#define GPU_ROUNDED(mode)                                                             \
  inline float __fadd_##mode(float x, float y) { return x + y; }                      \
  inline float __fsub_##mode(float x, float y) { return x - y; }                      \
  inline float __fmul_##mode(float x, float y) { return x * y; }                      \
  inline float __fdiv_##mode(float x, float y) { return x / y; }                      \
  inline float __fmaf_##mode(float x, float y, float z) { return fmaf(x, y, z); }     \
  inline float __frcp_##mode(float x) { return 1.0f / x; }                            \
  inline float __fsqrt_##mode(float x) { return sqrtf(x); }                           \
  inline double __dadd_##mode(double x, double y) { return x + y; }                   \
  inline double __dsub_##mode(double x, double y) { return x - y; }                   \
  inline double __dmul_##mode(double x, double y) { return x * y; }                   \
  inline double __ddiv_##mode(double x, double y) { return x / y; }                   \
  inline double __drcp_##mode(double x) { return 1.0 / x; }                           \
  inline double __dsqrt_##mode(double x) { return ::sqrt(x); }                        \
  inline double __fma_##mode(double x, double y, double z) { return ::fma(x, y, z); } \
  inline float __double2float_##mode(double x) { return static_cast<float>(x); }      \
  inline float __int2float_##mode(int x) { return static_cast<float>(x); }            \
  inline float __uint2float_##mode(unsigned x) { return static_cast<float>(x); }      \
  inline float __ll2float_##mode(long long x) { return static_cast<float>(x); }       \
  inline float __ull2float_##mode(unsigned long long x) { return static_cast<float>(x); } \
  inline double __ll2double_##mode(long long x) { return static_cast<double>(x); }    \
  inline double __ull2double_##mode(unsigned long long x) { return static_cast<double>(x); }
GPU_ROUNDED(rn)
GPU_ROUNDED(rz)
GPU_ROUNDED(ru)
GPU_ROUNDED(rd)
#undef GPU_ROUNDED
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }

namespace gpu {
/// Float to integer as the GPU does it: out of range saturates, NaN gives 0.
template <class To, class From>
inline To saturated(From x) {
  constexpr bool is_signed = static_cast<To>(-1) < static_cast<To>(0);
  constexpr int bits = static_cast<int>(sizeof(To) * 8 - is_signed);
  constexpr To most = static_cast<To>(~0ull >> (64 - bits)), least = is_signed ? static_cast<To>(-most - 1) : To(0);
  if (!(x == x)) return 0;
  if (x >= static_cast<From>(most)) return most;
  if (x <= static_cast<From>(least)) return least;
  return static_cast<To>(x);
}
}  // namespace gpu

#define GPU_TO_INTEGER(prefix, From, mode, rounding)                                                              \
  inline int __##prefix##2int_##mode(From x) { return gpu::saturated<int>(rounding(x)); }                         \
  inline unsigned __##prefix##2uint_##mode(From x) { return gpu::saturated<unsigned>(rounding(x)); }              \
  inline long long __##prefix##2ll_##mode(From x) { return gpu::saturated<long long>(rounding(x)); }              \
  inline unsigned long long __##prefix##2ull_##mode(From x) { return gpu::saturated<unsigned long long>(rounding(x)); }
GPU_TO_INTEGER(float, float, rn, rintf)
GPU_TO_INTEGER(float, float, rz, truncf)
GPU_TO_INTEGER(float, float, ru, ceilf)
GPU_TO_INTEGER(float, float, rd, floorf)
GPU_TO_INTEGER(double, double, rn, ::rint)
GPU_TO_INTEGER(double, double, rz, ::trunc)
GPU_TO_INTEGER(double, double, ru, ::ceil)
GPU_TO_INTEGER(double, double, rd, ::floor)
#undef GPU_TO_INTEGER

// ---- the bits of numbers ----
inline int __float_as_int(float x) { return gpu::bit_cast<int>(x); }
inline unsigned __float_as_uint(float x) { return gpu::bit_cast<unsigned>(x); }
inline float __int_as_float(int x) { return gpu::bit_cast<float>(x); }
inline float __uint_as_float(unsigned x) { return gpu::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return gpu::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return gpu::bit_cast<double>(x); }
inline int __double2hiint(double x) { return static_cast<int>(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(__double_as_longlong(x)); }
inline double __hiloint2double(int high, int low) {
  return __longlong_as_double(static_cast<long long>(static_cast<unsigned long long>(static_cast<unsigned>(high)) << 32 |
                                                     static_cast<unsigned>(low)));
}

// ---- bits of integers ----
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(x);
}
inline unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 | __brev(static_cast<unsigned>(x >> 32));
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  unsigned long long bytes = static_cast<unsigned long long>(y) << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    unsigned pick = selector >> (4 * i), byte = bytes >> (8 * (pick & 7)) & 0xff;
    if (pick & 8) byte = byte & 0x80 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(((static_cast<unsigned long long>(high) << 32 | low) << (shift & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (shift & 31));
}

// ---- integers ----
inline int __mul24(int x, int y) { return ((x << 8) >> 8) * ((y << 8) >> 8); }
inline unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffff) * (y & 0xffffff); }
inline int __mulhi(int x, int y) { return static_cast<int>(static_cast<long long>(x) * y >> 32); }
inline unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>(static_cast<unsigned long long>(x) * y >> 32);
}
inline long long __mul64hi(long long x, long long y) { return static_cast<long long>(static_cast<__int128>(x) * y >> 64); }
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(x) * y >> 64);
}
inline unsigned __sad(int x, int y, unsigned z) { return (x > y ? x - y : y - x) + z; }
inline unsigned __usad(unsigned x, unsigned y, unsigned z) { return (x > y ? x - y : y - x) + z; }
inline int __hadd(int x, int y) { return static_cast<int>((static_cast<long long>(x) + y) >> 1); }
inline int __rhadd(int x, int y) { return static_cast<int>((static_cast<long long>(x) + y + 1) >> 1); }
inline int __dp4a(int x, int y, int z) {
  for (int i = 0; i < 32; i += 8) z += static_cast<signed char>(x >> i) * static_cast<signed char>(y >> i);
  return z;
}

// ---- loads and stores with a cache hint, which is lost here ----
#define GPU_LOAD(name) \
  template <class T>   \
  inline T name(const T *address) { return *address; }
#define GPU_STORE(name)           \
  template <class T, class U>     \
  inline void name(T *address, U value) { *address = value; }
GPU_LOAD(__ldg) GPU_LOAD(__ldca) GPU_LOAD(__ldcg) GPU_LOAD(__ldcs) GPU_LOAD(__ldcv) GPU_LOAD(__ldlu)
GPU_STORE(__stwb) GPU_STORE(__stcg) GPU_STORE(__stcs) GPU_STORE(__stwt)
#undef GPU_LOAD
#undef GPU_STORE
