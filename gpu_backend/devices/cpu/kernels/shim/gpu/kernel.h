// Everything a raw kernel may use without an #include, and how Python finds and starts the kernels of a module.
#pragma once

#include "atomics.h"
#include "device_io.h"
#include "grid.h"
#include "intrinsics.h"
#include "warp.h"

namespace gpu {

template <size_t... I>
struct Indices {};
template <size_t N, size_t... I>
struct MakeIndices : MakeIndices<N - 1, N - 1, I...> {};
template <size_t... I>
struct MakeIndices<0, I...> {
  typedef Indices<I...> type;
};

/// A kernel by its address: how many bytes each of its parameters has, and one thread of it.
template <auto F>
struct Kernel;
template <class... P, void (*F)(P...)>
struct Kernel<F> {
  static constexpr int count = sizeof...(P);
  static constexpr unsigned sizes[sizeof...(P) + 1] = {sizeof(P)...};

  /// The arguments, where the compiler sees that no pointer of the kernel leads to them.
  template <size_t I, class T>
  struct Argument {
    alignas(16) GPU_MEMBER unsigned char bytes[sizeof(T)];
    static inline T &get() { return *reinterpret_cast<T *>(bytes); }
  };
  template <size_t... I>
  static void take(Indices<I...>, [[maybe_unused]] void **arguments) {
    (__builtin_memcpy(Argument<I, typename bare<P>::type>::bytes, arguments[I], sizeof(P)), ...);
  }
  template <size_t... I>
  static inline void call(Indices<I...>) {
    F(Argument<I, typename bare<P>::type>::get()...);
  }
  static void begin(void **arguments) { take(typename MakeIndices<sizeof...(P)>::type(), arguments); }
  static inline void run() { call(typename MakeIndices<sizeof...(P)>::type()); }
};

struct Entry {
  const char *name;
  Status (*run)(const Launch &);
  int parameters;
  const unsigned *sizes;
};

#ifdef GPU_DYNAMIC
template <class Kernel>
Status run_with_children(const Launch &);
#endif

template <auto F>
constexpr Entry entry(const char *name) {
#if defined(GPU_DYNAMIC)
  return {name, run_with_children<Kernel<F>>, Kernel<F>::count, Kernel<F>::sizes};
#elif defined(GPU_COOPERATIVE)
  return {name, run_cooperative<Kernel<F>>, Kernel<F>::count, Kernel<F>::sizes};
#else
  return {name, run_grid<Kernel<F>>, Kernel<F>::count, Kernel<F>::sizes};
#endif
}

/// Where `extern __shared__` arrays lie: the most dynamic shared memory that any block may ask for.
constexpr size_t dynamic_shared_bytes = 232448;
[[maybe_unused]] alignas(1024) GPU_STATE char dynamic_shared[dynamic_shared_bytes];

}  // namespace gpu

#ifdef GPU_DYNAMIC
#include "child.h"
#endif
