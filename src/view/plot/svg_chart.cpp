// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "view/plot/chart.h"

namespace lockstep {

namespace {

constexpr double kWidth = 900, kPanel = 300, kHead = 56, kLeft = 84, kRight = 24, kTop = 40, kBottom = 56;

// The colours follow the reader's scheme, also where the file is shown as a picture of a page.
constexpr std::string_view kStyle = R"(<style>
  .paper { fill: #ffffff; }
  text { font-family: system-ui, sans-serif; font-size: 13px; fill: #59636e; }
  .title { font-size: 18px; font-weight: 600; fill: #1f2328; }
  .name { font-size: 14px; font-weight: 600; fill: #1f2328; }
  .grid { stroke: #d8dee4; stroke-width: 1; }
  .axis { stroke: #59636e; stroke-width: 1; fill: none; }
  .curve { stroke: #0969da; stroke-width: 2; fill: none; stroke-linejoin: round; }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117; }
    text { fill: #9198a1; }
    .title, .name { fill: #f0f6fc; }
    .grid { stroke: #30363d; }
    .axis { stroke: #9198a1; }
    .curve { stroke: #58a6ff; }
  }
</style>
)";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        // Control characters are not allowed in XML.
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

std::string label(double x, double y, std::string_view anchor, std::string_view text,
                  std::string_view style = "tick") {
  return fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", style, x,
                     y, anchor, escaped(text));
}

std::string line(double x0, double y0, double x1, double y1) {
  return fmt::format("<line class=\"grid\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", x0,
                     y0, x1, y1);
}

std::string panel(const Chart& chart, double top) {
  const double left = kLeft, right = kWidth - kRight, high = top + kTop, low = top + kPanel - kBottom;
  const int columns = static_cast<int>(right - left);
  const std::vector<ChartColumn> curve = chart_columns(chart, columns);
  const ChartAxis values = value_axis(curve, 5), steps = step_axis(chart, 8);
  const auto y_of = [&](double value) {
    return low - (value - values.low) / (values.high - values.low) * (low - high);
  };
  const auto x_of = [&](double step) { return left + step / steps.high * (right - left); };
  std::string text = label(left, top + 24, "start", chart.title, "name");
  const std::vector<std::string> value_texts = tick_texts(values.ticks);
  for (std::size_t i = 0; i < value_texts.size(); ++i) {
    const double y = y_of(values.ticks[i]);
    text += line(left, y, right, y);
    text += label(left - 8, y + 4, "end", value_texts[i]);
  }
  for (const double tick : steps.ticks) {
    text += line(x_of(tick), high, x_of(tick), low);
    text += label(x_of(tick), low + 18, "middle", step_text(chart, tick));
  }
  text += fmt::format("<path class=\"axis\" d=\"M{:.1f} {:.1f}V{:.1f}H{:.1f}\"/>\n", left, high, low, right);
  std::string path;
  double before = -1;
  const auto point = [&](double x, double value) {
    const double y = y_of(value);
    if (!path.empty() && y == before && value != curve.back().last) return;
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x, y);
    before = y;
  };
  for (int i = 0; i < columns; ++i) {
    const ChartColumn& column = curve[static_cast<std::size_t>(i)];
    const double x = left + (right - left) * i / columns;
    // What happens inside a column that is less than a point of the picture wide.
    point(x, column.first);
    if (column.least < std::min(column.first, column.last)) point(x + 0.5, column.least);
    if (column.most > std::max(column.first, column.last)) point(x + 0.5, column.most);
  }
  path += fmt::format("L{:.1f} {:.1f}", right, y_of(curve.back().last));
  text += fmt::format("<path class=\"curve\" d=\"{}\"/>\n", path);
  std::string unit = chart.growing ? chart.growing->name : "step";
  if (chart.steps_per_epoch > 0) unit += fmt::format(" ({} steps are an epoch)", chart.steps_per_epoch);
  return text + label((left + right) / 2, low + 40, "middle", unit);
}

}  // namespace

std::string svg_charts(std::span<const Chart> charts, const std::string& title) {
  const double height = kHead + kPanel * static_cast<double>(charts.size());
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" role=\"img\">\n<title>{2}</title>\n",
      kWidth, height, escaped(title));
  text += kStyle;
  text += fmt::format("<rect class=\"paper\" width=\"{:.0f}\" height=\"{:.0f}\"/>\n", kWidth, height);
  text += label(kLeft, 36, "start", title, "title");
  for (std::size_t i = 0; i < charts.size(); ++i)
    text += panel(charts[i], kHead + kPanel * static_cast<double>(i));
  return text + "</svg>\n";
}

}  // namespace lockstep
