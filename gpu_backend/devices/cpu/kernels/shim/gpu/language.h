// CUDA C++'s own words, spelled for a C++17 compiler that makes code for this machine's processor.
//
// Only C headers are included anywhere in this shim: a C++ standard header costs about half a second a compilation. Not
// <stdint.h>: many kernels declare its types themselves, as NVRTC has none of them.
#pragma once

#include <float.h>
#include <limits.h>
#include <stddef.h>

#define __host__
#define __device__
#define __global__
#define __constant__
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))

// Code is guarded by these; the newest branch is the one that plain C++ can follow.
#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __CUDA_ARCH__ 900
#define CUDART_VERSION 13000

// Kernels with a grid-wide barrier run one operating-system thread a block (see grid.h), all others run in one
// thread, where a plain static is both the cheapest and the safe choice.
#ifdef GPU_COOPERATIVE
#define GPU_STATE static thread_local
#define GPU_MEMBER static inline thread_local
#else
#define GPU_STATE static
#define GPU_MEMBER static inline
#endif
#define __shared__ GPU_STATE

#define GPU_LIKELY(x) __builtin_expect(!!(x), 1)
#define GPU_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define GPU_NOINLINE __attribute__((noinline))

typedef unsigned short ushort;
typedef unsigned int uint;

namespace gpu {

template <bool B, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
  typedef T type;
};
template <class T, class U>
struct is_same {
  static constexpr bool value = false;
};
template <class T>
struct is_same<T, T> {
  static constexpr bool value = true;
};
template <bool B, class T, class F>
struct conditional {
  typedef T type;
};
template <class T, class F>
struct conditional<false, T, F> {
  typedef F type;
};
template <class T>
struct bare {
  typedef T type;
};
template <class T>
struct bare<T &> {
  typedef T type;
};
template <class T>
struct bare<T &&> {
  typedef T type;
};
template <class T>
struct bare<const T> {
  typedef T type;
};
template <class T>
struct bare<const T &> {
  typedef T type;
};

template <class T>
constexpr bool is_integer =
    is_same<T, bool>::value || is_same<T, char>::value || is_same<T, signed char>::value ||
    is_same<T, unsigned char>::value || is_same<T, short>::value || is_same<T, unsigned short>::value ||
    is_same<T, int>::value || is_same<T, unsigned>::value || is_same<T, long>::value ||
    is_same<T, unsigned long>::value || is_same<T, long long>::value || is_same<T, unsigned long long>::value;
template <class T>
constexpr bool is_real = is_same<T, float>::value || is_same<T, double>::value;

/// The bytes of `value` read as a `To` of the same size.
template <class To, class From>
inline To bit_cast(From value) {
  static_assert(sizeof(To) == sizeof(From), "bit_cast between types of different size");
  To result;
  __builtin_memcpy(&result, &value, sizeof(To));
  return result;
}

}  // namespace gpu
