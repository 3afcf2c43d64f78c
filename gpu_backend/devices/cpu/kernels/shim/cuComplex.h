// cuComplex.h: complex numbers as float2 and double2, or, for translate_cucomplex=True, as complex<T>.
#pragma once

#include "gpu/device_math.h"
#include "gpu/vector_types.h"

#ifdef GPU_TRANSLATE_CUCOMPLEX

#include "cupy/complex.cuh"

typedef complex<float> cuFloatComplex;
typedef complex<double> cuDoubleComplex;
#define GPU_CUCOMPLEX(Complex, Real, f, Re, Im, make)                                              \
  inline Complex make(Real x, Real y) { return Complex(x, y); }                                    \
  inline Real Re(Complex a) { return a.real(); }                                                   \
  inline Real Im(Complex a) { return a.imag(); }                                                   \
  inline Complex cuConj##f(Complex a) { return conj(a); }                                          \
  inline Complex cuCadd##f(Complex a, Complex b) { return a + b; }                                 \
  inline Complex cuCsub##f(Complex a, Complex b) { return a - b; }                                 \
  inline Complex cuCmul##f(Complex a, Complex b) { return a * b; }                                 \
  inline Complex cuCdiv##f(Complex a, Complex b) { return a / b; }                                 \
  inline Real cuCabs##f(Complex a) { return abs(a); }                                              \
  inline Complex cuCfma##f(Complex a, Complex b, Complex c) { return a * b + c; }

// The translation replaces these by plain operators, so that they take either width.
inline cuFloatComplex cuCadd(cuFloatComplex a, cuFloatComplex b) { return a + b; }
inline cuFloatComplex cuCsub(cuFloatComplex a, cuFloatComplex b) { return a - b; }
inline cuFloatComplex cuCmul(cuFloatComplex a, cuFloatComplex b) { return a * b; }
inline cuFloatComplex cuCdiv(cuFloatComplex a, cuFloatComplex b) { return a / b; }

#else

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
#define GPU_CUCOMPLEX(Complex, Real, f, Re, Im, make)                                              \
  inline Complex make(Real x, Real y) { return {x, y}; }                                           \
  inline Real Re(Complex a) { return a.x; }                                                        \
  inline Real Im(Complex a) { return a.y; }                                                        \
  inline Complex cuConj##f(Complex a) { return {a.x, -a.y}; }                                      \
  inline Complex cuCadd##f(Complex a, Complex b) { return {a.x + b.x, a.y + b.y}; }                \
  inline Complex cuCsub##f(Complex a, Complex b) { return {a.x - b.x, a.y - b.y}; }                \
  inline Complex cuCmul##f(Complex a, Complex b) {                                                 \
    return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};                                         \
  }                                                                                                \
  inline Complex cuCdiv##f(Complex a, Complex b) {                                                 \
    Real one = 1 / (abs(b.x) + abs(b.y));                                                          \
    Real ax = a.x * one, ay = a.y * one, bx = b.x * one, by = b.y * one;                           \
    one = 1 / (bx * bx + by * by);                                                                 \
    return {(ax * bx + ay * by) * one, (ay * bx - ax * by) * one};                                 \
  }                                                                                                \
  inline Real cuCabs##f(Complex a) { return hypot(a.x, a.y); }                                     \
  inline Complex cuCfma##f(Complex a, Complex b, Complex c) { return cuCadd##f(cuCmul##f(a, b), c); }

#endif

GPU_CUCOMPLEX(cuFloatComplex, float, f, cuCrealf, cuCimagf, make_cuFloatComplex)
GPU_CUCOMPLEX(cuDoubleComplex, double, , cuCreal, cuCimag, make_cuDoubleComplex)
#undef GPU_CUCOMPLEX

typedef cuFloatComplex cuComplex;
inline cuComplex make_cuComplex(float x, float y) { return make_cuFloatComplex(x, y); }
inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex a) {
  return make_cuFloatComplex(static_cast<float>(cuCreal(a)), static_cast<float>(cuCimag(a)));
}
inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex a) { return make_cuDoubleComplex(cuCrealf(a), cuCimagf(a)); }
