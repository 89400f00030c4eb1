// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A chart as SVG, for pages without scripts and for print before the script has drawn it.
#include <fmt/format.h>

#include <cmath>

#include "view/report/chart_frame.h"
#include "view/report/curves.h"

namespace lockstep::report {

namespace {

ChartFrame frame_of(const CurveChart& chart) {
  ChartFrame frame;
  for (const ChartCurve& curve : chart.curves)
    for (const ThinPoint& point : curve.coarse.points)
      if (std::isfinite(point.mean)) frame.include(point.step, point.low, point.high);
  frame.finish();
  return frame;
}

/// The curve of one member; gaps begin a new line. A point between gaps is a short line.
std::string path(const ThinCurve& curve, const ChartFrame& frame, double ThinPoint::*member) {
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

std::string band(const ThinCurve& curve, const ChartFrame& frame) {
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
  const ChartFrame frame = frame_of(chart);
  std::string text;
  for (const ChartCurve& curve : chart.curves) {
    if (curve.coarse.thinned)
      text += fmt::format("<path class=\"band c{}\" d=\"{}\"/>", curve.color, band(curve.coarse, frame));
    text += fmt::format("<path class=\"curve c{}{}\" d=\"{}\"/>", curve.color,
                        curve.is_eval && chart.curves.size() > 1 ? " eval" : "",
                        path(curve.coarse, frame, &ThinPoint::mean));
    if (const auto& points = curve.coarse.points; points.size() == 1 && std::isfinite(points[0].mean))
      text += fmt::format("<circle class=\"dot c{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.6\"/>", curve.color,
                          frame.x(points[0].step), frame.y(points[0].mean));
  }
  return frame.svg(chart.tag, text);
}

}  // namespace lockstep::report
