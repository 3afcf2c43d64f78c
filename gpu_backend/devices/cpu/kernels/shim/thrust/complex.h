// thrust::complex<T>, with the interface of Thrust's own; the functions are those of C's complex arithmetic.
#pragma once

#include "../gpu/device_math.h"

namespace thrust {

template <class T>
struct alignas(2 * sizeof(T)) complex {
  typedef T value_type;

  complex() = default;
  complex(const T &re) : re_(re), im_(T()) {}
  complex(const T &re, const T &im) : re_(re), im_(im) {}
  complex(const complex &) = default;
  template <class U>
  complex(const complex<U> &z) : re_(static_cast<T>(z.real())), im_(static_cast<T>(z.imag())) {}

  complex &operator=(const complex &) = default;
  complex &operator=(const T &re) {
    re_ = re;
    im_ = T();
    return *this;
  }
  template <class U>
  complex &operator=(const complex<U> &z) {
    re_ = static_cast<T>(z.real());
    im_ = static_cast<T>(z.imag());
    return *this;
  }

  T real() const { return re_; }
  T imag() const { return im_; }
  T real() const volatile { return re_; }
  T imag() const volatile { return im_; }
  void real(T re) { re_ = re; }
  void imag(T im) { im_ = im; }

  template <class U>
  complex &operator+=(const complex<U> &z) { return *this = *this + complex(z); }
  template <class U>
  complex &operator-=(const complex<U> &z) { return *this = *this - complex(z); }
  template <class U>
  complex &operator*=(const complex<U> &z) { return *this = *this * complex(z); }
  template <class U>
  complex &operator/=(const complex<U> &z) { return *this = *this / complex(z); }
  complex &operator+=(const T &x) { return *this = *this + x; }
  complex &operator-=(const T &x) { return *this = *this - x; }
  complex &operator*=(const T &x) { return *this = *this * x; }
  complex &operator/=(const T &x) { return *this = *this / x; }

  friend complex operator+(const complex &a, const complex &b) { return {a.re_ + b.re_, a.im_ + b.im_}; }
  friend complex operator+(const complex &a, const T &b) { return {a.re_ + b, a.im_}; }
  friend complex operator+(const T &a, const complex &b) { return {a + b.re_, b.im_}; }
  friend complex operator-(const complex &a, const complex &b) { return {a.re_ - b.re_, a.im_ - b.im_}; }
  friend complex operator-(const complex &a, const T &b) { return {a.re_ - b, a.im_}; }
  friend complex operator-(const T &a, const complex &b) { return {a - b.re_, -b.im_}; }
  friend complex operator*(const complex &a, const complex &b) {
    return {a.re_ * b.re_ - a.im_ * b.im_, a.re_ * b.im_ + a.im_ * b.re_};
  }
  friend complex operator*(const complex &a, const T &b) { return {a.re_ * b, a.im_ * b}; }
  friend complex operator*(const T &a, const complex &b) { return {a * b.re_, a * b.im_}; }
  /// By Smith's method, step for step as NumPy divides, so that kernels and arrays agree to the last bit.
  friend complex operator/(const complex &a, const complex &b) {
    if (::abs(b.re_) >= ::abs(b.im_)) {
      if (b.re_ == T(0) && b.im_ == T(0)) return {a.re_ / ::abs(b.re_), a.im_ / ::abs(b.re_)};
      T ratio = b.im_ / b.re_, scale = T(1) / (b.re_ + b.im_ * ratio);
      return {(a.re_ + a.im_ * ratio) * scale, (a.im_ - a.re_ * ratio) * scale};
    }
    T ratio = b.re_ / b.im_, scale = T(1) / (b.im_ + b.re_ * ratio);
    return {(a.re_ * ratio + a.im_) * scale, (a.im_ * ratio - a.re_) * scale};
  }
  friend complex operator/(const complex &a, const T &b) { return {a.re_ / b, a.im_ / b}; }
  friend complex operator/(const T &a, const complex &b) { return complex(a) / b; }
  friend complex operator+(const complex &a) { return a; }
  friend complex operator-(const complex &a) { return {-a.re_, -a.im_}; }

