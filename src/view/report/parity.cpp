// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/report/parity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "view/plot/chart.h"
#include "view/plot/label_text.h"
#include "view/report/html.h"

namespace lockstep::report {

namespace {

constexpr double kSide = 300, kTop = 12, kBottom = 38, kRight = 14, kTitle = 18, kBeside = 6;

struct Range {
  double low, high;
};

/// Of true and predicted values together, with some room around them.
Range range_of(const ParityColumn& column) {
  Range range{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  for (const ParityPoint& point : column.points())
    for (const double value : {point.truth, point.predicted})
      range = {std::min(range.low, value), std::max(range.high, value)};
  const double room =
      range.high > range.low ? 0.04 * (range.high - range.low) : std::max(1e-6, 0.1 * std::abs(range.low));
  return {range.low - room, range.high + room};
}

std::string plot(const ParityColumn& column) {
  const Range range = range_of(column);
  const std::vector<double> ticks = round_ticks(range.low, range.high, 6, 0);
  const std::vector<std::string> texts = tick_texts(ticks, true);
  double left = kTitle;
  for (const std::string& text : texts) left = std::max(left, kTitle + text_width(text) + kBeside);
  const double width = left + kSide + kRight, height = kTop + kSide + kBottom;
  const auto share = [&](double value) { return (value - range.low) / (range.high - range.low); };
  const auto x = [&](double value) { return left + share(value) * kSide; };
  const auto y = [&](double value) { return kTop + (1 - share(value)) * kSide; };
  std::string svg =
      fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"predicted over true {}\">",
                  width, height, escaped(column.name()));
  double next = 0;  // where the next label of the x axis may begin
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    svg += fmt::format(
        "<path class=\"grid\" d=\"M{0:.0f} {1:.1f}H{2:.0f}M{3:.1f} {4:.0f}V{5:.0f}\"/><text x=\"{6:.0f}\" "
        "y=\"{7:.1f}\" text-anchor=\"end\">{8}</text>",
        left, y(ticks[i]), left + kSide, x(ticks[i]), kTop, kTop + kSide, left - kBeside, y(ticks[i]) + 4,
        texts[i]);
    const double half = text_width(texts[i]) / 2, middle = std::min(x(ticks[i]), width - half - 1);
    if (middle - half < next) continue;
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>", middle,
                       kTop + kSide + 16, texts[i]);
    next = middle + half + kBeside;
  }
  svg += fmt::format(
      "<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">true</text><text transform=\"translate(11 "
      "{:.0f}) rotate(-90)\" text-anchor=\"middle\">predicted</text><path class=\"cross\" d=\"M{:.0f} "
      "{:.0f}L{:.0f} {:.0f}\"/>",
      left + kSide / 2, height - 5, kTop + kSide / 2, left, kTop + kSide, left + kSide, kTop);
  std::string dots;
  for (const ParityPoint& point : column.points())
    dots += fmt::format("M{:.1f} {:.1f}h.01", x(point.truth), y(point.predicted));
  return svg + fmt::format("<path class=\"points c0\" d=\"{}\"/></svg>", dots);
}

}  // namespace

void ParityColumn::add(float truth, float predicted, bool is_drawn) {
  if (!std::isfinite(truth) || !std::isfinite(predicted)) return;
  ++pairs_;
  const double difference = static_cast<double>(truth) - static_cast<double>(predicted);
  errors_ += difference * difference;
  // Welford 1962.
  const double before = static_cast<double>(truth) - mean_;
  mean_ += before / static_cast<double>(pairs_);
  deviations_ += before * (static_cast<double>(truth) - mean_);
  if (is_drawn) points_.push_back({truth, predicted});
}

double ParityColumn::root_mean_squared_error() const {
  return std::sqrt(errors_ / static_cast<double>(pairs_));
}

double ParityColumn::r2() const {
  return deviations_ > 0 ? 1 - errors_ / deviations_ : std::numeric_limits<double>::quiet_NaN();
}

std::string parity_html(const std::vector<ParityColumn>& columns) {
  std::string text = "<div class=\"charts\">\n";
  for (const ParityColumn& column : columns) {
    if (column.points().empty()) continue;
    const auto drawn = static_cast<std::int64_t>(column.points().size());
    text += fmt::format(
        "<figure class=\"chart\"><figcaption>{}</figcaption><p class=\"legend\"><span>R² {}</span><span>RMSE "
        "{}</span><span>{} values{}</span></p><div class=\"plot\">{}</div></figure>\n",
        escaped(column.name()), number_html(column.r2()), number_html(column.root_mean_squared_error()),
        grouped(column.pairs()),
        drawn < column.pairs() ? fmt::format(", {} of them drawn", grouped(drawn)) : "", plot(column));
  }
  return text + "</div>\n";
}

}  // namespace lockstep::report
