// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The section `eval` of a configuration: when the evaluation set is evaluated, and by which metrics.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "config/params.h"
#include "model/metric.h"

namespace lockstep {

struct EvaluationOptions {
  std::optional<std::int64_t> batch_size = {};  ///< samples; none: that of training
  std::int64_t every_epochs = 1;                ///< 0: only at the end
  std::int64_t every_steps = 0;                 ///< 0: never for this reason
  bool averages = true;                  ///< with the moving averages of the variables, if there are any
  std::vector<MetricSpec> metrics = {};  ///< in addition to loss and accuracy
};

/// Options of the section `eval`.
std::span<const ParamSpec> evaluation_table();
/// `section` is checked against evaluation_table(). Throws Error(config) for a metric that is not known.
EvaluationOptions evaluation_options(const Params& section);

}  // namespace lockstep
