// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Learning-rate schedules: the rate is a function of the global step alone, computed in double.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "core/params.h"

namespace lockstep {

class Schedule {
 public:
  virtual ~Schedule() = default;
  /// The rate of the update after which the global step is `step` + 1; the first update has step 0.
  virtual double rate(std::int64_t step) const = 0;
};

struct ScheduleEntry {
  std::string_view name, help;
  std::span<const ParamSpec> table;
  std::unique_ptr<Schedule> (*make)(const Params&);
};
std::span<const ScheduleEntry> schedule_table();

/// A number is a constant rate; otherwise a map of a schedule's name to its options.
std::unique_ptr<Schedule> make_schedule(const Node& node);

}  // namespace lockstep
