// __syncthreads and its kin, fences, and the clock.
#pragma once

#include "scheduler.h"

namespace gpu {

/// `last` runs in the last thread to arrive, before the others go on.
GPU_NOINLINE inline int block_barrier(int predicate, void (*last)() = nullptr) {
  State &s = state;
  must_wait();
  s.counted += predicate;
  if (++s.arrived == s.alive) {
    if (last) last();
    release_barrier();
  } else {
    s.at_barrier.push(s.current);
    park();
  }
  return s.counted_result;
}

inline unsigned linear_thread() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

}  // namespace gpu

inline void __syncthreads() { gpu::block_barrier(0); }
inline int __syncthreads_count(int predicate) { return gpu::block_barrier(predicate != 0); }
inline int __syncthreads_or(int predicate) { return gpu::block_barrier(predicate != 0) != 0; }
inline int __syncthreads_and(int predicate) { return gpu::block_barrier(predicate == 0) == 0; }

// A thread gives way only where it waits, so a compiler barrier is all that a fence must be; a grid of several
// operating-system threads needs the machine's fence.
#ifdef GPU_COOPERATIVE
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
#else
inline void __threadfence() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
#endif
inline void __threadfence_block() { __threadfence(); }
inline void __threadfence_system() { __threadfence(); }

inline void __nanosleep(unsigned) { gpu::yield(); }

inline long long clock64() {
#if defined(__x86_64__)
  return static_cast<long long>(__builtin_ia32_rdtsc());
#elif defined(__aarch64__)
  long long ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  static long long ticks;
  return ++ticks;
#endif
}
extern "C" inline long clock() noexcept { return static_cast<long>(clock64()); }
