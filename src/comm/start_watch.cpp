// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/start_watch.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "core/start_thread.h"

namespace lockstep {

StartWatch::StartWatch(double limit_seconds, std::string who,
                       std::function<void(const std::string&)> expired) {
  if (limit_seconds <= 0) return;
  thread_ = start_thread("thread that watches the start", [this, limit_seconds, who = std::move(who),
                                                           expired = std::move(expired)] {
    std::unique_lock lock(mutex_);
    if (wake_.wait_for(lock, std::chrono::duration<double>(limit_seconds), [&] { return done_; })) return;
    const std::string message = fmt::format(
        "error: {} has waited {:.0f} s in '{}' while the run starts: another rank is stopped, or was not "
        "started; the run ends here\n  Look at the hosts of the run. comm.start_timeout_seconds sets this "
        "limit.\n",
        who, limit_seconds, phase_);
    lock.unlock();
    expired(message);
  });
}

StartWatch::~StartWatch() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void StartWatch::set_phase(const char* phase) {
  const std::lock_guard lock(mutex_);
  phase_ = phase;
}

}  // namespace lockstep
