// CArray, a strided array as kernels see it (`raw` parameters), and CIndexer, the index of a loop over a shape.
#pragma once

#include "../gpu/kernel.h"
#include "../stdint.h"
#include <type_traits>

#include "float16.cuh"

// The traits that CuPy's own kernels, and those written after them, choose types by.
namespace cupy {
namespace type_traits {
template <bool B, class T, class F>
using conditional = std::conditional<B, T, F>;
template <bool B, class T = void>
using enable_if = std::enable_if<B, T>;
template <class T, class U>
using is_same = std::is_same<T, U>;
}  // namespace type_traits
}  // namespace cupy

#ifndef M_PI
#define M_PI 3.1415926535897932384626433832795
#endif

#define CUPY_FOR(i, n)                                                                            \
  for (ptrdiff_t i = static_cast<ptrdiff_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < (n); \
       i += static_cast<ptrdiff_t>(blockDim.x) * gridDim.x)

template <class T, int _ndim, bool _c_contiguous = false, bool _use_32bit_indexing = false>
class CArray {
 public:
  static const int ndim = _ndim;
  static const bool c_contiguous = _c_contiguous;
  typedef ptrdiff_t index_t;

  CArray() : data_(nullptr), size_(1), shape_(), strides_() {}

  template <class I, class J>
  CArray(T *data, const I *shape, const J *strides) : data_(data), size_(1) {
    for (int d = 0; d < _ndim; ++d) {
      size_ *= shape[d];
      shape_[d] = shape[d];
      strides_[d] = strides[d];
    }
  }
  template <class I>
  CArray(T *data, const I *shape) : data_(data), size_(1) {
    static_assert(_c_contiguous, "an array that is not C-contiguous needs its strides");
    for (int d = _ndim; d-- > 0;) {
      shape_[d] = shape[d];
      strides_[d] = size_ * static_cast<ptrdiff_t>(sizeof(T));
      size_ *= shape[d];
    }
  }

  ptrdiff_t size() const { return size_; }
  const ptrdiff_t *shape() const { return shape_; }
  const ptrdiff_t *strides() const { return strides_; }

  /// By position: an index for each axis.
  template <class I>
  const T &operator[](const I (&index)[_ndim]) const {
    ptrdiff_t offset = 0;
    for (int d = 0; d < _ndim; ++d) offset += strides_[d] * static_cast<ptrdiff_t>(index[d]);
    return at(offset);
  }
  template <class I>
  T &operator[](const I (&index)[_ndim]) {
    return const_cast<T &>(static_cast<const CArray &>(*this)[index]);
  }

  /// By number, in C order.
  const T &operator[](ptrdiff_t i) const {
    if (_c_contiguous) return data_[i];
    ptrdiff_t offset = 0;
    for (int d = _ndim; --d > 0; i /= shape_[d]) offset += strides_[d] * (i % shape_[d]);
    return at(offset + strides_[0] * i);
  }
  T &operator[](ptrdiff_t i) { return const_cast<T &>(static_cast<const CArray &>(*this)[i]); }

  /// By an index for each axis that a function template passes on.
  template <class... I>
  T &element(I... index) const {
    static_assert(sizeof...(I) == _ndim, "one index for each axis");
    const ptrdiff_t list[] = {static_cast<ptrdiff_t>(index)...};
    return const_cast<T &>((*this)[list]);
  }

 private:
  const T &at(ptrdiff_t offset) const {
    return *reinterpret_cast<const T *>(reinterpret_cast<const char *>(data_) + offset);
  }

  T *data_;
  ptrdiff_t size_ = 1;
  ptrdiff_t shape_[_ndim];
  ptrdiff_t strides_[_ndim];
};

template <class T, bool _c_contiguous, bool _use_32bit_indexing>
class CArray<T, 0, _c_contiguous, _use_32bit_indexing> {
 public:
  static const int ndim = 0;
  static const bool c_contiguous = _c_contiguous;
  typedef ptrdiff_t index_t;

  CArray() : data_(nullptr) {}
  explicit CArray(T *data) : data_(data) {}
  template <class I, class J>
  CArray(T *data, const I *, const J *) : data_(data) {}

  ptrdiff_t size() const { return 1; }
  const ptrdiff_t *shape() const { return nullptr; }
  const ptrdiff_t *strides() const { return nullptr; }
  template <class I>
  T &operator[](const I &) { return *data_; }
  template <class I>
  const T &operator[](const I &) const { return *data_; }

 private:
  T *data_;
};

template <int _ndim, bool _use_32bit_indexing = false>
class CIndexer {
 public:
  static const int ndim = _ndim;
  typedef ptrdiff_t index_t[_ndim];

  CIndexer() : size_(1), shape_(), index_() {}
  template <class I>
  explicit CIndexer(const I *shape) : size_(1), index_() {
    for (int d = 0; d < _ndim; ++d) {
      size_ *= shape[d];
      shape_[d] = shape[d];
    }
  }

  ptrdiff_t size() const { return size_; }
  const index_t &get() const { return index_; }
  void set(ptrdiff_t i) {
    for (int d = _ndim; --d > 0; i /= shape_[d]) index_[d] = i % shape_[d];
    index_[0] = i;
  }

 private:
  ptrdiff_t size_;
  ptrdiff_t shape_[_ndim];
  ptrdiff_t index_[_ndim];
};

template <bool _use_32bit_indexing>
class CIndexer<0, _use_32bit_indexing> {
 public:
  static const int ndim = 0;
  CIndexer() = default;
  template <class I>
  explicit CIndexer(const I *) {}
  ptrdiff_t size() const { return 1; }
  const ptrdiff_t *get() const { return nullptr; }
  void set(ptrdiff_t) {}
};

inline int _floor_divide(int x, int y) {
  if (y == 0) return 0;
  int q = x / y;
  return q - (((x < 0) != (y < 0)) && q * y != x);
}
inline long long _floor_divide(long long x, long long y) {
  if (y == 0) return 0;
  long long q = x / y;
  return q - (((x < 0) != (y < 0)) && q * y != x);
}
inline unsigned _floor_divide(unsigned x, unsigned y) { return y == 0 ? 0 : x / y; }
inline unsigned long long _floor_divide(unsigned long long x, unsigned long long y) { return y == 0 ? 0 : x / y; }
inline float _floor_divide(float x, float y) { return floorf(x / y); }
inline double _floor_divide(double x, double y) { return ::floor(x / y); }
