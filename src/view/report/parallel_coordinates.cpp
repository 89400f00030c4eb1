// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/report/parallel_coordinates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "core/scalar.h"
#include "view/plot/chart.h"
#include "view/plot/label_text.h"
#include "view/report/html.h"

namespace lockstep::report {

namespace {

constexpr double kHeight = 380, kTop = 46, kBottom = 18, kLeastSide = 40, kBetween = 150, kLeastWidth = 420;
constexpr double kTick = 8, kApart = 12, kMargin = 4, kWidestTick = 150;
// Settings are spread over decades on purpose; a result that is not usually has a trial that diverged.
constexpr double kLogFactor = 20, kResultLogFactor = 1000, kTickDistance = 14;
constexpr std::size_t kFewValues = 6;

struct Tick {
  double y;
  std::string text;
};

/// Where the values of an axis are.
struct Scale {
  std::vector<double> y;  ///< by line; NaN: none
  std::vector<Tick> ticks;
};

double at_share(double share) { return kHeight - kBottom - share * (kHeight - kTop - kBottom); }

Scale number_scale(const CoordinateAxis& axis, const std::vector<std::optional<double>>& numbers) {
  double low = INFINITY, high = -INFINITY;
  for (const auto& number : numbers)
    if (number) {
      low = std::min(low, *number);
      high = std::max(high, *number);
    }
  const bool is_log = low > 0 && high / low > (axis.is_result ? kResultLogFactor : kLogFactor);
  const auto place = [&](double value) { return is_log ? std::log10(value) : value; };
  const double from = place(low), to = place(high);
  const auto y = [&](double value) {
    const double share = to > from ? (place(value) - from) / (to - from) : 0.5;
    return at_share(axis.smaller_is_better ? 1 - share : share);
  };
  Scale scale;
  for (const auto& number : numbers) scale.y.push_back(number ? y(*number) : std::nan(""));
  const auto add = [&](const std::vector<double>& values) {
    const std::vector<std::string> texts = tick_texts(values);
    for (std::size_t i = 0; i < values.size(); ++i)
      if (std::ranges::all_of(
              scale.ticks, [&](const Tick& tick) { return std::abs(tick.y - y(values[i])) > kTickDistance; }))
        scale.ticks.push_back({y(values[i]), texts[i]});
  };
  std::set<double> different;
  std::size_t count = 0;
  for (const auto& number : numbers)
    if (number) {
      ++count;
      different.insert(*number);
    }
  // Values that recur are choices: no others lie between.
  if (count == 0) return scale;
  if (!axis.is_result && different.size() <= kFewValues && different.size() < count) {
    for (const double value : different) add({value});
  } else if (!(to > from)) {
    add({low});
  } else if (is_log) {
    add({low});
    add({high});
    for (double power = std::ceil(from); power <= to; ++power) add({std::pow(10, power)});
  } else {
    add(round_ticks(from, to, 6, 0));
  }
  return scale;
}

Scale name_scale(const CoordinateAxis& axis) {
  std::vector<std::string> names;
  for (const std::string& value : axis.values)
    if (!value.empty() && std::ranges::find(names, value) == names.end()) names.push_back(value);
  const auto y = [&](const std::string& value) {
    const auto place = static_cast<double>(std::ranges::find(names, value) - names.begin());
    return at_share((place + 0.5) / static_cast<double>(names.size()));
  };
  Scale scale;
  for (const std::string& value : axis.values) scale.y.push_back(value.empty() ? std::nan("") : y(value));
  for (const std::string& name : names)
    if (scale.ticks.empty() || std::abs(scale.ticks.back().y - y(name)) > kTickDistance)
      scale.ticks.push_back({y(name), name});
  return scale;
}

/// Axes of numbers that are results may have some that are not finite; these count as none.
Scale scale_of(const CoordinateAxis& axis) {
  std::vector<std::optional<double>> numbers;
  bool all_numbers = true;
  for (const std::string& value : axis.values) {
    numbers.push_back(parse_real(value));
    all_numbers = all_numbers && (numbers.back() || value.empty());
    if (numbers.back() && !std::isfinite(*numbers.back())) numbers.back().reset();
  }
  return all_numbers || axis.is_result ? number_scale(axis, numbers) : name_scale(axis);
}

/// Where the axes are, so that labels fit: ticks are on the left of an axis, those of the last one on its
/// right; names are above, in two lines by turns.
struct Columns {
  std::vector<double> x;
  std::vector<std::string> names;
  double width = 0;
};

double widest_tick(const Scale& scale) {
  double widest = 0;
  for (const Tick& tick : scale.ticks) widest = std::max(widest, text_width(tick.text));
  return widest;
}

Columns columns_of(const std::vector<CoordinateAxis>& axes, std::vector<Scale>& scales) {
  Columns columns;
  double between = kBetween;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    for (Tick& tick : scales[i].ticks) tick.text = fitted(tick.text, kWidestTick);
    if (i > 0 && i + 1 < axes.size()) between = std::max(between, widest_tick(scales[i]) + kTick + kApart);
  }
  double left = widest_tick(scales.front()) + kTick, right = widest_tick(scales.back()) + kTick;
  for (const CoordinateAxis& axis : axes)
    columns.names.push_back(fitted(axis.name, 2 * between - kApart, kLabelPixels, true));
  const auto half = [&](std::size_t i) { return text_width(columns.names[i], kLabelPixels, true) / 2; };
  // A name of the second line may reach farther than its axis, too.
  for (std::size_t i = 0; i < axes.size(); ++i) {
    left = std::max(left, half(i) - static_cast<double>(i) * between);
    right = std::max(right, half(i) - static_cast<double>(axes.size() - 1 - i) * between);
  }
  left = std::max(left, kLeastSide) + kMargin;
  right = std::max(right, kLeastSide) + kMargin;
  const double gaps = static_cast<double>(axes.size() - 1);
  columns.width = std::max(kLeastWidth, left + right + between * gaps);
  for (std::size_t i = 0; i < axes.size(); ++i)
    columns.x.push_back(gaps == 0 ? columns.width / 2
                                  : left + static_cast<double>(i) * (columns.width - left - right) / gaps);
  return columns;
}

}  // namespace

