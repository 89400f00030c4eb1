// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A rank's compute threads: created once, never more than the cores it may use. The calling thread is thread
// 0.
//
// run() gives every thread the same function and returns when all are done. Waiting threads first spin (a
// step has hundreds of short phases), then sleep; with more threads than cores they sleep at once.
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
  /// `threads` >= 1. Each thread keeps its OpenMP thread count at one (oneDNN would otherwise start a team).
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return size_; }

  /// Calls function(thread) on every thread, 0 <= thread < size(), and waits for all. If some throw, the
  /// exception of the lowest thread is rethrown here, after all have ended. Not reentrant.
  void run(FunctionRef<void(int thread)> function);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  int size_;
};

/// The part of `count` items that falls to `part` of `parts`, cut at multiples of `grain`: [first, last).
struct Range {
  std::int64_t first, last;
  std::int64_t size() const { return last - first; }
};
Range part_of(std::int64_t count, int part, int parts, std::int64_t grain = 1);

}  // namespace lockstep
