// Math functions that CUDA has and C does not.
#pragma once

#include "device_math.h"

namespace gpu {

constexpr double pi = 3.14159265358979323846;

/// The argument of sin(pi x) reduced exactly to [-1/2, 1/2]; `sign` is -1 where the half turn is odd.
inline double half_turns(double x, double *sign) {
  double nearest = __builtin_rint(x);
  *sign = __builtin_fmod(nearest, 2.0) == 0.0 ? 1.0 : -1.0;
  return x - nearest;
}

/// Inverse of erf on (-1, 1): Winitzki's approximation, then Halley steps on erfc where erf is near 1.
inline double inverse_erf(double x, double complement) {
  if (x != x || x < -1.0 || x > 1.0) return __builtin_nan("");
  if (complement == 0.0) return __builtin_huge_val();
  if (complement == 2.0) return -__builtin_huge_val();
  if (x == 0.0) return x;
  bool mirrored = x < 0.0;
  double tail = mirrored ? 2.0 - complement : complement;  // in (0, 1)
  double ln = __builtin_log(tail * (2.0 - tail)), a = 0.147, b = 2.0 / (pi * a) + ln / 2.0;
  double y = __builtin_sqrt(__builtin_sqrt(b * b - ln / a) - b);
  if (tail < 1e-10) {  // far out: erfc(y) ~ exp(-y^2) / (y sqrt(pi))
    double l = -__builtin_log(tail);
    y = __builtin_sqrt(l - 0.5 * __builtin_log(pi * l));
  }
  for (int i = 0; i < 4; ++i) {
    double magnitude = mirrored ? -x : x;
    double error = tail > 0.5 ? magnitude - __builtin_erf(y) : __builtin_erfc(y) - tail;
    double step = error * 0.88622692545275801365 * __builtin_exp(y * y);
    y += step / (1.0 - y * step);
  }
  return mirrored ? -y : y;
}

/// exp(x^2) erfc(x) without overflow: by a continued fraction for large x.
inline double scaled_erfc(double x) {
  if (x < 10.0) return __builtin_exp(x * x) * __builtin_erfc(x);
  double tail = x;
  for (int k = 30; k > 0; --k) tail = x + 0.5 * k / tail;
  return 1.0 / (tail * 1.77245385090551602730);
}

/// Modified Bessel function of the first kind, order 0 or 1: its power series, then its asymptotic expansion.
inline double bessel_i(int order, double x) {
  double magnitude = __builtin_fabs(x), term, sum;
  if (magnitude < 30.0) {
    double quarter = magnitude * magnitude / 4.0;
    term = order ? magnitude / 2.0 : 1.0;
    sum = term;
    for (int k = 1; k < 200 && term > sum * 1e-17; ++k) sum += term *= quarter / (k * static_cast<double>(k + order));
  } else {
    double mu = 4.0 * order * order;
    term = 1.0;
    sum = 1.0;
    for (int k = 1; k < 20; ++k) {
      double odd = 2.0 * k - 1.0;
      term *= -(mu - odd * odd) / (k * 8.0 * magnitude);
      sum += term;
    }
    sum *= __builtin_exp(magnitude / 2.0) / __builtin_sqrt(2.0 * pi * magnitude) * __builtin_exp(magnitude / 2.0);
  }
  return order && x < 0.0 ? -sum : sum;
}

}  // namespace gpu

// ---- in both widths: name(double), name(float), namef(float), name(integer) ----
#define GPU_SPECIAL1(name, expression)                                               \
  inline double name(double x) { return expression; }                                \
  inline float name##f(float y) { return static_cast<float>(name(static_cast<double>(y))); } \
  inline float name(float y) { return name##f(y); }                                  \
  template <class T>                                                                 \
  inline typename gpu::enable_if<gpu::is_integer<T>, double>::type name(T y) { return name(static_cast<double>(y)); }
GPU_SPECIAL1(rsqrt, 1.0 / __builtin_sqrt(x))
GPU_SPECIAL1(rcbrt, 1.0 / __builtin_cbrt(x))
GPU_SPECIAL1(erfinv, gpu::inverse_erf(x, 1.0 - x))
GPU_SPECIAL1(erfcinv, gpu::inverse_erf(1.0 - x, x))
GPU_SPECIAL1(erfcx, gpu::scaled_erfc(x))
GPU_SPECIAL1(normcdf, 0.5 * __builtin_erfc(-x * 0.70710678118654752440))
GPU_SPECIAL1(normcdfinv, -1.41421356237309504880 * gpu::inverse_erf(1.0 - 2.0 * x, 2.0 * x))
GPU_SPECIAL1(cyl_bessel_i0, gpu::bessel_i(0, x))
GPU_SPECIAL1(cyl_bessel_i1, gpu::bessel_i(1, x))
#undef GPU_SPECIAL1

inline double sinpi(double x) {
  double sign, rest = gpu::half_turns(x, &sign);
  return sign * __builtin_sin(gpu::pi * rest);
}
inline double cospi(double x) {
  double sign, rest = gpu::half_turns(x, &sign);
  return sign * __builtin_cos(gpu::pi * rest);
}
inline float sinpif(float x) { return static_cast<float>(sinpi(static_cast<double>(x))); }
inline float cospif(float x) { return static_cast<float>(cospi(static_cast<double>(x))); }
inline float sinpi(float x) { return sinpif(x); }
inline float cospi(float x) { return cospif(x); }
inline void sincos(float x, float *s, float *c) { *s = __builtin_sinf(x), *c = __builtin_cosf(x); }
inline void sincospi(double x, double *s, double *c) { *s = sinpi(x), *c = cospi(x); }
inline void sincospif(float x, float *s, float *c) { *s = sinpif(x), *c = cospif(x); }
inline void sincospi(float x, float *s, float *c) { sincospif(x, s, c); }
inline float exp10(float x) { return ::exp10f(x); }

inline float fdividef(float x, float y) { return x / y; }
inline double fdivide(double x, double y) { return x / y; }
inline float fdivide(float x, float y) { return x / y; }

inline double rhypot(double x, double y) { return 1.0 / __builtin_hypot(x, y); }
inline double norm3d(double x, double y, double z) { return __builtin_hypot(__builtin_hypot(x, y), z); }
inline double norm4d(double x, double y, double z, double w) {
  return __builtin_hypot(__builtin_hypot(x, y), __builtin_hypot(z, w));
}
inline double rnorm3d(double x, double y, double z) { return 1.0 / norm3d(x, y, z); }
inline double rnorm4d(double x, double y, double z, double w) { return 1.0 / norm4d(x, y, z, w); }
inline float rhypotf(float x, float y) { return static_cast<float>(rhypot(x, y)); }
inline float norm3df(float x, float y, float z) { return static_cast<float>(norm3d(x, y, z)); }
inline float norm4df(float x, float y, float z, float w) { return static_cast<float>(norm4d(x, y, z, w)); }
inline float rnorm3df(float x, float y, float z) { return static_cast<float>(rnorm3d(x, y, z)); }
inline float rnorm4df(float x, float y, float z, float w) { return static_cast<float>(rnorm4d(x, y, z, w)); }
inline double norm(int count, const double *values) {
  double scale = 0.0, sum = 0.0;
  for (int i = 0; i < count; ++i) scale = max(scale, __builtin_fabs(values[i]));
  if (scale == 0.0) return 0.0;
  for (int i = 0; i < count; ++i) sum += values[i] / scale * (values[i] / scale);
  return scale * __builtin_sqrt(sum);
}
inline double rnorm(int count, const double *values) { return 1.0 / norm(count, values); }
