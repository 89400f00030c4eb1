// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Fibers: functions with stacks of their own that one host thread runs in turns.
#pragma once

#include <cstddef>

namespace lockstep::emulation {

/// A stack, and where the function on it stands. Not movable: its address is on its stack.
class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// The next resume() calls entry(argument) from its beginning.
  void start(void (*entry)(void*), void* argument);
  /// Runs until the function suspends itself or returns; true when it has returned.
  bool resume();
  /// Called by the function that runs on this fiber: back to resume()'s caller.
  void suspend();

 private:
  static void run(Fiber* self);
  static constexpr std::size_t kStackBytes = std::size_t{256} << 10;

  char* stack_;
  void* own_ = nullptr;     ///< the function's stack pointer, while suspended
  void* caller_ = nullptr;  ///< resume()'s, while running
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
  bool finished_ = true;
  // For AddressSanitizer, which follows stacks.
  void* fake_stack_ = nullptr;
  const void* caller_stack_ = nullptr;
  std::size_t caller_stack_bytes_ = 0;
};

}  // namespace lockstep::emulation
