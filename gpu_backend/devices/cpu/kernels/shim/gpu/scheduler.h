// Runs the threads of a block on one processor.
//
// A worker takes one GPU thread after the other and simply calls the kernel, so a kernel without barriers is a plain
// loop. Only when a thread has to wait (park) does its worker's stack stay behind, and another worker carries on with
// the threads that have not started. Workers whose thread has ended are kept and reused.
#pragma once

#include "faults.h"

namespace gpu {

/// Returns the stack number `index`, whose lowest bytes may not be touched, so that an overflow is a clean fault.
GPU_NOINLINE inline char *stack_of(unsigned index) {
  constexpr int none = 0, read_write = 3, private_anonymous = 0x02 | 0x20;
  Arena &arena = *state.launch->arena;
  if (!arena.base) {
    void *base = mmap(nullptr, arena.stack_bytes * arena.count, none, private_anonymous, -1, 0);
    if (base == reinterpret_cast<void *>(-1)) leave_launch(NO_STACKS);
    arena.base = static_cast<char *>(base);
  }
  for (; arena.opened <= index; ++arena.opened) {
    char *stack = arena.base + arena.opened * arena.stack_bytes;
    if (mprotect(stack + guard_bytes, arena.stack_bytes - guard_bytes, read_write) != 0) leave_launch(NO_STACKS);
  }
  return arena.base + index * arena.stack_bytes;
}

GPU_NOINLINE inline Fiber *idle_worker() {
  if (Fiber *fiber = state.idle) {
    state.idle = fiber->next;
    return fiber;
  }
  unsigned index = state.workers++;
  Fiber *fiber = &state.fibers[index];
  // Stacks whose tops lie a power of two apart would all fall into the same few cache lines.
  size_t colour = (index * 5 % 64) * 64;
  Arena &arena = *state.launch->arena;
  char *stack = stack_of(index - 1);
  fiber->context = new_context(stack, arena.stack_bytes - colour, state.work);
  return fiber;
}

/// Before the first wait of a block, threads start and end in order, and nobody keeps count: catch up.
GPU_NOINLINE inline void begin_waiting() {
  State &s = state;
  unsigned ended = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  waited = true;
  s.started = ended + 1;
  s.alive = s.threads - ended;
  s.arrived = 0;
  for (unsigned w = 0; w * 32 < s.threads; ++w) {
    unsigned lanes = s.threads - w * 32 >= 32 ? ~0u : (1u << (s.threads - w * 32)) - 1;
    unsigned gone = ended <= w * 32 ? 0u : ended - w * 32 >= 32 ? ~0u : (1u << (ended - w * 32)) - 1;
    s.warps[w].alive = lanes & ~gone;
    s.warps[w].open = 0;
  }
  s.current->thread = threadIdx;
  s.current->linear = ended;
}

inline void must_wait() {
  if (!waited) begin_waiting();
}

inline void release_barrier() {
  state.counted_result = state.counted;
  state.counted = 0;
  state.arrived = 0;
  state.ready.append(state.at_barrier);
}

inline void complete(Warp &warp, unsigned index) {
  Rendezvous done = warp.rendezvous[index];
  warp.rendezvous[index] = warp.rendezvous[--warp.open];
  if (warp.finish) warp.finish(warp, done.arrived);
  for (unsigned left = done.arrived; left; left &= left - 1) {
    int lane = __builtin_ctz(left);
    warp.lanes[lane] = done.arrived;
    if (warp.waiting[lane]) state.ready.push(warp.waiting[lane]);
    warp.waiting[lane] = nullptr;
  }
}

inline bool is_complete(const Warp &warp, const Rendezvous &r) {
  return r.arrived == ((r.site ? ~0u : r.mask) & warp.alive);
}

/// Nobody can run: lanes wait for lanes that wait elsewhere. Hardware would run on with those that are there.
GPU_NOINLINE inline bool resolve() {
  State &s = state;
  for (int sites = 1; sites >= 0; --sites)
    for (unsigned w = 0; w * 32 < s.threads; ++w)
      for (unsigned i = 0; i < s.warps[w].open; ++i)
        if ((s.warps[w].rendezvous[i].site != nullptr) == sites) {
          complete(s.warps[w], i);
          return true;
        }
  if (s.arrived) {
    release_barrier();
    return true;
  }
  return false;
}

/// Lets others run until somebody puts the present thread into the ready queue.
GPU_NOINLINE inline void park() {
  State &s = state;
  Fiber *me = s.current;
  while (!s.ready.head && s.started == s.threads)
    if (!resolve()) leave_launch(TRAPPED);
  Fiber *to = s.ready.head ? s.ready.pop() : idle_worker();
  if (to == me) return;
  s.current = to;
  gpu_switch(&me->context, to->context);
  threadIdx = me->thread;
}

/// Lets the other threads of the block run once: what a thread that spins on a lock must do here.
GPU_NOINLINE inline void yield() {
  State &s = state;
  must_wait();
  if (!s.ready.head && s.started == s.threads) return;
  Fiber *me = s.current;
  s.ready.push(me);
  s.must_start = s.started < s.threads;
  Fiber *to = s.must_start ? idle_worker() : s.ready.pop();
  s.current = to;
  gpu_switch(&me->context, to->context);
  threadIdx = me->thread;
}

/// A thread of a block in which some thread has waited is over.
GPU_NOINLINE inline void end_thread() {
  State &s = state;
  unsigned linear = s.current->linear;
  Warp &warp = s.warps[linear / 32];
  warp.alive &= ~(1u << (linear % 32));
  for (unsigned i = 0; i < warp.open;)
    if (is_complete(warp, warp.rendezvous[i])) complete(warp, i);
    else ++i;
  if (--s.alive && s.arrived == s.alive) release_barrier();
}

/// The worker's thread is over and no other may be started by it now.
GPU_NOINLINE inline void rest() {
  State &s = state;
  Fiber *me = s.current;
  if (!s.ready.head && !s.alive) {
    s.next_block();
    return;
  }
  while (!s.ready.head)
    if (!resolve()) leave_launch(TRAPPED);
  Fiber *to = s.ready.pop();
  me->next = s.idle;
  s.idle = me;
  s.current = to;
  gpu_switch(&me->context, to->context);
}

inline void start_block() {
  state.alive = 0;
  waited = false;
}

/// One block after the other, until the grid is done.
GPU_NOINLINE inline void next_block_of_grid() {
  if (!--state.blocks_left) leave_launch(OK);
  if (++blockIdx.x == gridDim.x) {
    blockIdx.x = 0;
    if (++blockIdx.y == gridDim.y) blockIdx.y = 0, ++blockIdx.z;
  }
  start_block();
}

/// What every worker does. `Kernel::run()`, which is one thread, is inlined into the loop.
template <class Kernel>
void work() {
  State &s = state;
  for (;;) {
    if (GPU_LIKELY(!waited)) {
      for (threadIdx.z = 0; threadIdx.z < blockDim.z; ++threadIdx.z)
        for (threadIdx.y = 0; threadIdx.y < blockDim.y; ++threadIdx.y)
          for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x) {
            Kernel::run();
            if (GPU_UNLIKELY(waited)) goto slowly;
          }
      s.next_block();
      continue;
    slowly:
      end_thread();
    }
    while ((!s.ready.head || s.must_start) && s.started < s.threads) {
      s.must_start = false;
      unsigned linear = s.started++;
      unsigned xy = blockDim.x * blockDim.y;
      threadIdx = {linear % blockDim.x, linear % xy / blockDim.x, linear / xy};
      s.current->thread = threadIdx;
      s.current->linear = linear;
      Kernel::run();
      end_thread();
    }
    rest();
  }
}

