// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The charts of `lockstep plot`: which tags of which runs share one, and what they look like.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/name_pattern.h"
#include "view/plot/run_curves.h"
#include "view/terminal/text_style.h"

namespace lockstep {

enum class PlotX { step, epoch, hours };

struct MetricPlotOptions {
  std::vector<std::string> tags;  ///< patterns; one chart for each. Empty: loss, and accuracy if there is any
  PlotX x = PlotX::step;
  bool log = false;
  double smooth = 0;  ///< in [0, 1): see point_curve.h
};

class MetricPlots {
 public:
  struct Run {
    std::string name;
    RunCurves curves;
    std::optional<RunHours> hours = {};
  };
  /// Reads the runs. Throws Error(config) for what is no run directory, Error(usage) for a bad pattern.
  MetricPlots(const std::vector<std::string>& run_dirs, MetricPlotOptions options);

  std::vector<Run>& runs() { return runs_; }
  /// Throws Error(usage) for the first pattern that matches no tag of any run; it lists the tags.
  void check() const;
  /// Whether a chart has the tag.
  bool wants(const std::string& tag) const;
  /// All charts, `rows` high each, one below the other.
  std::vector<std::string> draw(const TextStyle& style, int rows);
  /// Charts that fit into `lines` lines; a last line says if some do not.
  std::vector<std::string> draw_fitted(const TextStyle& style, int lines, std::optional<int> rows);

 private:
  struct Part {
    Run* run;
    std::string tag;
  };
  std::vector<std::string> chart(const NamePattern& pattern, const TextStyle& style, int rows);
  std::vector<Part> parts(const NamePattern& pattern);
  bool matches(const NamePattern& pattern) const;
  std::vector<std::string> all_tags() const;
  double x_of(const Run& run, std::int64_t step) const;

  MetricPlotOptions options_;
  std::vector<Run> runs_;
  std::vector<NamePattern> patterns_;
  bool chosen_ = false;  ///< the patterns are the user's
};

}  // namespace lockstep
