// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The frame of a small chart as SVG: where steps and values lie, grid and labels.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::report {

class ChartFrame {
 public:
  /// Takes the point into the range that is shown.
  void include(double step, double low, double high);
  /// Makes room around the values and for their labels, after the last include().
  void finish();

  double x(double step) const;
  double y(double value) const;
  /// The <svg> element with grid, labels and `curves`.
  std::string svg(std::string_view title, std::string_view curves) const;

 private:
  double x0_ = 0, x1_ = 1, y0_ = 0, y1_ = 1;
  double left_ = 0;  ///< room for the labels of values
  std::vector<double> ticks_;
  std::vector<std::string> tick_texts_;
  bool empty_ = true;
};

}  // namespace lockstep::report
