// Grids whose blocks wait for one another (cooperative launches): one operating-system thread a block.
#pragma once

#include "barrier.h"

#ifdef GPU_COOPERATIVE

#include <pthread.h>

extern "C" int munmap(void *, size_t) noexcept;

namespace gpu {

struct Grid {
  const Launch *launch;
  Status (*run)(const Launch &);
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  unsigned started;
  unsigned alive;
  unsigned arrived;
  unsigned long long generation;
  Status status;
};

static Grid grid;

/// With the mutex held: lets the blocks that wait go on if all living ones do.
inline void release_grid() {
  if (grid.arrived != grid.alive) return;
  grid.arrived = 0;
  ++grid.generation;
  pthread_cond_broadcast(&grid.changed);
}

/// Called by the last thread of a block to arrive at the grid's barrier.
inline void wait_for_grid() {
  pthread_mutex_lock(&grid.mutex);
  unsigned long long generation = grid.generation;
  ++grid.arrived;
  release_grid();
  while (grid.generation == generation) pthread_cond_wait(&grid.changed, &grid.mutex);
  pthread_mutex_unlock(&grid.mutex);
}

inline void end_of_block() { leave_launch(OK); }

inline void *run_block(void *) {
  pthread_mutex_lock(&grid.mutex);
  unsigned index = grid.started++;
  pthread_mutex_unlock(&grid.mutex);
  Launch launch = *grid.launch;
  Arena arena = {nullptr, launch.arena->stack_bytes, launch.arena->count, 0};
  launch.arena = &arena;
  blockIdx = {index % launch.grid[0], index / launch.grid[0] % launch.grid[1], index / launch.grid[0] / launch.grid[1]};
  Status status = grid.run(launch);
  if (arena.base) munmap(arena.base, arena.stack_bytes * arena.count);
  pthread_mutex_lock(&grid.mutex);
  if (status != OK) grid.status = status;
  --grid.alive;
  if (grid.alive) release_grid();
  pthread_mutex_unlock(&grid.mutex);
  return nullptr;
}

template <class Kernel>
Status run_one_block(const Launch &launch) {
  return run_workers(launch, work<Kernel>, Kernel::begin, end_of_block, 1);
}

/// Python keeps cooperative grids small (see launch.py), as a GPU does.
template <class Kernel>
Status run_cooperative(const Launch &launch) {
  constexpr unsigned most = 64;
  unsigned blocks = launch.grid[0] * launch.grid[1] * launch.grid[2];
  if (blocks > most) return NO_STACKS;
  grid = {&launch, run_one_block<Kernel>, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, blocks, 0, 0, OK};
  pthread_t threads[most];
  for (unsigned i = 0; i < blocks; ++i)
    if (pthread_create(&threads[i], nullptr, run_block, nullptr) != 0) __builtin_abort();
  for (unsigned i = 0; i < blocks; ++i) pthread_join(threads[i], nullptr);
  return grid.status;
}

inline void grid_barrier() { block_barrier(0, wait_for_grid); }

}  // namespace gpu

#else

namespace gpu {
/// Without enable_cooperative_groups the blocks run one after the other, so only a grid of one can meet.
inline void grid_barrier() {
  if (gridDim.x * gridDim.y * gridDim.z != 1) leave_launch(TRAPPED);
  block_barrier(0);
}
}  // namespace gpu

#endif
