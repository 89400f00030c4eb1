// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A curve over the steps of a run, as text for a terminal or as SVG. No files, no MPI.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "view/terminal/text_style.h"

namespace lockstep {

/// A number that grows by the same factor from each step to the next.
struct GrowingNumber {
  std::string name;  ///< "learning rate"
  double first, last;
};

struct Chart {
  std::string title;
  std::function<double(std::int64_t step)> value;
  std::int64_t steps = 1;                     ///< steps 0 to steps - 1 are drawn
  std::int64_t steps_per_epoch = 0;           ///< 0: not known
  std::optional<GrowingNumber> growing = {};  ///< what the axis shows instead of the steps
};

/// What a curve does inside one column of a drawing.
struct ChartColumn {
  double first, least, most, last;
};
/// The curve cut into `count` columns. Looks at every step of short runs, and at a bounded number of others.
std::vector<ChartColumn> chart_columns(const Chart& chart, int count);

/// An axis from `low` to `high` with ticks at round numbers.
struct ChartAxis {
  double low = 0, high = 1;
  std::vector<double> ticks;
};
/// The axis of values. It begins at 0 unless the values are far above it, and has about `wanted` ticks.
ChartAxis value_axis(std::span<const ChartColumn> columns, int wanted);
ChartAxis step_axis(const Chart& chart, int wanted);
/// The text of a tick of step_axis(): the step, or the number that grows.
std::string step_text(const Chart& chart, double step);
/// About `wanted` ticks at multiples of 1, 2 or 5 times a power of ten, of at least `least`, that lie in
/// [low, high].
std::vector<double> round_ticks(double low, double high, int wanted, double least);
std::string tick_text(double value);
/// The texts of the ticks of one axis, with as many digits as tell them apart: "0.99998", "1". With
/// `suffixes`, 40000 is "40k" and 1500000 "1.5M".
std::vector<std::string> tick_texts(std::span<const double> ticks, bool suffixes = false);

/// Lines for a terminal (text_plot.h).
std::string text_chart(const Chart& chart, const TextStyle& style);
/// A whole SVG file with one chart above the other, for light and dark backgrounds.
std::string svg_charts(std::span<const Chart> charts, const std::string& title);

}  // namespace lockstep
