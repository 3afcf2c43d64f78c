// What Python's operators and NumPy's functions of numbers are in kernels that were written in Python.
#pragma once

#include "elementwise.h"

namespace gpu {

template <class... T>
struct Tuple;
template <>
struct Tuple<> {};
template <class First, class... Rest>
struct Tuple<First, Rest...> {
  First first;
  Tuple<Rest...> rest;
};

inline Tuple<> make_tuple() { return {}; }
template <class First, class... Rest>
Tuple<First, Rest...> make_tuple(First first, Rest... rest) {
  return {first, make_tuple(rest...)};
}
template <int I, class First, class... Rest>
auto get(const Tuple<First, Rest...> &tuple) {
  if constexpr (I == 0) return tuple.first;
  else return get<I - 1>(tuple.rest);
}

/// The array that is left when the first axes of `array` are indexed.
template <class T, int N, bool C, bool B, class... I>
CArray<T, N - static_cast<int>(sizeof...(I)), C, B> slice(const CArray<T, N, C, B> &array, I... index) {
  constexpr int count = sizeof...(I);
  const ptrdiff_t list[] = {static_cast<ptrdiff_t>(index)...};
  ptrdiff_t zeros[N] = {}, offset = 0;
  for (int d = 0; d < count; ++d) offset += array.strides()[d] * list[d];
  char *start = reinterpret_cast<char *>(const_cast<T *>(&array[zeros])) + offset;
  return {reinterpret_cast<T *>(start), array.shape() + count, array.strides() + count};
}

template <class T>
struct Real {
  typedef T type;
};
template <class T>
struct Real<thrust::complex<T>> {
  typedef T type;
};
template <class T>
constexpr bool is_complex = !is_same<typename Real<T>::type, T>::value;
template <class T>
constexpr bool is_float16 = is_same<T, float16>::value;

}  // namespace gpu

