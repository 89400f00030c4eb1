// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/plot/chart.h"
#include "core/plain_nan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lockstep {

namespace {

/// 1, 2 or 5 times a power of ten, at least `least`.
double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

double last_step_of(const Chart& chart) {
  return static_cast<double>(std::max<std::int64_t>(chart.steps - 1, 1));
}

/// Logarithms of round numbers from 10^low to 10^high: of powers of ten, or of 1, 2 and 5 times them if there
/// would be hardly any.
std::vector<double> logarithmic_ticks(double low, double high, int wanted) {
  constexpr double kLeastDecades = 2.5;
  if (high - low > kLeastDecades) return round_ticks(low, high, wanted, 1);
  std::vector<double> ticks;
  for (double decade = std::floor(low); decade <= high; ++decade)
    for (const double factor : {1.0, 2.0, 5.0})
      if (const double tick = decade + std::log10(factor); tick >= low - 1e-9 && tick <= high + 1e-9)
        ticks.push_back(tick);
  return ticks;
}

/// With `digits` significant ones.
std::string digits_text(double value, int digits, bool suffixes) {
  if (std::abs(value) < 1e-300) value = 0;
  const double size = std::abs(value);
  if (suffixes && size >= 1e4 && size < 1e6) return fmt::format("{:.{}g}k", value / 1e3, digits);
  if (suffixes && size >= 1e6 && size < 1e9) return fmt::format("{:.{}g}M", value / 1e6, digits);
  return fmt::format("{:.{}g}", plain_nan(value), digits);
}

}  // namespace

std::vector<ChartColumn> chart_columns(const Chart& chart, int count) {
  constexpr std::int64_t kMostLooks = 32;
  const std::int64_t last_step = std::max<std::int64_t>(chart.steps - 1, 0);
  const auto begin_of = [&](int column) {
    return static_cast<std::int64_t>(static_cast<double>(last_step) * column / count);
  };
  std::vector<ChartColumn> columns;
  for (int i = 0; i < count; ++i) {
    const std::int64_t begin = begin_of(i), end = std::max(begin, begin_of(i + 1));
    const double first = chart.value(begin);
    ChartColumn column{first, first, first, first};
    const std::int64_t looks = std::min(end - begin, kMostLooks);
    for (std::int64_t look = 1; look <= looks; ++look) {
      column.last = chart.value(begin + (end - begin) * look / looks);
      column.least = std::min(column.least, column.last);
      column.most = std::max(column.most, column.last);
    }
    columns.push_back(column);
  }
  return columns;
}

ChartAxis value_axis(std::span<const ChartColumn> columns, int wanted) {
  double low = columns[0].least, high = columns[0].most;
  for (const ChartColumn& column : columns) {
    low = std::min(low, column.least);
    high = std::max(high, column.most);
  }
  if (low >= 0 && low <= 0.5 * high) low = 0;
  if (high - low < 1e-6 * std::abs(high)) low = high > 0 ? 0 : low - 1;  // a flat line
  if (!(high > low)) high = low + 1;
  const double step = round_step((high - low) / wanted);
  ChartAxis axis{std::floor(low / step + 1e-9) * step, std::ceil(high / step - 1e-9) * step, {}};
  for (double i = std::round(axis.low / step); i * step <= axis.high + step / 2; ++i)
    axis.ticks.push_back(i * step);
  return axis;
}

ChartAxis step_axis(const Chart& chart, int wanted) {
  const double last = last_step_of(chart);
  if (!chart.growing) return {0, last, round_ticks(0, last, wanted, 1)};
  const double low = std::log10(chart.growing->first), high = std::log10(chart.growing->last);
  ChartAxis axis{0, last, {}};
  for (const double logarithm : logarithmic_ticks(low, high, wanted))
    axis.ticks.push_back((logarithm - low) / (high - low) * last);
  return axis;
}

std::string step_text(const Chart& chart, double step) {
  if (!chart.growing) return fmt::format("{:.0f}", step);
  const auto& [name, first, last] = *chart.growing;
  return fmt::format("{:.3g}", first * std::pow(last / first, step / last_step_of(chart)));
}

std::vector<double> round_ticks(double low, double high, int wanted, double least) {
  const double step = std::max(least, round_step((high - low) / wanted));
  std::vector<double> ticks;
  for (double i = std::ceil(low / step - 1e-9) + 0.0; i * step <= high + 1e-9 * step; ++i)
    ticks.push_back(i * step);
  return ticks;
}

std::string tick_text(double value) { return digits_text(value, 4, false); }

std::vector<std::string> tick_texts(std::span<const double> ticks, bool suffixes) {
  constexpr int kLeastDigits = 4, kMostDigits = 15;
  constexpr double kOff = 0.01;  // of the distance between ticks
  if (ticks.empty()) return {};
  const double step = ticks.size() > 1 ? std::abs(ticks[1] - ticks[0]) : std::abs(ticks[0]);
  const auto exact = [&](int digits) {
    return std::ranges::all_of(ticks, [&](double tick) {
      return std::abs(std::stod(fmt::format("{:.{}g}", tick, digits)) - tick) <= kOff * step;
    });
  };
  int digits = kLeastDigits;
  while (digits < kMostDigits && !exact(digits)) ++digits;
  std::vector<std::string> texts;
  for (const double tick : ticks) texts.push_back(digits_text(tick, digits, suffixes));
  return texts;
}

}  // namespace lockstep
