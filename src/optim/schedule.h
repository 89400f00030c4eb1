// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Schedules: a number of the run, such as the learning rate, as a function of time. A schedule is one file in
// schedules/: a class with a formula, its table of options, and an entry that schedule_table.cpp lists.
// Formulas are computed in double, in the order in which their source computes them.
//
// Time is counted in the unit that the configuration names (steps, epochs or samples); what is common to all
// schedules (units, warm-up, scaling with the batch) is in scheduled_number.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "config/params.h"
#include "config/table.h"
#include "core/run_clock.h"

namespace lockstep {

/// What a schedule may know of a run. The same on all ranks.
struct ScheduleRun {
  std::int64_t steps = 0;  ///< of the whole run
  RunClock clock = {};     ///< for times in epochs and samples, and the samples of the global batch
  std::uint64_t seed = 0;
};

/// The part of a schedule that follows a metric of evaluations.
class MetricFollower {
 public:
  virtual ~MetricFollower() = default;
  /// "loss", "accuracy" or a metric of eval.metrics, with or without "eval/".
  virtual const std::string& metric() const = 0;
  virtual bool larger_is_better() const = 0;
  /// An evaluation gave `value`. Returns a line for the log if the schedule's value changes because of it.
  virtual std::optional<std::string> observe(double value) = 0;
  /// What checkpoints keep. The numbers live as long as the schedule; their count is fixed.
  virtual std::span<double> state() = 0;
  /// How many of them, the first ones, are valid whatever metric is followed: they say where the value is.
  virtual std::size_t lasting_state() const = 0;
};

class Schedule {
 public:
  virtual ~Schedule() = default;
  /// The value at `time` >= 0; the first update of the run, or the first one after a warm-up, has time 0.
  /// The same on all ranks.
  virtual double at(double time) const = 0;
  /// Called once before a run, for schedules that need more than the time. `option` is the number's name.
  virtual void begin(const ScheduleRun&, std::string_view /*option*/) {}
  /// The follower of a metric; null: the schedule depends on time alone.
  virtual MetricFollower* follower() { return nullptr; }
  /// The schedule's time at the end of the run, in its unit and after its warm-up; the largest double if the
  /// run ends before the schedule begins. Called after begin(), for schedules with ScheduleEntry::end_option.
  virtual void set_end(double /*time*/) {}
};

struct ScheduleEntry {
  std::string_view name, help;
  std::span<const ParamSpec> table;  ///< in addition to common_schedule_table()
  std::unique_ptr<Schedule> (*make)(const Params&);
  bool follows_metric = false;  ///< follower() is not null
  /// The option that is the end of the run if it is null; empty: there is none.
  std::string_view end_option = {};
};

/// Lockstep's own schedules, then those that add() added.
Table<ScheduleEntry>& schedule_table();
/// The options that every schedule takes in addition to its own: unit, warmup, scaling, base_batch.
std::span<const ParamSpec> common_schedule_table();
inline constexpr std::string_view kUnitOption = "unit";

}  // namespace lockstep