namespace py {

// float16 computes in float; rules.py narrows the result.
template <class T>
auto wide(T x) {
  if constexpr (gpu::is_float16<T>) return static_cast<float>(x);
  else return x;
}

#define GPU_PYTHON1(name, function)                \
  template <class T>                               \
  auto name(T x) { return function(wide(x)); }
#define GPU_PYTHON2(name, function)                \
  template <class T>                               \
  auto name(T x, T y) { return function(wide(x), wide(y)); }
GPU_PYTHON1(sqrt, ::sqrt)
GPU_PYTHON1(cbrt, ::cbrt)
GPU_PYTHON1(exp, ::exp)
GPU_PYTHON1(expm1, ::expm1)
GPU_PYTHON1(log, ::log)
GPU_PYTHON1(log10, ::log10)
GPU_PYTHON1(log1p, ::log1p)
GPU_PYTHON1(log2, ::log2)
GPU_PYTHON1(sin, ::sin)
GPU_PYTHON1(cos, ::cos)
GPU_PYTHON1(tan, ::tan)
GPU_PYTHON1(sinh, ::sinh)
GPU_PYTHON1(cosh, ::cosh)
GPU_PYTHON1(tanh, ::tanh)
GPU_PYTHON1(arcsin, ::asin)
GPU_PYTHON1(arccos, ::acos)
GPU_PYTHON1(arctan, ::atan)
GPU_PYTHON1(arcsinh, ::asinh)
GPU_PYTHON1(arccosh, ::acosh)
GPU_PYTHON1(arctanh, ::atanh)
GPU_PYTHON1(fabs, ::fabs)
GPU_PYTHON1(rint, ::rint)
GPU_PYTHON1(isnan, ::isnan)
GPU_PYTHON1(isinf, ::isinf)
GPU_PYTHON1(isfinite, ::isfinite)
GPU_PYTHON2(arctan2, ::atan2)
GPU_PYTHON2(copysign, ::copysign)
GPU_PYTHON2(hypot, ::hypot)
#undef GPU_PYTHON1
#undef GPU_PYTHON2

template <class T>
T nextafter(T x, T y) { return ::nextafter(x, y); }

#define GPU_ROUND(name)                                              \
  template <class T>                                                 \
  auto name(T x) {                                                   \
    if constexpr (gpu::is_integer<T>) return x;                      \
    else return ::name(wide(x));                                     \
  }
GPU_ROUND(floor)
GPU_ROUND(ceil)
GPU_ROUND(trunc)
#undef GPU_ROUND

template <class T>
T exp2(T x) {
  if constexpr (gpu::is_complex<T>) return ::exp(x * static_cast<typename gpu::Real<T>::type>(0.693147180559945309417));
  else return static_cast<T>(::exp2(wide(x)));
}
template <class T>
T square(T x) { return static_cast<T>(x * x); }
template <class T>
T conjugate(T x) {
  if constexpr (gpu::is_complex<T>) return conj(x);
  else return x;
}
template <class T>
auto absolute(T x) {
  if constexpr (gpu::is_complex<T>) return ::abs(x);
  else if constexpr (gpu::is_integer<T>) return static_cast<T>(x < T(0) ? -x : x);
  else return ::fabs(wide(x));
}
template <class T>
bool logical_not(T x) { return x == T(0); }
template <class T>
bool logical_xor(T x, T y) { return (x != T(0)) != (y != T(0)); }
template <class T>
T deg2rad(T x) { return static_cast<T>(wide(x) * static_cast<decltype(wide(x))>(gpu::pi / 180)); }
template <class T>
T rad2deg(T x) { return static_cast<T>(wide(x) * static_cast<decltype(wide(x))>(180 / gpu::pi)); }
template <class T>
T reciprocal(T x) {
  if constexpr (gpu::is_integer<T>) return x == T(0) ? T(0) : static_cast<T>(1 / x);
  else return static_cast<T>(static_cast<decltype(wide(x))>(1) / wide(x));
}
template <class T>
T sign(T x) {
  if constexpr (gpu::is_complex<T>) {
    typedef typename gpu::Real<T>::type R;
    if (::isnan(x)) return T(static_cast<R>(__builtin_nan("")));
    R part = x.real() != R(0) ? x.real() : x.imag();
    return T(static_cast<R>((part > R(0)) - (part < R(0))));
  } else if constexpr (gpu::is_integer<T>) {
    return static_cast<T>((x > T(0)) - (x < T(0)));
  } else {
    return x != x ? x : static_cast<T>(static_cast<float>((x > 0) - (x < 0)));
  }
}

/// Negative, zero or positive as x is below, at or above y, whose signs may be of different types.
inline int order(long long x, unsigned long long y) {
  if (x < 0) return -1;
  unsigned long long same = static_cast<unsigned long long>(x);
  return (same > y) - (same < y);
}
inline int order(unsigned long long x, long long y) { return -order(y, x); }

// A NaN wins.
template <class T>
T maximum(T x, T y) {
  if constexpr (gpu::is_integer<T>) return x > y ? x : y;
  else if constexpr (gpu::is_complex<T>) return ::isnan(x) ? x : ::isnan(y) ? y : ::max(x, y);
  else return x != x ? x : y != y ? y : x > y ? x : y;
}
template <class T>
T minimum(T x, T y) {
  if constexpr (gpu::is_integer<T>) return x < y ? x : y;
  else if constexpr (gpu::is_complex<T>) return ::isnan(x) ? x : ::isnan(y) ? y : ::min(x, y);
  else return x != x ? x : y != y ? y : x < y ? x : y;
}
template <class T>
T fmax(T x, T y) { return y != y ? x : x != x ? y : maximum(x, y); }
template <class T>
T fmin(T x, T y) { return y != y ? x : x != x ? y : minimum(x, y); }

template <class T>
T floor_divide(T x, T y) {
  if constexpr (gpu::is_integer<T>) {
    if (y == T(0)) return 0;
    T quotient = static_cast<T>(x / y);
    return static_cast<T>(quotient - (((x < T(0)) != (y < T(0))) && quotient * y != x));
  } else {
    return static_cast<T>(::floor(wide(x) / wide(y)));
  }
}
template <class T>
T remainder(T x, T y) {
  if constexpr (gpu::is_integer<T>) return y == T(0) ? T(0) : static_cast<T>(x - floor_divide(x, y) * y);
  else return static_cast<T>(wide(x) - ::floor(wide(x) / wide(y)) * wide(y));
}
template <class T>
T fmod(T x, T y) {
  if constexpr (gpu::is_integer<T>) return y == T(0) ? T(0) : static_cast<T>(x % y);
  else return static_cast<T>(::fmod(wide(x), wide(y)));
}
template <class T>
auto power(T x, T y) {
  if constexpr (gpu::is_integer<T>) {
    // A negative exponent leaves 0, or 1 or -1 to that power.
    if (y < T(0)) return static_cast<T>(x == T(1) ? T(1) : x == T(-1) ? (y & 1 ? T(-1) : T(1)) : T(0));
    T result = 1;
    for (; y; y >>= 1, x = static_cast<T>(x * x))
      if (y & 1) result = static_cast<T>(result * x);
    return result;
  } else {
    return ::pow(wide(x), wide(y));
  }
}
template <class T>
T logaddexp(T x, T y) {
  auto a = wide(x), b = wide(y);
  if (a == b) return static_cast<T>(a + static_cast<decltype(a)>(0.693147180559945309417));
  auto gap = a - b;
  return static_cast<T>(gap > 0 ? a + ::log1p(::exp(-gap)) : gap <= 0 ? b + ::log1p(::exp(gap)) : gap);
}

}  // namespace py
