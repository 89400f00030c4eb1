// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Fiber switches: a dozen instructions on x86-64, swapcontext (with two system calls) elsewhere.
#include "fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace lockstep::emulation {

#if defined(__x86_64__)
extern "C" void lockstep_switch_stack(void** save, void* load);
// Saves the callee-saved registers, changes stacks, restores them.
asm(R"(
.text
.globl lockstep_switch_stack
.type lockstep_switch_stack, @function
lockstep_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size lockstep_switch_stack, .-lockstep_switch_stack
.globl lockstep_fiber_begin
.type lockstep_fiber_begin, @function
lockstep_fiber_begin:
  movq %rbx, %rdi
  call *%r12
  ud2
.size lockstep_fiber_begin, .-lockstep_fiber_begin
.section .note.GNU-stack,"",@progbits
.text
)");
extern "C" void lockstep_fiber_begin();
#else
namespace {
void lockstep_switch_stack(void** save, void* load) {
  ucontext_t here;
  *save = &here;
  swapcontext(&here, static_cast<ucontext_t*>(load));
}
}  // namespace
#endif

Fiber::Fiber() {
  void* memory = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::fputs("emulated GPU: no memory for a fiber's stack\n", stderr);
    std::abort();
  }
  stack_ = static_cast<char*>(memory);
}

Fiber::~Fiber() { munmap(stack_, kStackBytes); }

void Fiber::start(void (*entry)(void*), void* argument) {
  entry_ = entry;
  argument_ = argument;
  finished_ = false;
#if defined(__x86_64__)
  // The values that lockstep_switch_stack pops: r15 r14 r13 r12 rbx rbp, then the return address, after which
  // the stack is 16-byte aligned.
  void** top = reinterpret_cast<void**>(stack_ + kStackBytes - 64);
  *--top = reinterpret_cast<void*>(&lockstep_fiber_begin);
  *--top = nullptr;
  *--top = this;
  *--top = reinterpret_cast<void*>(&Fiber::run);
  for (int i = 0; i < 3; ++i) *--top = nullptr;
  own_ = top;
#else
  auto* context = reinterpret_cast<ucontext_t*>(stack_);  // at the low end of the stack
  getcontext(context);
  context->uc_stack.ss_sp = stack_ + sizeof(ucontext_t);
  context->uc_stack.ss_size = kStackBytes - sizeof(ucontext_t);
  context->uc_link = nullptr;
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  makecontext(context, reinterpret_cast<void (*)()>(+[](unsigned high, unsigned low) {
                run(reinterpret_cast<Fiber*>((static_cast<std::uintptr_t>(high) << 32) | low));
              }),
              2, static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
  own_ = context;
#endif
}

void Fiber::run(Fiber* self) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &self->caller_stack_, &self->caller_stack_bytes_);
#endif
  self->entry_(self->argument_);
  self->finished_ = true;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(nullptr, self->caller_stack_, self->caller_stack_bytes_);
#endif
  lockstep_switch_stack(&self->own_, self->caller_);
}

bool Fiber::resume() {
#if defined(__SANITIZE_ADDRESS__)
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, stack_, kStackBytes);
#endif
  lockstep_switch_stack(&caller_, own_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
  return finished_;
}

void Fiber::suspend() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&fake_stack_, caller_stack_, caller_stack_bytes_);
#endif
  lockstep_switch_stack(&own_, caller_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack_, &caller_stack_, &caller_stack_bytes_);
#endif
}

}  // namespace lockstep::emulation
