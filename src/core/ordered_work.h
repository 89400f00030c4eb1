// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Items that threads make side by side, and one thread takes in their order: samples that are decoded and
// written to a file. What is written does not depend on the number of threads.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/start_thread.h"

namespace lockstep {

/// Calls make(i) for 0 <= i < count on `threads` threads of its own, and take(i, item) on the calling thread,
/// in rising order of i. At most 2 x `threads` items exist at a time. If a call throws, no further item is
/// begun, those before it are still taken, and the exception is rethrown: the same on any number of threads,
/// if make(i) alone decides whether it throws.
template <typename Item, typename Make, typename Take>
void ordered_work(int threads, std::int64_t count, Make make, Take take) {
  struct Result {
    Item item;
    std::exception_ptr error;
  };
  std::mutex mutex;
  std::condition_variable made, taken;
  std::map<std::int64_t, Result> results;
  std::int64_t next = 0, room = std::int64_t{2} * threads;  // items below `room` may be begun
  bool stopped = false;

  const auto work = [&] {
    std::unique_lock lock(mutex);
    for (;;) {
      taken.wait(lock, [&] { return stopped || next == count || next < room; });
      if (stopped || next == count) return;
      const std::int64_t mine = next++;
      lock.unlock();
      Result result;
      try {
        result.item = make(mine);
      } catch (...) {
        result.error = std::current_exception();
      }
      lock.lock();
      if (result.error) stopped = true;
      results.emplace(mine, std::move(result));
      made.notify_one();
    }
  };

  struct Threads {
    std::mutex& mutex;
    std::condition_variable& taken;
    bool& stopped;
    std::vector<std::thread> all = {};
    ~Threads() {
      {
        const std::lock_guard lock(mutex);
        stopped = true;
      }
      taken.notify_all();
      for (std::thread& thread : all) thread.join();
    }
  } workers{mutex, taken, stopped};
  for (std::int64_t thread = 0; thread < std::min<std::int64_t>(threads, count); ++thread)
    workers.all.push_back(start_thread("worker thread", work));

  for (std::int64_t i = 0; i < count; ++i) {
    std::unique_lock lock(mutex);
    made.wait(lock, [&] { return results.contains(i); });
    Result result = std::move(results.extract(i).mapped());
    lock.unlock();
    if (result.error) std::rethrow_exception(result.error);
    take(i, result.item);
    lock.lock();
    ++room;
    lock.unlock();
    taken.notify_one();
  }
}

}  // namespace lockstep
