// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Curves as text: braille dots where the reader has Unicode, else one mark per character. No files.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "view/plot/chart.h"
#include "view/terminal/text_style.h"

namespace lockstep {

struct TextCurve {
  std::string name;  ///< for the legend
  /// What the curve does in each of `count` columns; NaN where it is not.
  std::function<std::vector<ChartColumn>(int count)> columns;
};

struct TextPlot {
  std::string title;
  std::vector<TextCurve> curves;
  ChartAxis values, x;
  std::function<std::string(double)> value_text = {};  ///< of a tick; empty: tick_texts() of all
  std::function<std::string(double)> x_text = tick_text;
  std::string x_name;
  int rows = 12;  ///< of the curves alone
};

/// Lines of at most `style.width` columns: title, legend (of several curves), curves, axis. Curves differ by
/// colours, or by their marks where there are none.
std::vector<std::string> text_plot(const TextPlot& plot, const TextStyle& style);
/// Lines of text_plot() that are neither rows of curves nor the legend.
inline constexpr int kPlotFrameLines = 4;

}  // namespace lockstep
