// Changing from one stack to another: what a GPU thread that waits needs, so that the next one can run.
//
// gpu_enter(&context, f)         calls f on the present stack after saving a context that gpu_switch can return to.
// gpu_switch(&save, context)     saves the present context and continues `context`.
// gpu::new_context(stack, bytes, entry)   makes the context of a function that has not run yet, on that stack.
#pragma once

#include "language.h"

extern "C" {
__attribute__((visibility("hidden"))) void gpu_switch(void **save, void *load);
__attribute__((visibility("hidden"))) void gpu_enter(void **save, void (*function)());
}

#if defined(__x86_64__) && defined(__linux__)

asm(R"(
.text
.hidden gpu_switch
.type gpu_switch,@function
gpu_switch:
  pushq %rbx
  pushq %rbp
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
gpu_resume:
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbp
  popq %rbx
  ret
.size gpu_switch,.-gpu_switch
.hidden gpu_enter
.type gpu_enter,@function
gpu_enter:
  pushq %rbx
  pushq %rbp
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  subq $8, %rsp
  callq *%rsi
  addq $8, %rsp
  jmp gpu_resume
.size gpu_enter,.-gpu_enter
)");

namespace gpu {
inline void *new_context(char *stack, size_t bytes, void (*entry)()) {
  // Above the six saved registers lies the address that `ret` takes; at entry the stack pointer must be 8 below a
  // multiple of 16, as after a call.
  void **sp = reinterpret_cast<void **>(reinterpret_cast<size_t>(stack + bytes) & ~size_t(15)) - 2;
  sp[0] = reinterpret_cast<void *>(entry);
  for (int i = 1; i <= 6; ++i) sp[-i] = nullptr;
  return sp - 6;
}
}  // namespace gpu

#elif defined(__aarch64__) && defined(__linux__)

asm(R"(
.text
.hidden gpu_switch
.type gpu_switch,%function
gpu_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
gpu_resume:
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size gpu_switch,.-gpu_switch
.hidden gpu_enter
.type gpu_enter,%function
gpu_enter:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  blr x1
  b gpu_resume
.size gpu_enter,.-gpu_enter
)");

namespace gpu {
inline void *new_context(char *stack, size_t bytes, void (*entry)()) {
  void **sp = reinterpret_cast<void **>(reinterpret_cast<size_t>(stack + bytes) & ~size_t(15)) - 20;
  for (int i = 0; i < 20; ++i) sp[i] = nullptr;
  sp[11] = reinterpret_cast<void *>(entry);  // x30, where `ret` goes
  return sp;
}
}  // namespace gpu

#else

#include <ucontext.h>

// A context is the address of a ucontext_t; that of a function that has not run lies at the low end of its stack.
extern "C" inline void gpu_switch(void **save, void *load) {
  ucontext_t here;
  *save = &here;
  swapcontext(&here, static_cast<ucontext_t *>(load));
}
extern "C" inline void gpu_enter(void **save, void (*function)()) {
  volatile bool entered = false;
  ucontext_t here;
  *save = &here;
  getcontext(&here);  // a later gpu_switch to it arrives here, too
  if (entered) return;
  entered = true;
  function();
}

namespace gpu {
inline void *new_context(char *stack, size_t bytes, void (*entry)()) {
  ucontext_t *context = reinterpret_cast<ucontext_t *>((reinterpret_cast<size_t>(stack) + 63) & ~size_t(63));
  getcontext(context);
  context->uc_stack.ss_sp = context + 1;
  context->uc_stack.ss_size = static_cast<size_t>(stack + bytes - reinterpret_cast<char *>(context + 1));
  context->uc_link = nullptr;
  makecontext(context, entry, 0);
  return context;
}
}  // namespace gpu

#endif
