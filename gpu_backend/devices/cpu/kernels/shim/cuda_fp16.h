// cuda_fp16.h: half, half2 and their functions.
#pragma once

#include "gpu/half.h"
#include "gpu/warp.h"

typedef gpu::Float16<gpu::Half> __half;
typedef __half half;
struct __half_raw {
  unsigned short x;
};
struct __align__(4) __half2 {
  __half x, y;
};
typedef __half2 half2;

inline __half __float2half(float x) { return __half(x); }
inline __half __float2half_rn(float x) { return __half(x); }
inline __half __double2half(double x) { return __half(static_cast<float>(x)); }
inline __half __int2half_rn(int x) { return __half(static_cast<float>(x)); }
inline float __half2float(__half x) { return x; }
inline int __half2int_rn(__half x) { return __float2int_rn(x); }
inline int __half2int_rz(__half x) { return __float2int_rz(x); }
inline unsigned short __half_as_ushort(__half x) { return x.bits; }
inline __half __ushort_as_half(unsigned short x) { return __half::from_bits(x); }
inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
inline __half2 make_half2(__half x, __half y) { return {x, y}; }
inline __half2 __float2half2_rn(float x) { return {__half(x), __half(x)}; }
inline __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
inline __half2 __half2half2(__half x) { return {x, x}; }
inline __half __low2half(__half2 a) { return a.x; }
inline __half __high2half(__half2 a) { return a.y; }
inline float __low2float(__half2 a) { return a.x; }
inline float __high2float(__half2 a) { return a.y; }
inline float2 __half22float2(__half2 a) { return {static_cast<float>(a.x), static_cast<float>(a.y)}; }

#define GPU_HALF(name, expression)                                                   \
  inline __half name(__half a, __half b) {                                           \
    float x = a, y = b;                                                              \
    return __half(expression);                                                       \
  }                                                                                  \
  inline __half2 name##2(__half2 a, __half2 b) { return {name(a.x, b.x), name(a.y, b.y)}; }
GPU_HALF(__hadd, x + y)
GPU_HALF(__hsub, x - y)
GPU_HALF(__hmul, x *y)
GPU_HALF(__hdiv, x / y)
GPU_HALF(__hmin, min(x, y))
GPU_HALF(__hmax, max(x, y))
#undef GPU_HALF
#define GPU_HALF(name, expression) \
  inline bool name(__half a, __half b) { \
    float x = a, y = b;            \
    return expression;             \
  }
GPU_HALF(__heq, x == y)
GPU_HALF(__hne, x != y)
GPU_HALF(__hlt, x < y)
GPU_HALF(__hle, x <= y)
GPU_HALF(__hgt, x > y)
GPU_HALF(__hge, x >= y)
#undef GPU_HALF
#define GPU_HALF(name, function) \
  inline __half name(__half a) { return __half(function(static_cast<float>(a))); } \
  inline __half2 h2##function(__half2 a) { return {name(a.x), name(a.y)}; }
GPU_HALF(hsqrt, sqrt)
GPU_HALF(hrsqrt, rsqrt)
GPU_HALF(hexp, exp)
GPU_HALF(hlog, log)
GPU_HALF(hsin, sin)
GPU_HALF(hcos, cos)
GPU_HALF(hfloor, floor)
GPU_HALF(hceil, ceil)
#undef GPU_HALF

inline __half __hneg(__half a) { return __half(-static_cast<float>(a)); }
inline __half __habs(__half a) { return __half::from_bits(static_cast<unsigned short>(a.bits & 0x7fff)); }
inline bool __hisnan(__half a) { return a.isnan(); }
inline int __hisinf(__half a) { return a.isinf() ? (a.signbit() ? -1 : 1) : 0; }
inline __half __hfma(__half a, __half b, __half c) {
  return __half(fmaf(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c)));
}
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }
inline __half2 operator+(__half2 a, __half2 b) { return __hadd2(a, b); }
inline __half2 operator-(__half2 a, __half2 b) { return __hsub2(a, b); }
inline __half2 operator*(__half2 a, __half2 b) { return __hmul2(a, b); }
inline __half2 operator/(__half2 a, __half2 b) { return __hdiv2(a, b); }
