// complex<T> and its functions without a namespace, as CuPy's kernels use them.
#pragma once

#include "../thrust/complex.h"

using thrust::abs;
using thrust::acos;
using thrust::acosh;
using thrust::arg;
using thrust::asin;
using thrust::asinh;
using thrust::atan;
using thrust::atanh;
using thrust::complex;
using thrust::conj;
using thrust::cos;
using thrust::cosh;
using thrust::exp;
using thrust::imag;
using thrust::log;
using thrust::log10;
using thrust::norm;
using thrust::polar;
using thrust::pow;
using thrust::proj;
using thrust::real;
using thrust::sin;
using thrust::sinh;
using thrust::sqrt;
using thrust::tan;
using thrust::tanh;

template <class T>
bool isnan(complex<T> z) { return isnan(z.real()) || isnan(z.imag()); }
template <class T>
bool isinf(complex<T> z) { return isinf(z.real()) || isinf(z.imag()); }
template <class T>
bool isfinite(complex<T> z) { return isfinite(z.real()) && isfinite(z.imag()); }
template <class T>
complex<T> log2(complex<T> z) { return log(z) / log(T(2)); }
template <class T>
complex<T> log1p(complex<T> z) { return log(z + T(1)); }
template <class T>
complex<T> expm1(complex<T> z) { return exp(z) - T(1); }
template <class T>
complex<T> rint(complex<T> z) { return complex<T>(rint(z.real()), rint(z.imag())); }

// Ordered by the real, then the imaginary part; a NaN gives way.
template <class T>
complex<T> min(complex<T> a, complex<T> b) {
  if (isnan(a)) return b;
  if (isnan(b)) return a;
  return a.real() < b.real() || (a.real() == b.real() && a.imag() < b.imag()) ? a : b;
}
template <class T>
complex<T> max(complex<T> a, complex<T> b) {
  if (isnan(a)) return b;
  if (isnan(b)) return a;
  return a.real() > b.real() || (a.real() == b.real() && !(a.imag() < b.imag())) ? a : b;
}
