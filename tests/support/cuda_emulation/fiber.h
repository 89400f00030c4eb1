// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Fibers: functions with their own stacks, scheduled cooperatively by one host thread.
#pragma once

#include <cstddef>

namespace lockstep::emulation {

/// A stack and the execution state of its function. Not movable: its address is on its stack.
class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Sets the function: the next resume() calls entry(argument).
  void start(void (*entry)(void*), void* argument);
  /// Runs until the function suspends itself or returns. Returns true if it has returned.
  bool resume();
  /// Called by the function on this fiber: returns control to resume()'s caller.
  void suspend();

 private:
  static void run(Fiber* self);
  static constexpr std::size_t kStackBytes = std::size_t{256} << 10;

  char* stack_;
  void* own_ = nullptr;     ///< the function's stack pointer, while suspended
  void* caller_ = nullptr;  ///< the stack pointer of resume()'s caller, while running
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
  bool finished_ = true;
  // For AddressSanitizer, which tracks stacks.
  void* fake_stack_ = nullptr;
  const void* caller_stack_ = nullptr;
  std::size_t caller_stack_bytes_ = 0;
};

}  // namespace lockstep::emulation
