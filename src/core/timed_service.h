// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A timed service: a thread that runs a function at fixed intervals until the coordinator stops.
//
// Runs begin at start + k * interval, where start is the start of the service, and do not drift. A run that
// takes longer than the interval skips the grid points that it covers. Skipped points are counted and not run
// later. Each rank has its own clock, so a service must not communicate.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/coordinator.h"

namespace lockstep {

/// The points in time start + k * interval. It reads no clock: the caller passes the current time.
class FixedGrid {
 public:
  using Clock = std::chrono::steady_clock;
  /// `interval_seconds` 0: every point in time is on the grid.
  FixedGrid(Clock::time_point start, double interval_seconds, bool run_at_start);
  /// The time of the next run.
  Clock::time_point next() const { return start_ + point_ * interval_; }
  /// Records that the run has ended at `now`, and advances to the first later grid point that is not in the
  /// past.
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
  bool run_at_start = false;  ///< run at once, not after one interval
  RunsOn runs_on = RunsOn::all_ranks;
  int rank = 0;  ///< of this process; a service on the chief starts on rank 0 only
};

/// A handle with the counters of a service. The service does not depend on it.
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

/// Starts a service that calls `function` every `seconds` (0: again at once) on one thread. A stop ends the
/// wait at once; a run is not interrupted, so a long one polls coordinator.should_stop(). An exception stops
/// all threads and carries the service's name. Everything that `function` refers to must outlive join().
/// Under a ThreadBan the function runs in Coordinator::take_turns(), when a point in time has passed.
TimedService loop(Coordinator& coordinator, double seconds, std::function<void()> function,
                  TimedServiceOptions options = {});

}  // namespace lockstep
