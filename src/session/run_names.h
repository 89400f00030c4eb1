// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The names that a training run has: of metrics and variables. They are known before anything is computed, so
// that a misspelt one in the configuration is found before the first step. The same on all ranks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct RunNames {
  std::vector<std::string> step_metrics;  ///< of a training step (train/step_metrics.h)
  std::vector<std::string> evaluation;    ///< of evaluations, without "eval/"; empty: there is none
  std::vector<std::string> variables;
  std::vector<std::string> trained_variables;  ///< those with a gradient
  std::vector<std::string> layers;
  std::vector<std::string> matrices;  ///< of evaluations: metrics confusion_matrix

  /// Evaluations give the metric. `metric` with or without "eval/".
  bool evaluates(std::string_view metric) const;
  /// Advice for the message about a metric that they do not give: the nearest one, and all.
  std::string advice_for(std::string_view metric) const;
};

/// "accuracy" for both "accuracy" and "eval/accuracy": an option that names a result of evaluations takes
/// both.
std::string_view without_split(std::string_view metric);
/// "eval/accuracy" for both.
std::string with_split(std::string_view metric);

}  // namespace lockstep
