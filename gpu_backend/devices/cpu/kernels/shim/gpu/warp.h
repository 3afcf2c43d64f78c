// Warp shuffles, votes, matches and reductions. A warp is 32 threads that follow one another in x, then y, then z.
#pragma once

#include "barrier.h"

namespace gpu {

inline unsigned lane_id() { return linear_thread() % 32; }

/// Meets the other lanes of `mask`; `finish` runs once, in the last to come, for all of them.
GPU_NOINLINE inline Warp &meet(const void *site, unsigned mask, unsigned long long given, int source,
                               void (*finish)(Warp &, unsigned)) {
  State &s = state;
  must_wait();
  unsigned linear = s.current->linear, lane = linear % 32, bit = 1u << lane;
  Warp &warp = s.warps[linear / 32];
  warp.given[lane] = given;
  warp.source[lane] = source;
  warp.finish = finish;
  if (!site) mask |= bit;
  unsigned i = 0;
  while (i < warp.open && !(warp.rendezvous[i].site == site && warp.rendezvous[i].mask == mask)) ++i;
  if (i == warp.open) warp.rendezvous[warp.open++] = {site, mask, 0};
  Rendezvous &r = warp.rendezvous[i];
  r.arrived |= bit;
  if (is_complete(warp, r)) {
    complete(warp, i);
  } else {
    warp.waiting[lane] = s.current;
    park();
  }
  return warp;
}

inline void finish_shuffle(Warp &warp, unsigned lanes) {
  for (unsigned left = lanes; left; left &= left - 1) {
    int lane = __builtin_ctz(left);
    int source = warp.source[lane];
    warp.taken[lane] = lanes >> source & 1 ? warp.given[source] : warp.given[lane];
  }
}
inline void finish_vote(Warp &warp, unsigned lanes) {
  unsigned long long votes = 0;
  for (unsigned left = lanes; left; left &= left - 1) {
    int lane = __builtin_ctz(left);
    if (warp.given[lane]) votes |= 1u << lane;
  }
  for (unsigned left = lanes; left; left &= left - 1) warp.taken[__builtin_ctz(left)] = votes;
}
inline void finish_match(Warp &warp, unsigned lanes) {
  for (unsigned left = lanes; left; left &= left - 1) {
    int lane = __builtin_ctz(left);
    unsigned same = 0;
    for (unsigned others = lanes; others; others &= others - 1) {
      int other = __builtin_ctz(others);
      if (warp.given[other] == warp.given[lane]) same |= 1u << other;
    }
    warp.taken[lane] = same;
  }
}
template <class Op>
void finish_reduce(Warp &warp, unsigned lanes) {
  unsigned long long total = warp.given[__builtin_ctz(lanes)];
  for (unsigned left = lanes & (lanes - 1); left; left &= left - 1)
    total = Op::apply(total, warp.given[__builtin_ctz(left)]);
  for (unsigned left = lanes; left; left &= left - 1) warp.taken[__builtin_ctz(left)] = total;
}

template <class T>
unsigned long long to_slot(T value) {
  static_assert(sizeof(T) <= 8, "warp operations move values of at most 8 bytes");
  unsigned long long slot = 0;
  __builtin_memcpy(&slot, &value, sizeof(T));
  return slot;
}
template <class T>
T from_slot(unsigned long long slot) {
  T value;
  __builtin_memcpy(static_cast<void *>(&value), &slot, sizeof(T));
  return value;
}

template <class T>
T shuffle(unsigned mask, T value, int source) {
  Warp &warp = meet(nullptr, mask, to_slot(value), source, finish_shuffle);
  return from_slot<T>(warp.taken[lane_id()]);
}

inline unsigned vote(unsigned mask, int predicate, unsigned *lanes = nullptr) {
  Warp &warp = meet(nullptr, mask, predicate != 0, 0, finish_vote);
  if (lanes) *lanes = warp.lanes[lane_id()];
  return static_cast<unsigned>(warp.taken[lane_id()]);
}

inline unsigned active_lanes(const void *site) { return meet(site, ~0u, 0, 0, nullptr).lanes[lane_id()]; }

#define GPU_REDUCTION(name, expression)                                                  \
  template <class T>                                                                     \
  struct name {                                                                          \
    static unsigned long long apply(unsigned long long x, unsigned long long y) {        \
      T a = from_slot<T>(x), b = from_slot<T>(y);                                        \
      return to_slot<T>(expression);                                                     \
    }                                                                                    \
  };
GPU_REDUCTION(Sum, a + b)
GPU_REDUCTION(Least, a < b ? a : b)
GPU_REDUCTION(Most, a > b ? a : b)
GPU_REDUCTION(BitAnd, a & b)
GPU_REDUCTION(BitOr, a | b)
GPU_REDUCTION(BitXor, a ^ b)
#undef GPU_REDUCTION

template <template <class> class Op, class T>
T warp_reduce(unsigned mask, T value) {
  Warp &warp = meet(nullptr, mask, to_slot(value), 0, finish_reduce<Op<T>>);
  return from_slot<T>(warp.taken[lane_id()]);
}

}  // namespace gpu

