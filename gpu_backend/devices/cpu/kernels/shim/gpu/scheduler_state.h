// What the threads of a block share, and the way out of a launch.
#pragma once

#include "launch.h"
#include "switch.h"

GPU_STATE uint3 threadIdx;
GPU_STATE uint3 blockIdx;
GPU_STATE dim3 blockDim;
GPU_STATE dim3 gridDim;
static const int warpSize = 32;

extern "C" {
void *mmap(void *, size_t, int, int, int, long) noexcept;
int mprotect(void *, size_t, int) noexcept;
}

namespace gpu {

constexpr unsigned max_threads = 1024;
constexpr size_t guard_bytes = 65536;  // a page on any system, and more than most frames

struct Fiber {
  void *context;
  Fiber *next;
  uint3 thread;
  unsigned linear;
};

/// First in, first out.
struct Queue {
  Fiber *head, *tail;

  void push(Fiber *fiber) {
    fiber->next = nullptr;
    if (head) tail->next = fiber;
    else head = fiber;
    tail = fiber;
  }
  Fiber *pop() {
    Fiber *fiber = head;
    head = fiber->next;
    return fiber;
  }
  void append(Queue &other) {
    if (!other.head) return;
    if (head) tail->next = other.head;
    else head = other.head;
    tail = other.tail;
    other.head = nullptr;
  }
};

/// Lanes that wait for one another: at a *_sync of `mask`, or, if `site` is set, at an __activemask of that place.
struct Rendezvous {
  const void *site;
  unsigned mask;
  unsigned arrived;
};

/// `alive`: lanes that have not ended. The arrays hold what each waiting lane brought and what it takes away.
struct Warp {
  unsigned alive;
  unsigned open;  // rendezvous in use
  Rendezvous rendezvous[32];
  Fiber *waiting[32];
  unsigned long long given[32];
  unsigned long long taken[32];
  unsigned lanes[32];  // who took part, for each lane
  int source[32];
  void (*finish)(Warp &, unsigned);
};

struct State {
  const Launch *launch;
  void *outside;  // the context of the launch itself
  void (*work)();
  Fiber *current;
  Fiber *idle;  // a stack of workers without a thread
  unsigned workers;
  Queue ready;
  unsigned threads;  // of a block
  unsigned started;  // this and `alive` are kept only once a thread of the block has waited
  unsigned alive;
  bool must_start;  // the next to run is a thread that has not started, whoever is ready
  Queue at_barrier;
  unsigned arrived;
  int counted, counted_result;
  unsigned long long blocks_left;
  void (*next_block)();
  Status status;
  Fiber fibers[max_threads + 1];
  Warp warps[max_threads / 32];
};

GPU_STATE State state;

/// Whether a thread of this block has waited. Apart from `state`, and never with its address taken, so that the
/// compiler can see that a kernel without barriers leaves it alone, and treat the threads as a plain loop.
GPU_STATE bool waited;

[[noreturn]] inline void leave_launch(Status status) {
  void *unused;
  state.status = status;
  gpu_switch(&unused, state.outside);
  __builtin_unreachable();
}

}  // namespace gpu
