// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/start_watch.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "core/start_thread.h"

namespace lockstep {

StartWatch::StartWatch(Options options, Say notice, Say expired) : options_(std::move(options)) {
  const double limit = options_.limit_seconds, first = options_.notice_seconds;
  const bool gives_notice = first > 0 && (limit <= 0 || first < limit);
  if (limit <= 0 && !gives_notice) return;
  thread_ = start_thread(
      "thread that watches the start",
      [this, limit, first, gives_notice, notice = std::move(notice), expired = std::move(expired)] {
        if (gives_notice) {
          if (!wait_until(first)) return;
          notice(fmt::format(
              "warning: {}: another rank is slow, is stopped, or was not started; {}\n", wait_text(first),
              limit > 0 ? fmt::format("the run ends after {:g} s (comm.start_timeout_seconds)", limit)
                        : std::string("this may take any time (comm.start_timeout_seconds: 0)")));
        }
        if (limit <= 0 || !wait_until(limit)) return;
        expired(
            fmt::format("error: {}: another rank is stopped, or was not started; the run ends here\n  Look "
                        "at the hosts of the "
                        "run. comm.start_timeout_seconds sets this limit.\n",
                        wait_text(limit)));
      });
}

bool StartWatch::wait_until(double seconds) {
  const auto end = begin_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                std::chrono::duration<double>(seconds));
  std::unique_lock lock(mutex_);
  return !wake_.wait_until(lock, end, [&] { return done_; });
}

std::string StartWatch::wait_text(double seconds) {
  const std::lock_guard lock(mutex_);
  return fmt::format("{} has waited {:.0f} s in '{}' while the run starts", options_.who, seconds, phase_);
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
