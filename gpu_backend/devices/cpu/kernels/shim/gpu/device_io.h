// printf, assert and trap in kernels.
#pragma once

#include "barrier.h"

extern "C" {
int vsnprintf(char *, size_t, const char *, __builtin_va_list);
void *realloc(void *, size_t) noexcept;
void *malloc(size_t) noexcept;
void free(void *) noexcept;
void *memcpy(void *, const void *, size_t) noexcept;
void *memmove(void *, const void *, size_t) noexcept;
void *memset(void *, int, size_t) noexcept;
int memcmp(const void *, const void *, size_t) noexcept;
size_t strlen(const char *) noexcept;
}

namespace gpu {

/// Adds one printf to the launch's output; Python hands it on when the launch is over.
GPU_NOINLINE inline int device_printf(const char *format, ...) {
  Output &out = *state.launch->output;
  for (int round = 0; round < 2; ++round) {
    __builtin_va_list values;
    __builtin_va_start(values, format);
    size_t room = out.capacity - out.length;
    int length = vsnprintf(out.text + out.length, room, format, values);
    __builtin_va_end(values);
    if (length < 0) return length;
    if (static_cast<size_t>(length) < room) {
      out.length += length;
      return length;
    }
    size_t wanted = 2 * out.capacity + length + 1024;
    if (wanted > out.limit) wanted = out.limit;
    if (wanted <= out.capacity) return -1;
    char *text = static_cast<char *>(realloc(out.text, wanted));
    if (!text) return -1;
    out.text = text;
    out.capacity = wanted;
  }
  return -1;
}

[[noreturn]] GPU_NOINLINE inline void assertion_failed(const char *text, const char *file, int line,
                                                       const char *function) {
  device_printf("%s:%d: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n", file, line, function,
                blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z, text);
  leave_launch(ASSERTION_FAILED);
}

}  // namespace gpu

#define printf(...) ::gpu::device_printf(__VA_ARGS__)
#ifdef NDEBUG
#define assert(expression) static_cast<void>(0)
#else
#define assert(expression) \
  ((expression) ? static_cast<void>(0) : ::gpu::assertion_failed(#expression, __FILE__, __LINE__, __func__))
#endif

[[noreturn]] inline void __trap() { gpu::leave_launch(gpu::TRAPPED); }
inline void __brkpt() {}
#define __assume(condition) static_cast<void>(0)
#define __builtin_assume(condition) static_cast<void>(0)
