// cooperative_groups: blocks, grids, tiles of a warp and coalesced lanes.
#pragma once

#include "gpu/kernel.h"

namespace cooperative_groups {

/// All threads of the block.
class thread_block {
 public:
  static void sync() { __syncthreads(); }
  static void barrier_arrive_and_wait() { __syncthreads(); }
  static unsigned thread_rank() { return gpu::linear_thread(); }
  static unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
  static unsigned num_threads() { return size(); }
  static dim3 group_index() { return blockIdx; }
  static dim3 thread_index() { return threadIdx; }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }
};

/// All threads of the grid. sync() needs enable_cooperative_groups=True, as on a GPU.
class grid_group {
 public:
  static void sync() { gpu::grid_barrier(); }
  static bool is_valid() { return true; }
  static unsigned long long num_blocks() { return static_cast<unsigned long long>(gridDim.x) * gridDim.y * gridDim.z; }
  static unsigned long long block_rank() {
    return blockIdx.x + gridDim.x * (blockIdx.y + static_cast<unsigned long long>(gridDim.y) * blockIdx.z);
  }
  static unsigned long long size() { return num_blocks() * thread_block::size(); }
  static unsigned long long num_threads() { return size(); }
  static unsigned long long thread_rank() { return block_rank() * thread_block::size() + thread_block::thread_rank(); }
  static dim3 group_dim() { return gridDim; }
  static dim3 dim_blocks() { return gridDim; }
  static dim3 block_index() { return blockIdx; }
};

/// Lanes of one warp, by a mask; ranks count its lanes from the lowest.
class lane_group {
 public:
  explicit lane_group(unsigned mask) : mask_(mask) {}

  void sync() const { __syncwarp(mask_); }
  unsigned size() const { return __popc(mask_); }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const { return __popc(mask_ & ((1u << gpu::lane_id()) - 1)); }

  template <class T>
  T shfl(T value, int rank) const { return gpu::shuffle(mask_, value, lane_of(rank)); }
  template <class T>
  T shfl_down(T value, unsigned delta) const { return relative(value, static_cast<int>(thread_rank() + delta)); }
  template <class T>
  T shfl_up(T value, unsigned delta) const { return relative(value, static_cast<int>(thread_rank() - delta)); }
  template <class T>
  T shfl_xor(T value, unsigned bits) const { return relative(value, static_cast<int>(thread_rank() ^ bits)); }

  int any(int predicate) const { return __any_sync(mask_, predicate); }
  int all(int predicate) const { return __all_sync(mask_, predicate); }
  unsigned ballot(int predicate) const { return packed(__ballot_sync(mask_, predicate)); }
  template <class T>
  unsigned match_any(T value) const { return packed(__match_any_sync(mask_, value)); }
  unsigned lanes() const { return mask_; }

 private:
  int lane_of(int rank) const {
    unsigned left = mask_;
    while (rank-- > 0 && left & (left - 1)) left &= left - 1;
    return __builtin_ctz(left);
  }
  template <class T>
  T relative(T value, int rank) const {
    bool inside = rank >= 0 && rank < static_cast<int>(size());
    return gpu::shuffle(mask_, value, inside ? lane_of(rank) : static_cast<int>(gpu::lane_id()));
  }
  /// From bits by lane to bits by rank.
  unsigned packed(unsigned lanes) const {
    unsigned ranks = 0, rank = 0;
    for (unsigned left = mask_; left; left &= left - 1, ++rank)
      if (lanes & left & -left) ranks |= 1u << rank;
    return ranks;
  }

  unsigned mask_;
};

class coalesced_group : public lane_group {
 public:
  explicit coalesced_group(unsigned mask) : lane_group(mask) {}
};

/// Size threads of a block that follow one another, Size a power of two up to 32.
template <unsigned Size, class Parent = void>
class thread_block_tile : public lane_group {
 public:
  thread_block_tile()
      : lane_group((Size == 32 ? 0xffffffffu : (1u << (Size % 32)) - 1) << (gpu::lane_id() / Size * Size)) {}
  static constexpr unsigned size() { return Size; }
  static constexpr unsigned num_threads() { return Size; }
  static unsigned thread_rank() { return gpu::lane_id() % Size; }
  static unsigned meta_group_rank() { return gpu::linear_thread() / Size; }
  static unsigned meta_group_size() { return (thread_block::size() + Size - 1) / Size; }
};

inline thread_block this_thread_block() { return {}; }
inline grid_group this_grid() { return {}; }
#define coalesced_threads() coalesced_group(__activemask())

template <unsigned Size, class Parent>
thread_block_tile<Size, Parent> tiled_partition(const Parent &) {
  static_assert(Size <= 32 && (Size & (Size - 1)) == 0, "a tile has a power of two of threads, at most 32");
  return {};
}
inline lane_group tiled_partition(const thread_block &, unsigned size) {
  return lane_group((size == 32 ? 0xffffffffu : (1u << size) - 1) << (gpu::lane_id() / size * size));
}

template <class Group>
void sync(const Group &group) { group.sync(); }
template <class Group>
auto thread_rank(const Group &group) { return group.thread_rank(); }
template <class Group>
auto group_size(const Group &group) { return group.size(); }

template <class T>
struct plus {
  T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct less {
  T operator()(T a, T b) const { return a < b ? a : b; }
};
template <class T>
struct greater {
  T operator()(T a, T b) const { return a > b ? a : b; }
};
template <class T>
struct bit_and {
  T operator()(T a, T b) const { return a & b; }
};
template <class T>
struct bit_or {
  T operator()(T a, T b) const { return a | b; }
};
template <class T>
struct bit_xor {
  T operator()(T a, T b) const { return a ^ b; }
};

/// The values of all threads of a group of lanes joined by `op`, in every one of them.
template <class Group, class T, class Op>
T reduce(const Group &group, T value, Op op) {
  T total = group.shfl(value, 0);
  for (unsigned rank = 1; rank < group.size(); ++rank) total = op(total, group.shfl(value, static_cast<int>(rank)));
  return total;
}

}  // namespace cooperative_groups
