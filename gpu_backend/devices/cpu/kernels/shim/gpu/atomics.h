// Atomic functions. Threads take turns only where they wait, so a plain read-modify-write is atomic here; only a
// grid of several operating-system threads (GPU_COOPERATIVE) needs a compare-and-swap.
#pragma once

#include "barrier.h"

namespace gpu {

template <class T, class F>
inline T update(T *address, F next) {
#ifdef GPU_COOPERATIVE
  typedef typename conditional<sizeof(T) == 8, unsigned long long,
                               typename conditional<sizeof(T) == 4, unsigned, unsigned short>::type>::type Bits;
  Bits *bits = reinterpret_cast<Bits *>(address), old = __atomic_load_n(bits, __ATOMIC_SEQ_CST);
  for (;;) {
    T value = bit_cast<T>(old);
    if (__atomic_compare_exchange_n(bits, &old, bit_cast<Bits>(static_cast<T>(next(value))), false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST))
      return value;
  }
#else
  T old = *address;
  *address = static_cast<T>(next(old));
  return old;
#endif
}

template <class T>
inline T swap_if(T *address, T expected, T desired) {
  T old = update(address, [&](T value) { return value == expected ? desired : value; });
  if (GPU_UNLIKELY(!(old == expected))) yield();  // perhaps a lock that another thread of the block holds
  return old;
}
template <class T>
inline T exchange(T *address, T desired) {
  T old = update(address, [&](T) { return desired; });
  if (GPU_UNLIKELY(old == desired)) yield();
  return old;
}

}  // namespace gpu

// Each comes in three widths of scope, which are one here.
#define GPU_ATOMIC(name, T, expression)                                                                         \
  inline T name(T *address, T operand) {                                                                        \
    return gpu::update(address, [&](T old) { return expression; });                                             \
  }                                                                                                             \
  inline T name##_block(T *address, T operand) { return name(address, operand); }                               \
  inline T name##_system(T *address, T operand) { return name(address, operand); }
#define GPU_ATOMIC_INTEGERS(name, expression)      \
  GPU_ATOMIC(name, int, expression)                \
  GPU_ATOMIC(name, unsigned, expression)           \
  GPU_ATOMIC(name, unsigned long, expression)      \
  GPU_ATOMIC(name, long, expression)               \
  GPU_ATOMIC(name, unsigned long long, expression) \
  GPU_ATOMIC(name, long long, expression)
#define GPU_ATOMIC_NUMBERS(name, expression) \
  GPU_ATOMIC_INTEGERS(name, expression)      \
  GPU_ATOMIC(name, float, expression)        \
  GPU_ATOMIC(name, double, expression)

GPU_ATOMIC_NUMBERS(atomicAdd, old + operand)
GPU_ATOMIC_NUMBERS(atomicSub, old - operand)
GPU_ATOMIC_NUMBERS(atomicMin, (operand < old || old != old) ? operand : old)
GPU_ATOMIC_NUMBERS(atomicMax, (operand > old || old != old) ? operand : old)
GPU_ATOMIC_INTEGERS(atomicAnd, old &operand)
GPU_ATOMIC_INTEGERS(atomicOr, old | operand)
GPU_ATOMIC_INTEGERS(atomicXor, old ^ operand)
GPU_ATOMIC(atomicInc, unsigned, old >= operand ? 0 : old + 1)
GPU_ATOMIC(atomicDec, unsigned, (old == 0 || old > operand) ? operand : old - 1)

#define GPU_ATOMIC_SWAP(T)                                                                         \
  inline T atomicExch(T *address, T value) { return gpu::exchange(address, value); }               \
  inline T atomicExch_block(T *address, T value) { return gpu::exchange(address, value); }         \
  inline T atomicExch_system(T *address, T value) { return gpu::exchange(address, value); }
#define GPU_ATOMIC_CAS(T)                                                                                          \
  inline T atomicCAS(T *address, T expected, T value) { return gpu::swap_if(address, expected, value); }          \
  inline T atomicCAS_block(T *address, T expected, T value) { return gpu::swap_if(address, expected, value); }    \
  inline T atomicCAS_system(T *address, T expected, T value) { return gpu::swap_if(address, expected, value); }
GPU_ATOMIC_SWAP(int)
GPU_ATOMIC_SWAP(unsigned)
GPU_ATOMIC_SWAP(unsigned long long)
GPU_ATOMIC_SWAP(float)
GPU_ATOMIC_CAS(int)
GPU_ATOMIC_CAS(unsigned)
GPU_ATOMIC_CAS(unsigned long long)
GPU_ATOMIC_CAS(unsigned short)
#undef GPU_ATOMIC
#undef GPU_ATOMIC_INTEGERS
#undef GPU_ATOMIC_NUMBERS
#undef GPU_ATOMIC_SWAP
#undef GPU_ATOMIC_CAS
