// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A picture of many points of many dimensions as SVG: a vertical axis per dimension, a line per point.
// A. Inselberg, "The plane with parallel coordinates", The Visual Computer 1 (1985).
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep::report {

struct CoordinateAxis {
  std::string name;
  std::vector<std::string> values;  ///< by line; empty: the line has none, and leaves the axis out
  bool is_result = false;           ///< the last axis: numbers; others are left out
  bool smaller_is_better = false;   ///< of a result: the small values are at the top
};

struct CoordinateLine {
  std::string label;
  double goodness = 0;  ///< 0 (the worst) to 1 (the best): the strength of the colour
  bool is_best = false, is_dashed = false;
};

/// Axes of numbers have ticks, at the values if these are few, and a logarithmic scale if all are positive
/// and they span more than a factor of 20 (a result: 1000); axes of other values have a place for each.
/// The picture is as wide as its labels need; a long name keeps its end, and has a tooltip.
std::string parallel_coordinates(const std::vector<CoordinateAxis>& axes,
                                 const std::vector<CoordinateLine>& lines);

}  // namespace lockstep::report
