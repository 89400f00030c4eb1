// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/report/chart_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "view/plot/chart.h"
#include "view/plot/label_text.h"
#include "view/report/html.h"

namespace lockstep::report {

namespace {

constexpr double kBeside = 6;  // between a label and the axis
constexpr double kWidth = 340, kHeight = 200, kLeastLeft = 58, kRight = 16, kTop = 10, kBottom = 28;

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
  ticks_ = round_ticks(y0_, y1_, 5, 0);
  tick_texts_ = tick_texts(ticks_, true);
  left_ = kLeastLeft;
  for (const std::string& text : tick_texts_) left_ = std::max(left_, text_width(text) + kBeside + 4);
}

double ChartFrame::x(double step) const {
  return left_ + (step - x0_) / (x1_ - x0_) * (kWidth - left_ - kRight);
}

double ChartFrame::y(double value) const {
  return kHeight - kBottom - (value - y0_) / (y1_ - y0_) * (kHeight - kTop - kBottom);
}

std::string ChartFrame::svg(std::string_view title, std::string_view curves) const {
  std::string text = fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\">", kWidth,
                                 kHeight, escaped(title));
  for (std::size_t i = 0; i < ticks_.size(); ++i)
    text += fmt::format(
        "<path class=\"grid\" d=\"M{:.0f} {:.1f}H{:.0f}\"/><text class=\"tick\" x=\"{:.0f}\" y=\"{:.1f}\" "
        "text-anchor=\"end\">{}</text>",
        left_, y(ticks_[i]), kWidth - kRight, left_ - kBeside, y(ticks_[i]) + 4, tick_texts_[i]);
  const std::vector<double> steps = round_ticks(x0_, x1_, 4, 1);
  const std::vector<std::string> step_texts = tick_texts(steps, true);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double half = text_width(step_texts[i]) / 2;
    text += fmt::format("<text class=\"tick\" x=\"{:.1f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>",
                        std::min(x(steps[i]), kWidth - half - 1), kHeight - kBottom + 16, step_texts[i]);
  }
  text += fmt::format("<path class=\"axis\" d=\"M{:.0f} {:.0f}H{:.0f}\"/>", left_, kHeight - kBottom,
                      kWidth - kRight);
  if (empty_)
    text += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">no finite number</text>",
                        (left_ + kWidth - kRight) / 2, kHeight / 2);
  return text + std::string(curves) + "</svg>";
}

}  // namespace lockstep::report
