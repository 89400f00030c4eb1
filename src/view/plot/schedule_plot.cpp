// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/plot/schedule_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "core/shown_text.h"
#include "session/run_names.h"
#include "view/terminal/text_style.h"

namespace lockstep {

namespace {

std::string title_of(const ScheduledNumber& number) {
  std::string title = number.option();
  if (!number.schedule().empty()) title += ": " + number.schedule();
  if (number.warmup_steps() > 0) title += fmt::format(", {} steps of warm-up", number.warmup_steps());
  if (number.follower() != nullptr)
    title += fmt::format(", drawn as if {} always improved", with_split(number.follower()->metric()));
  return title;
}

}  // namespace

std::vector<Chart> schedule_charts(const RunSchedules& schedules, const ScheduleRun& run) {
  std::vector<Chart> charts;
  for (const ScheduledNumber* number : schedules.numbers())
    charts.push_back({.title = title_of(*number),
                      .value = [number](std::int64_t step) { return number->at(step); },
                      .steps = run.steps,
                      .steps_per_epoch = run.clock.shape().steps});
  return charts;
}

std::string schedule_summary(const RunSchedules& schedules, const ScheduleRun& run) {
  std::string text;
  for (const ScheduledNumber* number : schedules.numbers()) {
    if (number->schedule().empty()) continue;
    const Chart chart{"", [number](std::int64_t step) { return number->at(step); }, run.steps, 0};
    double most = number->at(0);
    for (const ChartColumn& column : chart_columns(chart, 256)) most = std::max(most, column.most);
    text += shown_format(
        "{:<17} {}{}: {:.6g} in the first step, at most {:.6g}, {:.6g} in the last\n", number->option(),
        number->schedule(),
        number->warmup_steps() > 0 ? shown_format(" after {} steps of warm-up", number->warmup_steps()) : "",
        number->at(0), most, number->at(std::max<std::int64_t>(run.steps - 1, 0)));
  }
  return text;
}

void print_charts(const std::vector<Chart>& charts) {
  constexpr int kLeast = 40, kMost = 240;
  TextStyle style = style_of_output();
  style.width = std::clamp(style.width, kLeast, kMost);
  for (const Chart& chart : charts) fmt::print("\n{}", text_chart(chart, style));
  fmt::print("\n");
}

}  // namespace lockstep
