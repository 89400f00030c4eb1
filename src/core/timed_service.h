// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A timed service: a thread that runs a function every so many seconds, on a fixed grid, until the
// coordinator stops.
//
// The grid begins when the service does: its runs begin at start + k * interval and do not drift. A run that
// takes longer than the interval makes the service skip the grid points that it covers; they are counted, and
// never made up for. Each rank has its own clock: a service must not communicate.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/coordinator.h"

namespace lockstep {

/// The points in time start + k * interval. Knows no clock: the caller says what time it is.
class FixedGrid {
 public:
  using Clock = std::chrono::steady_clock;
  /// `interval_seconds` 0: every point in time is on the grid.
  FixedGrid(Clock::time_point start, double interval_seconds, bool run_at_start);
  /// When to run next.
  Clock::time_point next() const { return start_ + point_ * interval_; }
  /// The run of that point has ended now: goes on to the first point behind it that is not past.
  void ran(Clock::time_point now);
  std::int64_t skipped() const { return skipped_; }

 private:
  Clock::time_point start_;
  Clock::duration interval_;
  std::int64_t point_ = 0, skipped_ = 0;
};

enum class RunsOn { chief, all_ranks };

struct TimedServiceOptions {
  std::string name = "timed service";
  bool run_at_start = false;  ///< the first run at once, not after one interval
  RunsOn runs_on = RunsOn::all_ranks;
  int rank = 0;  ///< of this process; on ranks other than 0 a chief's service does not start
};

/// Looks at a service; the service itself goes on without this object.
class TimedService {
 public:
  bool started() const { return counts_ != nullptr; }
  std::int64_t runs() const;
  std::int64_t skipped() const;

 private:
  struct Counts;
  friend TimedService loop(Coordinator&, double, std::function<void()>, TimedServiceOptions);
  std::shared_ptr<Counts> counts_;
};

/// Starts a service: `function` every `seconds`; 0: again as soon as it has ended. A stop ends the wait at
/// once, and a run when it is done: a long one asks coordinator.should_stop(). An exception stops all and
/// carries the service's name. `function` is called by one thread; what it refers to outlives join().
TimedService loop(Coordinator& coordinator, double seconds, std::function<void()> function,
                  TimedServiceOptions options = {});

}  // namespace lockstep
