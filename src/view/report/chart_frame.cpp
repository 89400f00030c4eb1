// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/report/chart_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "view/plot/chart.h"
#include "view/report/html.h"

namespace lockstep::report {

namespace {

constexpr double kWidth = 340, kHeight = 200, kLeft = 58, kRight = 16, kTop = 10, kBottom = 28;

/// "40k", "1.5M".
std::string tick_label(double value) {
  const double size = std::abs(value);
  if (size >= 1e4 && size < 1e6) return fmt::format("{:.6g}k", value / 1e3);
  if (size >= 1e6 && size < 1e9) return fmt::format("{:.6g}M", value / 1e6);
  return tick_text(value);
}

}  // namespace

void ChartFrame::include(double step, double low, double high) {
  if (empty_) {
    x0_ = x1_ = step;
    y0_ = low;
    y1_ = high;
    empty_ = false;
  }
  x0_ = std::min(x0_, step);
  x1_ = std::max(x1_, step);
  y0_ = std::min(y0_, low);
  y1_ = std::max(y1_, high);
}

void ChartFrame::finish() {
  if (!(x1_ > x0_)) x1_ = x0_ + 1;
  const double one_value = y0_ == 0 ? 0.1 : std::max(1e-12, 0.1 * std::abs(y0_));
  const double room = y1_ > y0_ ? 0.05 * (y1_ - y0_) : one_value;
  y0_ -= room;
  y1_ += room;
}

double ChartFrame::x(double step) const {
  return kLeft + (step - x0_) / (x1_ - x0_) * (kWidth - kLeft - kRight);
}

double ChartFrame::y(double value) const {
  return kHeight - kBottom - (value - y0_) / (y1_ - y0_) * (kHeight - kTop - kBottom);
}

std::string ChartFrame::svg(std::string_view title, std::string_view curves) const {
  std::string text = fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\">", kWidth,
                                 kHeight, escaped(title));
  for (const double tick : round_ticks(y0_, y1_, 5, 0))
    text += fmt::format(
        "<path class=\"grid\" d=\"M{:.0f} {:.1f}H{:.0f}\"/><text class=\"tick\" x=\"{:.0f}\" y=\"{:.1f}\" "
        "text-anchor=\"end\">{}</text>",
        kLeft, y(tick), kWidth - kRight, kLeft - 6, y(tick) + 4, tick_label(tick));
  for (const double tick : round_ticks(x0_, x1_, 4, 1))
    text += fmt::format("<text class=\"tick\" x=\"{:.1f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>",
                        x(tick), kHeight - kBottom + 16, tick_label(tick));
  text += fmt::format("<path class=\"axis\" d=\"M{:.0f} {:.0f}H{:.0f}\"/>", kLeft, kHeight - kBottom,
                      kWidth - kRight);
  return text + std::string(curves) + "</svg>";
}

}  // namespace lockstep::report
