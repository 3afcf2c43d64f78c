// Elements of structured NumPy dtypes: fields by number, at the offsets that the dtype says.
#pragma once

#include "kernel.h"

namespace gpu {

template <class T, size_t Offset>
struct Field {
  typedef T type;
  static constexpr size_t offset = Offset;
};

template <size_t I, class First, class... Rest>
struct FieldAt : FieldAt<I - 1, Rest...> {};
template <class First, class... Rest>
struct FieldAt<0, First, Rest...> {
  typedef First field;
};

template <size_t Size, size_t Alignment, class... Fields>
struct alignas(Alignment) Structure {
  static constexpr size_t size = Size;
  static constexpr size_t alignment = Alignment;
  static constexpr size_t field_count = sizeof...(Fields);

  template <size_t I>
  auto &at() {
    typedef typename FieldAt<I, Fields...>::field Field;
    return *reinterpret_cast<typename Field::type *>(bytes + Field::offset);
  }
  template <size_t I>
  const auto &at() const {
    typedef typename FieldAt<I, Fields...>::field Field;
    return *reinterpret_cast<const typename Field::type *>(bytes + Field::offset);
  }

  friend bool operator==(const Structure &a, const Structure &b) {
    return equal(a, b, typename MakeIndices<sizeof...(Fields)>::type());
  }
  friend bool operator!=(const Structure &a, const Structure &b) { return !(a == b); }

  char bytes[Size];

 private:
  template <size_t... I>
  static bool equal(const Structure &a, const Structure &b, Indices<I...>) {
    if constexpr (sizeof...(I) == 0) return __builtin_memcmp(a.bytes, b.bytes, Size) == 0;
    else return ((a.template at<I>() == b.template at<I>()) && ...);
  }
};

}  // namespace gpu