/// Runs `s.work` until leave_launch, with fiber 0 on the caller's own stack.
inline Status run_workers(const Launch &launch, void (*work)(), void (*begin)(void **),
                          void (*next_block)(), unsigned long long blocks) {
  State &s = state;
  s.launch = &launch;
  s.work = work;
  s.next_block = next_block;
  s.blocks_left = blocks;
  s.threads = launch.block[0] * launch.block[1] * launch.block[2];
  s.ready.head = s.at_barrier.head = nullptr;
  s.idle = nullptr;
  s.workers = 1;
  s.current = &s.fibers[0];
  s.arrived = s.counted = 0;
  s.must_start = false;
  blockDim = dim3(launch.block[0], launch.block[1], launch.block[2]);
  gridDim = dim3(launch.grid[0], launch.grid[1], launch.grid[2]);
  start_block();
  begin(launch.arguments);
  FaultGuard guard;
  gpu_enter(&s.outside, work);
  if (s.status != OK) __builtin_memset(&s.warps, 0, sizeof(s.warps));  // lanes were left waiting
  return s.status;
}

template <class Kernel>
Status run_grid(const Launch &launch) {
  blockIdx = {0, 0, 0};
  return run_workers(launch, work<Kernel>, Kernel::begin, next_block_of_grid,
                     static_cast<unsigned long long>(launch.grid[0]) * launch.grid[1] * launch.grid[2]);
}

}  // namespace gpu
