// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A chart as SVG, for pages without scripts and for print before the script has drawn it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "driver/plot/chart.h"
#include "driver/report/curves.h"

namespace lockstep::report {

namespace {

constexpr double kWidth = 340, kHeight = 200, kLeft = 58, kRight = 16, kTop = 10, kBottom = 28;

struct Frame {
  double x0 = 0, x1 = 1, y0 = 0, y1 = 1;
  double x(double step) const { return kLeft + (step - x0) / (x1 - x0) * (kWidth - kLeft - kRight); }
  double y(double value) const {
    return kHeight - kBottom - (value - y0) / (y1 - y0) * (kHeight - kTop - kBottom);
  }
};

Frame frame_of(const CurveChart& chart) {
  Frame frame;
  bool first = true;
  for (const ChartCurve& curve : chart.curves)
    for (const ThinPoint& point : curve.coarse.points) {
      if (!std::isfinite(point.mean)) continue;
      if (first) frame = {point.step, point.step, point.low, point.high};
      first = false;
      frame.x0 = std::min(frame.x0, point.step);
      frame.x1 = std::max(frame.x1, point.step);
      frame.y0 = std::min(frame.y0, point.low);
      frame.y1 = std::max(frame.y1, point.high);
    }
  if (!(frame.x1 > frame.x0)) frame.x1 = frame.x0 + 1;
  const double room =
      frame.y1 > frame.y0 ? 0.05 * (frame.y1 - frame.y0) : std::max(1e-12, 0.1 * std::abs(frame.y0));
  frame.y0 -= room;
  frame.y1 += room;
  return frame;
}

/// "40k", "1.5M".
std::string tick_label(double value) {
  const double size = std::abs(value);
  if (size >= 1e4 && size < 1e6) return fmt::format("{:.6g}k", value / 1e3);
  if (size >= 1e6 && size < 1e9) return fmt::format("{:.6g}M", value / 1e6);
  return tick_text(value);
}

/// The curve of one member; gaps begin a new line. A point between gaps is a short line.
std::string path(const ThinCurve& curve, const Frame& frame, double ThinPoint::*member) {
  std::string text;
  bool pen_down = false;
  for (const ThinPoint& point : curve.points) {
    if (!std::isfinite(point.*member)) {
      pen_down = false;
      continue;
    }
    text += fmt::format("{}{:.1f} {:.1f}", pen_down ? "L" : "M", frame.x(point.step), frame.y(point.*member));
    if (!pen_down) text += "h.01";
    pen_down = true;
  }
  return text;
}

std::string band(const ThinCurve& curve, const Frame& frame) {
  std::string text;
  const auto close = [&](std::size_t begin, std::size_t end) {
    if (begin == end) return;
    for (std::size_t i = begin; i < end; ++i)
      text += fmt::format("{}{:.1f} {:.1f}", i == begin ? "M" : "L", frame.x(curve.points[i].step),
                          frame.y(curve.points[i].high));
    for (std::size_t i = end; i-- > begin;)
      text += fmt::format("L{:.1f} {:.1f}", frame.x(curve.points[i].step), frame.y(curve.points[i].low));
    text += "Z";
  };
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= curve.points.size(); ++i)
    if (i == curve.points.size() || !std::isfinite(curve.points[i].mean)) {
      close(begin, i);
      begin = i + 1;
    }
  return text;
}

}  // namespace

std::string static_chart(const CurveChart& chart) {
  const Frame frame = frame_of(chart);
  std::string text = fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\">", kWidth,
                                 kHeight, escaped(chart.tag));
  for (const double tick : round_ticks(frame.y0, frame.y1, 5, 0))
    text += fmt::format(
        "<path class=\"grid\" d=\"M{:.0f} {:.1f}H{:.0f}\"/><text class=\"tick\" x=\"{:.0f}\" y=\"{:.1f}\" "
        "text-anchor=\"end\">{}</text>",
        kLeft, frame.y(tick), kWidth - kRight, kLeft - 6, frame.y(tick) + 4, tick_label(tick));
  for (const double tick : round_ticks(frame.x0, frame.x1, 4, 1))
    text += fmt::format("<text class=\"tick\" x=\"{:.1f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>",
                        frame.x(tick), kHeight - kBottom + 16, tick_label(tick));
  text += fmt::format("<path class=\"axis\" d=\"M{:.0f} {:.0f}H{:.0f}\"/>", kLeft, kHeight - kBottom,
                      kWidth - kRight);
  for (const ChartCurve& curve : chart.curves) {
    if (curve.coarse.thinned)
      text += fmt::format("<path class=\"band c{}\" d=\"{}\"/>", curve.color, band(curve.coarse, frame));
    text += fmt::format("<path class=\"curve c{}{}\" d=\"{}\"/>", curve.color,
                        curve.is_eval && chart.curves.size() > 1 ? " eval" : "",
                        path(curve.coarse, frame, &ThinPoint::mean));
  }
  return text + "</svg>";
}

}  // namespace lockstep::report
