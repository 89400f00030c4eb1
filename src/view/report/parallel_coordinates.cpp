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
#include "view/report/html.h"

namespace lockstep::report {

namespace {

constexpr double kHeight = 380, kTop = 46, kBottom = 18, kLeft = 84, kRight = 84, kBetween = 150,
                 kLeastWidth = 420;
constexpr double kLogFactor = 20, kTickDistance = 14;
constexpr std::size_t kFewValues = 6;
constexpr std::size_t kLongestLabel = 18;

struct Tick {
  double y;
  std::string text;
};

/// Where the values of an axis are.
struct Scale {
  std::vector<double> y;  ///< by line; NaN: none
  std::vector<Tick> ticks;
};

std::string shortened(const std::string& text) {
  return text.size() <= kLongestLabel ? text : text.substr(0, kLongestLabel - 1) + "…";
}

double at_share(double share) { return kHeight - kBottom - share * (kHeight - kTop - kBottom); }

Scale number_scale(const CoordinateAxis& axis, const std::vector<std::optional<double>>& numbers) {
  double low = INFINITY, high = -INFINITY;
  for (const auto& number : numbers)
    if (number) {
      low = std::min(low, *number);
      high = std::max(high, *number);
    }
  const bool is_log = !axis.is_result && low > 0 && high / low > kLogFactor;
  const auto place = [&](double value) { return is_log ? std::log10(value) : value; };
  const double from = place(low), to = place(high);
  const auto y = [&](double value) {
    const double share = to > from ? (place(value) - from) / (to - from) : 0.5;
    return at_share(axis.smaller_is_better ? 1 - share : share);
  };
  Scale scale;
  for (const auto& number : numbers) scale.y.push_back(number ? y(*number) : std::nan(""));
  const auto add_if_apart = [&](double value) {
    if (std::ranges::all_of(scale.ticks,
                            [&](const Tick& tick) { return std::abs(tick.y - y(value)) > kTickDistance; }))
      scale.ticks.push_back({y(value), tick_text(value)});
  };
  std::set<double> different;
  std::size_t count = 0;
  for (const auto& number : numbers)
    if (number) {
      ++count;
      different.insert(*number);
    }
  // Values that recur are choices: no others lie between.
  if (!axis.is_result && different.size() <= kFewValues && different.size() < count) {
    for (const double value : different) add_if_apart(value);
  } else if (!(to > from)) {
    scale.ticks.push_back({y(low), tick_text(low)});
  } else if (is_log) {
    scale.ticks = {{y(low), tick_text(low)}, {y(high), tick_text(high)}};
    for (double power = std::ceil(from); power <= to; ++power) add_if_apart(std::pow(10, power));
  } else {
    for (const double value : round_ticks(from, to, 6, 0))
      scale.ticks.push_back({y(value), tick_text(value)});
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
  for (const std::string& name : names) scale.ticks.push_back({y(name), shortened(name)});
  return scale;
}

Scale scale_of(const CoordinateAxis& axis) {
  std::vector<std::optional<double>> numbers;
  bool all_numbers = true;
  for (const std::string& value : axis.values) {
    numbers.push_back(parse_real(value));
    all_numbers = all_numbers && (numbers.back() || value.empty());
  }
  return all_numbers ? number_scale(axis, numbers) : name_scale(axis);
}

}  // namespace

std::string parallel_coordinates(const std::vector<CoordinateAxis>& axes,
                                 const std::vector<CoordinateLine>& lines) {
  const double width =
      std::max(kLeastWidth, kLeft + kRight + kBetween * static_cast<double>(axes.size() - 1));
  const auto x = [&](std::size_t axis) {
    return axes.size() < 2 ? width / 2
                           : kLeft + static_cast<double>(axis) * (width - kLeft - kRight) /
                                         static_cast<double>(axes.size() - 1);
  };
  std::vector<Scale> scales;
  for (const CoordinateAxis& axis : axes) scales.push_back(scale_of(axis));
  std::string svg = fmt::format(
      "<svg class=\"parallel\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" role=\"img\" "
      "aria-label=\"parallel coordinates of the trials\">",
      width, kHeight);
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
    svg += fmt::format("<text class=\"name\" x=\"{:.1f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>",
                       x(axis), axis % 2 == 0 ? kTop - 30 : kTop - 14, escaped(axes[axis].name));
    const bool is_last = axis + 1 == axes.size() && axis > 0;
    for (const Tick& tick : scales[axis].ticks)
      svg += fmt::format(
          "<path class=\"axis\" d=\"M{:.1f} {:.1f}h{}\"/><text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" "
          "text-anchor=\"{}\">{}</text>",
          x(axis), tick.y, is_last ? 5 : -5, x(axis) + (is_last ? 8 : -8), tick.y + 4,
          is_last ? "start" : "end", escaped(tick.text));
  }
  return svg + "</svg>";
}

}  // namespace lockstep::report