  friend bool operator==(const complex &a, const complex &b) { return a.re_ == b.re_ && a.im_ == b.im_; }
  friend bool operator==(const complex &a, const T &b) { return a.re_ == b && a.im_ == T(); }
  friend bool operator==(const T &a, const complex &b) { return b == a; }
  friend bool operator!=(const complex &a, const complex &b) { return !(a == b); }
  friend bool operator!=(const complex &a, const T &b) { return !(a == b); }
  friend bool operator!=(const T &a, const complex &b) { return !(a == b); }

 private:
  T re_, im_;
};

template <class T>
T real(const complex<T> &z) { return z.real(); }
template <class T>
T imag(const complex<T> &z) { return z.imag(); }
/// Scaled by the larger part, step for step as NumPy's absolute.
template <class T>
T abs(const complex<T> &z) {
  T x = ::abs(z.real()), y = ::abs(z.imag());
  if (::isinf(x) || ::isinf(y)) return static_cast<T>(__builtin_huge_val());
  T large = x > y ? x : y, small = x > y ? y : x;
  if (large == T() || x != x || y != y) return x + y;
  T ratio = small / large;
  return ::sqrt(::fma(ratio, ratio, T(1))) * large;
}
template <class T>
T arg(const complex<T> &z) { return ::atan2(z.imag(), z.real()); }
template <class T>
T norm(const complex<T> &z) { return z.real() * z.real() + z.imag() * z.imag(); }
template <class T>
complex<T> conj(const complex<T> &z) { return {z.real(), -z.imag()}; }
template <class T>
complex<T> polar(const T &size, const T &angle = T()) { return {size * ::cos(angle), size * ::sin(angle)}; }
template <class T>
complex<T> proj(const complex<T> &z) {
  if (::isinf(z.real()) || ::isinf(z.imag())) return {static_cast<T>(__builtin_huge_val()), ::copysign(T(), z.imag())};
  return z;
}

namespace native {
inline __complex__ float of(const complex<float> &z) { return gpu::bit_cast<__complex__ float>(z); }
inline __complex__ double of(const complex<double> &z) { return gpu::bit_cast<__complex__ double>(z); }
inline complex<float> to(__complex__ float z) { return {__real__ z, __imag__ z}; }
inline complex<double> to(__complex__ double z) { return {__real__ z, __imag__ z}; }
}  // namespace native

#define GPU_COMPLEX(name)                                                                                 \
  inline complex<float> name(const complex<float> &z) { return native::to(__builtin_c##name##f(native::of(z))); } \
  inline complex<double> name(const complex<double> &z) { return native::to(__builtin_c##name(native::of(z))); }
GPU_COMPLEX(sqrt) GPU_COMPLEX(exp) GPU_COMPLEX(log)
GPU_COMPLEX(sin) GPU_COMPLEX(cos) GPU_COMPLEX(tan) GPU_COMPLEX(sinh) GPU_COMPLEX(cosh) GPU_COMPLEX(tanh)
GPU_COMPLEX(asin) GPU_COMPLEX(acos) GPU_COMPLEX(atan) GPU_COMPLEX(asinh) GPU_COMPLEX(acosh) GPU_COMPLEX(atanh)
#undef GPU_COMPLEX

template <class T>
complex<T> log10(const complex<T> &z) { return log(z) / static_cast<T>(2.30258509299404568402); }
inline complex<float> pow(const complex<float> &x, const complex<float> &y) {
  return native::to(__builtin_cpowf(native::of(x), native::of(y)));
}
inline complex<double> pow(const complex<double> &x, const complex<double> &y) {
  return native::to(__builtin_cpow(native::of(x), native::of(y)));
}
template <class T>
complex<T> pow(const complex<T> &x, const T &y) { return pow(x, complex<T>(y)); }
template <class T>
complex<T> pow(const T &x, const complex<T> &y) { return pow(complex<T>(x), y); }
template <class T>
complex<T> pow(const complex<T> &x, int y) { return pow(x, complex<T>(static_cast<T>(y))); }

}  // namespace thrust