std::string parallel_coordinates(const std::vector<CoordinateAxis>& axes,
                                 const std::vector<CoordinateLine>& lines) {
  std::vector<Scale> scales;
  for (const CoordinateAxis& axis : axes) scales.push_back(scale_of(axis));
  const Columns columns = columns_of(axes, scales);
  const auto x = [&](std::size_t axis) { return columns.x[axis]; };
  std::string svg = fmt::format(
      "<svg class=\"parallel\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" role=\"img\" "
      "aria-label=\"parallel coordinates of the trials\">",
      columns.width, kHeight);
  std::vector<std::size_t> order(lines.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {},
                           [&](std::size_t i) { return lines[i].goodness + (lines[i].is_best ? 1 : 0); });
  for (const std::size_t i : order) {  // the best is drawn last, above the others
    std::string path;
    for (std::size_t axis = 0; axis < axes.size(); ++axis)
      if (const double y = scales[axis].y[i]; std::isfinite(y))
        path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? 'M' : 'L', x(axis), y);
    if (path.empty()) continue;
    svg += fmt::format(
        "<path class=\"curve {}\" d=\"{}\" "
        "style=\"stroke-opacity:{:.2f};stroke-width:{}\"{}><title>{}</title></path>",
        lines[i].is_best ? "c1" : "c0", path, lines[i].is_best ? 1 : 0.15 + 0.7 * lines[i].goodness,
        lines[i].is_best ? 3 : 1.6, lines[i].is_dashed ? " stroke-dasharray=\"5 4\"" : "",
        escaped(lines[i].label));
  }
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    svg += fmt::format("<path class=\"axis\" d=\"M{0:.1f} {1:.0f}V{2:.0f}\"/>", x(axis), kTop,
                       kHeight - kBottom);
    const bool is_cut = columns.names[axis] != axes[axis].name;
    svg += fmt::format(
        "<g>{}<text class=\"name\" x=\"{:.1f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text></g>",
        is_cut ? fmt::format("<title>{}</title>", escaped(axes[axis].name)) : "", x(axis),
        axis % 2 == 0 ? kTop - 30 : kTop - 14, escaped(columns.names[axis]));
    const bool is_last = axis + 1 == axes.size() && axis > 0;
    for (const Tick& tick : scales[axis].ticks)
      svg += fmt::format(
          "<path class=\"axis\" d=\"M{:.1f} {:.1f}h{}\"/><text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" "
          "text-anchor=\"{}\">{}</text>",
          x(axis), tick.y, is_last ? 5 : -5, x(axis) + (is_last ? kTick : -kTick), tick.y + 4,
          is_last ? "start" : "end", escaped(tick.text));
  }
  return svg + "</svg>";
}

}  // namespace lockstep::report
