// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/in_parallel.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "core/start_thread.h"

namespace lockstep {

namespace {

struct Shared {
  std::mutex mutex;
  std::int64_t next = 0;
  std::int64_t failed = -1;  ///< the lowest index that threw
  std::exception_ptr error;
};

/// All indices below one that throws have been begun, and their threads finish them.
void work_on(Shared& shared, std::int64_t count, FunctionRef<void(std::int64_t)> work) {
  for (;;) {
    std::int64_t mine = 0;
    {
      const std::lock_guard lock(shared.mutex);
      if (shared.error || shared.next >= count) return;
      mine = shared.next++;
    }
    try {
      work(mine);
    } catch (...) {
      const std::lock_guard lock(shared.mutex);
      if (shared.error && shared.failed < mine) return;
      shared.failed = mine;
      shared.error = std::current_exception();
      return;
    }
  }
}

}  // namespace

void in_parallel(int threads, std::int64_t count, FunctionRef<void(std::int64_t i)> work) {
  Shared shared;
  std::vector<std::thread> others;
  const std::int64_t wanted = std::min<std::int64_t>(threads, count);
  try {
    for (std::int64_t thread = 1; thread < wanted; ++thread)
      others.push_back(
          start_thread("reader thread", [&shared, count, work] { work_on(shared, count, work); }));
  } catch (const Error&) {
    // With fewer threads it takes longer.
  }
  work_on(shared, count, work);
  for (std::thread& other : others) other.join();
  if (shared.error) std::rethrow_exception(shared.error);
}

}  // namespace lockstep
