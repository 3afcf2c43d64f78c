// Kernels that launch kernels. A child grid may run at any time before its parent grid counts as complete, so all
// children run when the parent's own threads have ended, in the order of their launches.
#pragma once

#include "kernel.h"

namespace gpu {

struct ChildLaunch {
  ChildLaunch *next;
  Status (*run)(const Launch &);
  Launch launch;
  void *arguments[1];  // as many as the kernel has parameters; their values follow
};

static struct {
  ChildLaunch *head, *tail;
} children;

/// `kernel<<<grid, block, shared, stream>>>(arguments)`, of which translation makes `Child<kernel>(...)(arguments)`.
template <auto F>
class Child;
template <class... P, void (*F)(P...)>
class Child<F> {
 public:
  Child(dim3 grid, dim3 block, size_t shared_bytes = 0, void * = nullptr) : grid_(grid), block_(block), shared_(shared_bytes) {}

  void operator()(P... argument) {
    constexpr size_t slot = 64;
    constexpr size_t count = sizeof...(P);
    static_assert(((sizeof(P) <= slot) && ...), "arguments of a kernel launched by a kernel have at most 64 bytes");
    char *memory = static_cast<char *>(malloc(sizeof(ChildLaunch) + count * (sizeof(void *) + slot) + slot));
    ChildLaunch *child = reinterpret_cast<ChildLaunch *>(memory);
    size_t values = reinterpret_cast<size_t>(&child->arguments[count + 1]);
    char *value = reinterpret_cast<char *>((values + slot - 1) / slot * slot);
    size_t index = 0;
    ((__builtin_memcpy(value, &argument, sizeof(P)), child->arguments[index++] = value, value += slot), ...);
    child->next = nullptr;
    child->run = run_grid<Kernel<F>>;
    child->launch = {{grid_.x, grid_.y, grid_.z}, {block_.x, block_.y, block_.z}, child->arguments, shared_,
                     state.launch->arena, state.launch->output};
    if (children.head) children.tail->next = child;
    else children.head = child;
    children.tail = child;
  }

 private:
  dim3 grid_, block_;
  size_t shared_;
};

/// Runs the children of the last grid, and theirs; all are forgotten once one has failed.
inline Status run_children(Status status) {
  while (ChildLaunch *child = children.head) {
    children.head = child->next;
    unsigned threads = child->launch.block[0] * child->launch.block[1] * child->launch.block[2];
    if (status == OK) status = threads > max_threads || threads == 0 ? TRAPPED : child->run(child->launch);
    free(child);
  }
  return status;
}

template <class Kernel>
Status run_with_children(const Launch &launch) {
  return run_children(run_grid<Kernel>(launch));
}

}  // namespace gpu

inline int cudaGetLastError() { return 0; }