inline void __syncwarp(unsigned mask = 0xffffffff) { gpu::meet(nullptr, mask, 0, 0, nullptr); }

// A lambda gives each place in the source its own address.
#define __activemask()          \
  (::gpu::active_lanes([] {     \
    static const char site = 0; \
    return &site;               \
  }()))

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  int lane = gpu::lane_id();
  return gpu::shuffle(mask, value, (lane & ~(width - 1)) | (source & (width - 1)));
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  int lane = gpu::lane_id(), first = lane & ~(width - 1), source = lane - static_cast<int>(delta);
  return gpu::shuffle(mask, value, source < first ? lane : source);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  int lane = gpu::lane_id(), last = lane | (width - 1), source = lane + static_cast<int>(delta);
  return gpu::shuffle(mask, value, source > last ? lane : source);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
  int lane = gpu::lane_id(), last = lane | (width - 1), source = lane ^ bits;
  return gpu::shuffle(mask, value, source > last ? lane : source);
}

inline unsigned __ballot_sync(unsigned mask, int predicate) { return gpu::vote(mask, predicate); }
inline int __any_sync(unsigned mask, int predicate) { return gpu::vote(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) {
  unsigned lanes, votes = gpu::vote(mask, predicate, &lanes);
  return votes == lanes;
}
inline int __uni_sync(unsigned mask, int predicate) {
  unsigned lanes, votes = gpu::vote(mask, predicate, &lanes);
  return votes == lanes || votes == 0;
}
template <class T>
unsigned __match_any_sync(unsigned mask, T value) {
  return static_cast<unsigned>(
      gpu::meet(nullptr, mask, gpu::to_slot(value), 0, gpu::finish_match).taken[gpu::lane_id()]);
}
template <class T>
unsigned __match_all_sync(unsigned mask, T value, int *all) {
  gpu::Warp &warp = gpu::meet(nullptr, mask, gpu::to_slot(value), 0, gpu::finish_match);
  unsigned lane = gpu::lane_id();
  *all = warp.taken[lane] == warp.lanes[lane];
  return *all ? warp.lanes[lane] : 0;
}

#define GPU_WARP_REDUCE(name, Op, T) \
  inline T name(unsigned mask, T value) { return gpu::warp_reduce<gpu::Op, T>(mask, value); }
GPU_WARP_REDUCE(__reduce_add_sync, Sum, unsigned)
GPU_WARP_REDUCE(__reduce_add_sync, Sum, int)
GPU_WARP_REDUCE(__reduce_min_sync, Least, unsigned)
GPU_WARP_REDUCE(__reduce_min_sync, Least, int)
GPU_WARP_REDUCE(__reduce_max_sync, Most, unsigned)
GPU_WARP_REDUCE(__reduce_max_sync, Most, int)
GPU_WARP_REDUCE(__reduce_and_sync, BitAnd, unsigned)
GPU_WARP_REDUCE(__reduce_or_sync, BitOr, unsigned)
GPU_WARP_REDUCE(__reduce_xor_sync, BitXor, unsigned)
#undef GPU_WARP_REDUCE
