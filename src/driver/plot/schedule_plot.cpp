// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/plot/schedule_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/scalar.h"
#include "session/run_names.h"
#include "session/terminal.h"

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

/// The locale of characters, as setlocale(3) finds it.
bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string text(value);
    for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    return text.find("utf-8") != std::string::npos || text.find("utf8") != std::string::npos;
  }
  return false;
}

int columns_of_output() {
  constexpr int kUsual = 80, kLeast = 40, kMost = 240;
  int columns = kUsual;
  if (const auto width =
          terminal_width_of(stdout, [](const char* name) -> const char* { return std::getenv(name); }))
    columns = width();
  else if (const char* const variable = std::getenv("COLUMNS"))
    columns =
        static_cast<int>(std::clamp<std::int64_t>(parse_integer(variable).value_or(kUsual), kLeast, kMost));
  return std::clamp(columns, kLeast, kMost);
}

}  // namespace

std::vector<Chart> schedule_charts(const RunSchedules& schedules, const ScheduleRun& run) {
  std::vector<Chart> charts;
  for (const ScheduledNumber* number : schedules.numbers())
    charts.push_back({.title = title_of(*number),
                      .value = [number](std::int64_t step) { return number->at(step); },
                      .steps = run.steps,
                      .steps_per_epoch = run.steps_per_epoch});
  return charts;
}

std::string schedule_summary(const RunSchedules& schedules, const ScheduleRun& run) {
  std::string text;
  for (const ScheduledNumber* number : schedules.numbers()) {
    if (number->schedule().empty()) continue;
    const Chart chart{"", [number](std::int64_t step) { return number->at(step); }, run.steps, 0};
    double most = number->at(0);
    for (const ChartColumn& column : chart_columns(chart, 256)) most = std::max(most, column.most);
    text += fmt::format(
        "{:<17} {}{}: {:.6g} in the first step, at most {:.6g}, {:.6g} in the last\n", number->option(),
        number->schedule(),
        number->warmup_steps() > 0 ? fmt::format(" after {} steps of warm-up", number->warmup_steps()) : "",
        number->at(0), most, number->at(std::max<std::int64_t>(run.steps - 1, 0)));
  }
  return text;
}

void print_charts(const std::vector<Chart>& charts) {
  const int width = columns_of_output();
  const bool unicode = locale_is_utf8();
  for (const Chart& chart : charts) fmt::print("\n{}", text_chart(chart, width, unicode));
  fmt::print("\n");
}

}  // namespace lockstep
