// Device math functions: C's, overloaded for float, double and integers as CUDA overloads them, and CUDA's own.
#pragma once

#include <math.h>

#include "language.h"

#undef isnan
#undef isinf
#undef isfinite
#undef signbit
#undef fpclassify
#undef isnormal

// The constants are there for whoever includes <math.h>; other kernels may call their own variables so.
#undef M_E
#undef M_LOG2E
#undef M_LOG10E
#undef M_LN2
#undef M_LN10
#undef M_PI
#undef M_PI_2
#undef M_PI_4
#undef M_1_PI
#undef M_2_PI
#undef M_2_SQRTPI
#undef M_SQRT2
#undef M_SQRT1_2

// ---- f(x), f(x, y), f(x, y, z) for float and for integers; C brings the double ----
#define GPU_MATH1(name)                                    \
  inline float name(float x) { return ::name##f(x); }      \
  inline long double name(long double x) { return ::name##l(x); } \
  template <class T>                                       \
  inline typename gpu::enable_if<gpu::is_integer<T>, double>::type name(T x) { return ::name(static_cast<double>(x)); }
#define GPU_MATH2(name)                                                \
  inline float name(float x, float y) { return ::name##f(x, y); }      \
  template <class T, class U>                                          \
  inline typename gpu::enable_if<(gpu::is_integer<T> || gpu::is_real<T>)&&(gpu::is_integer<U> || gpu::is_real<U>), \
                                 double>::type                         \
  name(T x, U y) { return ::name(static_cast<double>(x), static_cast<double>(y)); }

GPU_MATH1(acos) GPU_MATH1(acosh) GPU_MATH1(asin) GPU_MATH1(asinh) GPU_MATH1(atan) GPU_MATH1(atanh)
GPU_MATH1(cbrt) GPU_MATH1(ceil) GPU_MATH1(cos) GPU_MATH1(cosh) GPU_MATH1(erf) GPU_MATH1(erfc)
GPU_MATH1(exp) GPU_MATH1(exp2) GPU_MATH1(expm1) GPU_MATH1(fabs) GPU_MATH1(floor) GPU_MATH1(lgamma)
GPU_MATH1(log) GPU_MATH1(log10) GPU_MATH1(log1p) GPU_MATH1(log2) GPU_MATH1(logb) GPU_MATH1(nearbyint)
GPU_MATH1(rint) GPU_MATH1(round) GPU_MATH1(sin) GPU_MATH1(sinh) GPU_MATH1(sqrt) GPU_MATH1(tan)
GPU_MATH1(tanh) GPU_MATH1(tgamma) GPU_MATH1(trunc)
GPU_MATH1(j0) GPU_MATH1(j1) GPU_MATH1(y0) GPU_MATH1(y1)
GPU_MATH2(atan2) GPU_MATH2(copysign) GPU_MATH2(fdim) GPU_MATH2(fmod) GPU_MATH2(hypot)
GPU_MATH2(nextafter) GPU_MATH2(pow) GPU_MATH2(remainder)
#undef GPU_MATH1
#undef GPU_MATH2

inline float pow(float x, int n) { return ::powf(x, static_cast<float>(n)); }
inline double pow(double x, int n) { return ::pow(x, static_cast<double>(n)); }
inline float fma(float x, float y, float z) { return ::fmaf(x, y, z); }
inline float frexp(float x, int *exponent) { return ::frexpf(x, exponent); }
inline float ldexp(float x, int exponent) { return ::ldexpf(x, exponent); }
inline float scalbn(float x, int exponent) { return ::scalbnf(x, exponent); }
inline float scalbln(float x, long exponent) { return ::scalblnf(x, exponent); }
inline float modf(float x, float *whole) { return ::modff(x, whole); }
inline float remquo(float x, float y, int *quotient) { return ::remquof(x, y, quotient); }
inline float jn(int n, float x) { return ::jnf(n, x); }
inline float yn(int n, float x) { return ::ynf(n, x); }
inline int ilogb(float x) { return ::ilogbf(x); }
inline long lrint(float x) { return ::lrintf(x); }
inline long lround(float x) { return ::lroundf(x); }
inline long long llrint(float x) { return ::llrintf(x); }
inline long long llround(float x) { return ::llroundf(x); }

// ---- what sort of number ----
#define GPU_CLASSIFY(T)                                                  \
  inline bool isnan(T x) { return __builtin_isnan(x); }                  \
  inline bool isinf(T x) { return __builtin_isinf(x); }                  \
  inline bool isfinite(T x) { return __builtin_isfinite(x); }            \
  inline bool isnormal(T x) { return __builtin_isnormal(x); }            \
  inline bool signbit(T x) { return __builtin_signbit(x); }
GPU_CLASSIFY(float)
GPU_CLASSIFY(double)
#undef GPU_CLASSIFY
#define GPU_CLASSIFY(name, value)                                                                             \
  template <class T>                                                                                          \
  inline typename gpu::enable_if<gpu::is_integer<T>, bool>::type name(T x) { return value; }
GPU_CLASSIFY(isnan, false && x)
GPU_CLASSIFY(isinf, false && x)
GPU_CLASSIFY(isfinite, true || x)
GPU_CLASSIFY(signbit, x < 0)
#undef GPU_CLASSIFY

// ---- abs, min, max: overloads, not templates, so that a kernel's own templates of these names win nothing and lose
// nothing. A NaN gives way to the other operand, as on the GPU; written so that the compiler can vectorise it. ----
extern "C" inline int abs(int x) noexcept { return x < 0 ? -x : x; }
inline long abs(long x) { return x < 0 ? -x : x; }
inline long long abs(long long x) { return x < 0 ? -x : x; }
inline float abs(float x) { return __builtin_fabsf(x); }
inline double abs(double x) { return __builtin_fabs(x); }
extern "C" inline long labs(long x) noexcept { return x < 0 ? -x : x; }
extern "C" inline long long llabs(long long x) noexcept { return x < 0 ? -x : x; }

#define GPU_MINMAX(T, U, R)                                                                         \
  inline R min(T x, U y) { R a = static_cast<R>(x), b = static_cast<R>(y); return b < a ? b : a; }  \
  inline R max(T x, U y) { R a = static_cast<R>(x), b = static_cast<R>(y); return a < b ? b : a; }
#define GPU_MINMAX_REAL(T, U, R)                                                                                    \
  inline R min(T x, U y) { R a = static_cast<R>(x), b = static_cast<R>(y); return ((a <= b) | (b != b)) ? a : b; }    \
  inline R max(T x, U y) { R a = static_cast<R>(x), b = static_cast<R>(y); return ((a >= b) | (b != b)) ? a : b; }
GPU_MINMAX(int, int, int)
GPU_MINMAX(unsigned, unsigned, unsigned)
GPU_MINMAX(int, unsigned, unsigned)
GPU_MINMAX(unsigned, int, unsigned)
GPU_MINMAX(long, long, long)
GPU_MINMAX(unsigned long, unsigned long, unsigned long)
GPU_MINMAX(long, unsigned long, unsigned long)
GPU_MINMAX(unsigned long, long, unsigned long)
GPU_MINMAX(long long, long long, long long)
GPU_MINMAX(unsigned long long, unsigned long long, unsigned long long)
GPU_MINMAX(long long, unsigned long long, unsigned long long)
GPU_MINMAX(unsigned long long, long long, unsigned long long)
GPU_MINMAX_REAL(float, float, float)
GPU_MINMAX_REAL(double, double, double)
GPU_MINMAX_REAL(float, double, double)
GPU_MINMAX_REAL(double, float, double)
#undef GPU_MINMAX
#undef GPU_MINMAX_REAL

inline int imin(int x, int y) { return min(x, y); }
inline unsigned umin(unsigned x, unsigned y) { return min(x, y); }
inline long long llmin(long long x, long long y) { return min(x, y); }
inline unsigned long long ullmin(unsigned long long x, unsigned long long y) { return min(x, y); }
inline unsigned umax(unsigned x, unsigned y) { return max(x, y); }
inline long long llmax(long long x, long long y) { return max(x, y); }
inline unsigned long long ullmax(unsigned long long x, unsigned long long y) { return max(x, y); }
inline float fmin(float x, float y) { return min(x, y); }
inline float fmax(float x, float y) { return max(x, y); }
template <class T, class U>
inline typename gpu::enable_if<gpu::is_integer<T> || gpu::is_integer<U>, double>::type fmin(T x, U y) {
  return min(static_cast<double>(x), static_cast<double>(y));
}
template <class T, class U>
inline typename gpu::enable_if<gpu::is_integer<T> || gpu::is_integer<U>, double>::type fmax(T x, U y) {
  return max(static_cast<double>(x), static_cast<double>(y));
}
inline double fmin(float x, double y) { return min(x, y); }
inline double fmin(double x, float y) { return min(x, y); }
inline double fmax(float x, double y) { return max(x, y); }
inline double fmax(double x, float y) { return max(x, y); }
