// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The curves of one or several runs: which belong into one chart, and how charts are written: as SVG that
// needs no script, and as JSON for the page's script, which draws them anew with zoom and smoothing.
#pragma once

#include <string>
#include <vector>

#include "view/report/html.h"
#include "view/report/metric_series.h"
#include "view/report/thinning.h"

namespace lockstep::report {

/// Time that a run has spent in its jobs at a step, interpolated between known steps.
struct StepClock {
  std::vector<double> steps, hours;  ///< ascending; empty: not known
};

/// What charts need of a run.
struct CurveRun {
  std::string name;
  const MetricRecords* records = nullptr;
  StepClock clock;
};

struct ChartCurve {
  std::string name;
  int color = 0;         ///< of the palette in page.css
  bool is_eval = false;  ///< drawn with marks, or with dashes next to a training curve of the same colour
  std::size_t run = 0;
  ThinCurve fine, coarse;
};

struct CurveChart {
  std::string tag, group;
  std::vector<ChartCurve> curves;
};

/// The charts of all tags, group by group. One run: a colour for training and one for evaluation. Several: a
/// colour per run.
std::vector<CurveChart> charts_of(const std::vector<CurveRun>& runs);

/// "thinned: 1,234 points show 100,000 values; ...", or nothing.
std::string thinning_note(const std::vector<CurveChart>& charts);
/// The section with controls and a figure per chart.
std::string charts_html(const std::vector<CurveChart>& charts);
/// The contents of the page's data element.
std::string charts_json(const std::vector<CurveChart>& charts, const std::vector<CurveRun>& runs);
/// One chart as SVG.
std::string static_chart(const CurveChart& chart);

}  // namespace lockstep::report
