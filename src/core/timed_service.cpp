// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/timed_service.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/error.h"
#include "core/thread_ban.h"

namespace lockstep {

namespace {
constexpr double kLongestInterval = 1e8;  // three years
}

FixedGrid::FixedGrid(Clock::time_point start, double interval_seconds, bool run_at_start)
    : start_(start),
      interval_(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(interval_seconds))),
      point_(run_at_start ? 0 : 1) {}

void FixedGrid::ran(Clock::time_point now) {
  if (interval_ <= Clock::duration::zero()) {
    start_ = now;
    return;
  }
  const Clock::duration since = now - start_;
  const std::int64_t not_past = since / interval_ + (since % interval_ > Clock::duration::zero() ? 1 : 0);
  const std::int64_t next = std::max(point_ + 1, not_past);
  skipped_ += next - point_ - 1;
  point_ = next;
}

struct TimedService::Counts {
  std::atomic<std::int64_t> runs{0}, skipped{0};
};

std::int64_t TimedService::runs() const { return counts_ ? counts_->runs.load() : 0; }
std::int64_t TimedService::skipped() const { return counts_ ? counts_->skipped.load() : 0; }

TimedService loop(Coordinator& coordinator, double seconds, std::function<void()> function,
                  TimedServiceOptions options) {
  LOCKSTEP_REQUIRE(0 <= seconds && seconds <= kLongestInterval, ErrorKind::config,
                   "the interval of the service '{}' is {} s: it must be from 0 to {:g}", options.name,
                   seconds, kLongestInterval);
  TimedService service;
  if (options.runs_on == RunsOn::chief && options.rank != 0) return service;
  service.counts_ = std::make_shared<TimedService::Counts>();
  const auto grid = std::make_shared<FixedGrid>(FixedGrid::Clock::now(), seconds, options.run_at_start);
  const auto once = [counts = service.counts_, run = std::move(function), grid] {
    run();
    ++counts->runs;
    grid->ran(FixedGrid::Clock::now());
    counts->skipped = grid->skipped();
  };
  if (ThreadBan::active()) {
    const auto if_due = [once, grid] {
      if (FixedGrid::Clock::now() >= grid->next()) once();
    };
    if (options.run_at_start) if_due();
    coordinator.add_turn(options.name, if_due);
    return service;
  }
  coordinator.start_thread(options.name, [&coordinator, once, grid] {
    while (!coordinator.wait_for_stop_until(grid->next())) once();
  });
  return service;
}

}  // namespace lockstep
