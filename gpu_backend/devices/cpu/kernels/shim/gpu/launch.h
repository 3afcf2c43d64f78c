// What crosses from Python into a compiled module at a launch. Mirrored by launch.py; change both together.
#pragma once

#include "vector_types.h"

namespace gpu {

/// Stacks for the GPU threads that wait. One per process, shared by all modules, made when a thread first waits.
struct Arena {
  char *base;
  size_t stack_bytes;
  size_t count;
  size_t opened;  // how many stacks may be used already
};

/// What kernels printed. Grows on the C heap up to `limit`; what comes after that is dropped, as CUDA's FIFO does.
struct Output {
  char *text;
  size_t length;
  size_t capacity;
  size_t limit;
};

struct Launch {
  unsigned grid[3];
  unsigned block[3];
  void **arguments;  // one pointer to the value of each parameter
  size_t shared_bytes;
  Arena *arena;
  Output *output;
};

enum Status : int { OK = 0, ASSERTION_FAILED = 1, TRAPPED = 2, NO_STACKS = 3, DIVIDED_BY_ZERO = 4 };

}  // namespace gpu
