// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The compute threads of a rank. They are created once. The calling thread is thread 0.
//
// run() calls the same function on every thread and returns when all are done. Waiting threads first spin,
// because a step has hundreds of short phases, and then sleep. With more threads than available cores they
// sleep at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "core/function_ref.h"

namespace lockstep {

class ThreadPool {
 public:
  /// `threads` >= 1. Each thread limits its OpenMP team to one thread; otherwise oneDNN would start a team
  /// per call.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return size_; }

  /// Calls function(thread) on every thread, 0 <= thread < size(), and waits for all of them. If several
  /// throw, the exception of the lowest thread is rethrown after all have ended. Not reentrant.
  void run(FunctionRef<void(int thread)> function);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  int size_;
};

}  // namespace lockstep
