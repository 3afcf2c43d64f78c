// An integer division by zero ends the launch with an error instead of ending the process.
#pragma once

#include "scheduler_state.h"

namespace gpu {

#if defined(__x86_64__) && defined(__linux__)

// The C library's struct sigaction, spelled out: <signal.h> would take names that kernels use, such as `signal`.
struct SignalAction {
  void (*handler)(int);
  unsigned long mask[16];
  int flags;
  void (*restorer)();
};
extern "C" int gpu_sigaction(int, const SignalAction *, SignalAction *) __asm__("sigaction");

inline void divided_by_zero(int) { leave_launch(DIVIDED_BY_ZERO); }

/// While it lives, SIGFPE leaves the launch. (The signal stays deliverable, because the handler never returns.)
class FaultGuard {
 public:
  FaultGuard() {
    constexpr int no_defer = 0x40000000;
    SignalAction action = {divided_by_zero, {}, no_defer, nullptr};
    gpu_sigaction(signal_number, &action, &before_);
  }
  ~FaultGuard() { gpu_sigaction(signal_number, &before_, nullptr); }

 private:
  static constexpr int signal_number = 8;
  SignalAction before_;
};

#else

/// Elsewhere a division by zero gives 0 or is not caught.
class FaultGuard {
 public:
  FaultGuard() {}
};

#endif

}  // namespace gpu
