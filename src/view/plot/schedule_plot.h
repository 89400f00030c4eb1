// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep check --plot-schedule`: what the numbers that follow a schedule do in the steps of the run.
#pragma once

#include <string>
#include <vector>

#include "train/run_schedules.h"
#include "view/plot/chart.h"

namespace lockstep {

/// The learning rate, and each other number that follows a schedule. `schedules` have begun with `run`, and
/// outlive the charts.
std::vector<Chart> schedule_charts(const RunSchedules& schedules, const ScheduleRun& run);
/// One line per schedule for `lockstep check`: its first, largest and last value.
std::string schedule_summary(const RunSchedules& schedules, const ScheduleRun& run);

/// Prints charts to standard output, as wide as its terminal.
void print_charts(const std::vector<Chart>& charts);

}  // namespace lockstep
