// half and bfloat16: 16 bits in memory, arithmetic in float, each result rounded to nearest even.
#pragma once

#include "atomics.h"
#include "intrinsics.h"

namespace gpu {

inline unsigned short float_to_half(float value) {
  unsigned bits = bit_cast<unsigned>(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<unsigned short>(sign | 0x7e00);
  if (magnitude >= 0x477ff000) return static_cast<unsigned short>(sign | 0x7c00);  // rounds to 65520 or more
  if (magnitude < 0x38800000) {  // a subnormal half: adding 0.5 lets the float unit round at the right bit
    float scaled = bit_cast<float>(magnitude) + 0.5f;
    return static_cast<unsigned short>(sign | (bit_cast<unsigned>(scaled) - 0x3f000000));
  }
  unsigned rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return static_cast<unsigned short>(sign | (rounded - 0x38000000) >> 13);
}
inline float half_to_float(unsigned short bits) {
  unsigned sign = static_cast<unsigned>(bits & 0x8000) << 16, magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00) return bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  if (magnitude < 0x400) return bit_cast<float>(sign | bit_cast<unsigned>(magnitude * 0x1p-24f));
  return bit_cast<float>(sign | ((magnitude << 13) + 0x38000000));
}
inline unsigned short float_to_bfloat(float value) {
  unsigned bits = bit_cast<unsigned>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline float bfloat_to_float(unsigned short bits) { return bit_cast<float>(static_cast<unsigned>(bits) << 16); }

/// A 16-bit float of the format F. Everything but its own arithmetic goes through float.
template <class F>
struct Float16 {
  unsigned short bits;

  Float16() = default;
  Float16(float value) : bits(F::narrow(value)) {}
  template <class T, class = typename enable_if<is_integer<T> || is_same<T, double>::value>::type>
  Float16(T value) : bits(F::narrow(static_cast<float>(value))) {}
  template <class G>
  explicit Float16(Float16<G> value) : bits(F::narrow(static_cast<float>(value))) {}
  operator float() const { return F::widen(bits); }

  static Float16 from_bits(unsigned short bits) {
    Float16 value;
    value.bits = bits;
    return value;
  }
  unsigned short to_bits() const { return bits; }
  int iszero() const { return static_cast<float>(*this) == 0.0f; }
  int isnan() const { return ::isnan(static_cast<float>(*this)); }
  int isinf() const { return ::isinf(static_cast<float>(*this)); }
  int isfinite() const { return ::isfinite(static_cast<float>(*this)); }
  int signbit() const { return (bits & 0x8000) != 0; }

  template <class T>
  Float16 &operator+=(const T &other) { return *this = Float16(static_cast<float>(*this) + static_cast<float>(other)); }
  template <class T>
  Float16 &operator-=(const T &other) { return *this = Float16(static_cast<float>(*this) - static_cast<float>(other)); }
  template <class T>
  Float16 &operator*=(const T &other) { return *this = Float16(static_cast<float>(*this) * static_cast<float>(other)); }
  template <class T>
  Float16 &operator/=(const T &other) { return *this = Float16(static_cast<float>(*this) / static_cast<float>(other)); }
};

struct Half {
  static unsigned short narrow(float value) { return float_to_half(value); }
  static float widen(unsigned short bits) { return half_to_float(bits); }
};
struct Bfloat {
  static unsigned short narrow(float value) { return float_to_bfloat(value); }
  static float widen(unsigned short bits) { return bfloat_to_float(bits); }
};

template <class F>
inline Float16<F> next_after(Float16<F> x, Float16<F> y) {
  typedef Float16<F> T;
  if (x.isnan() || y.isnan()) return T(__builtin_nanf(""));
  float a = x, b = y;
  if (a == b) return x;
  if (a == 0.0f) return T::from_bits(static_cast<unsigned short>((y.bits & 0x8000) + 1));
  return T::from_bits(static_cast<unsigned short>((a < b) == (a > 0.0f) ? x.bits + 1 : x.bits - 1));
}

}  // namespace gpu

template <class F>
inline gpu::Float16<F> min(gpu::Float16<F> x, gpu::Float16<F> y) { return min(static_cast<float>(x), static_cast<float>(y)); }
template <class F>
inline gpu::Float16<F> max(gpu::Float16<F> x, gpu::Float16<F> y) { return max(static_cast<float>(x), static_cast<float>(y)); }
template <class F>
inline gpu::Float16<F> fmin(gpu::Float16<F> x, gpu::Float16<F> y) { return min(x, y); }
template <class F>
inline gpu::Float16<F> fmax(gpu::Float16<F> x, gpu::Float16<F> y) { return max(x, y); }
template <class F>
inline int iszero(gpu::Float16<F> x) { return x.iszero(); }
template <class F>
inline int isnan(gpu::Float16<F> x) { return x.isnan(); }
template <class F>
inline int isinf(gpu::Float16<F> x) { return x.isinf(); }
template <class F>
inline int isfinite(gpu::Float16<F> x) { return x.isfinite(); }
template <class F>
inline int signbit(gpu::Float16<F> x) { return x.signbit(); }
template <class F>
inline gpu::Float16<F> copysign(gpu::Float16<F> x, gpu::Float16<F> y) {
  return gpu::Float16<F>::from_bits(static_cast<unsigned short>((x.bits & 0x7fff) | (y.bits & 0x8000)));
}
template <class F>
inline gpu::Float16<F> nextafter(gpu::Float16<F> x, gpu::Float16<F> y) { return gpu::next_after(x, y); }
template <class F>
inline gpu::Float16<F> atomicAdd(gpu::Float16<F> *address, gpu::Float16<F> operand) {
  return gpu::update(address, [&](gpu::Float16<F> old) {
    return gpu::Float16<F>(static_cast<float>(old) + static_cast<float>(operand));
  });
}
