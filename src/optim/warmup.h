// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The warm-up of a schedule, and units of time. A warm-up multiplies the schedule's values by a factor that
// rises to 1.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "config/params.h"
#include "config/table.h"
#include "optim/schedule.h"

namespace lockstep {

enum class TimeUnit { steps, epochs, samples };
inline constexpr OptionRange kTimeUnits = one_of("steps|epochs|samples");
/// The time at which the update of `step` takes place: steps, epochs (with their fraction) or samples done
/// before it.
double time_of(TimeUnit unit, std::int64_t step, const ScheduleRun& run);

struct WarmUp {
  /// The factor at a share x of the warm-up, 0 <= x < 1, which begins with the factor `start`.
  double (*shape)(double x, double start) = nullptr;
  double length = 0, start_factor = 0;
  TimeUnit unit = TimeUnit::steps;
  /// The schedule's time runs during the warm-up too. False: it begins after it, and the warm-up rises to its
  /// first value.
  bool overlap = false;

  double factor(double time) const { return shape(time / length, start_factor); }
};

struct WarmUpEntry {
  std::string_view name, help;
  std::span<const ParamSpec> table;
  double (*shape)(double x, double start);
};
/// Lockstep's own warm-ups, then those that add() added.
Table<WarmUpEntry>& warmup_table();

/// `node`: one of warmup_table() with its options. Its time is in `unit` unless it names another one.
WarmUp make_warmup(const Node& node, TimeUnit unit);

}  // namespace lockstep
