// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// One exact evaluation of a checkpoint over the whole evaluation set. `lockstep evaluate` and
// Estimator::evaluate() are this function.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/environment.h"
#include "driver/config/config.h"
#include "model/metric.h"

namespace lockstep {

struct EvaluationJob {
  std::string run_dir;
  std::string checkpoint = {};  ///< empty: the newest intact one of the run
  bool averages = true;         ///< with the moving averages of the variables, where the checkpoint has them
  /// Not empty: the numbers also go to event files in the folder eval_NAME of the run directory.
  std::string name = {};
};

struct EvaluationOutcome {
  std::string checkpoint;
  std::int64_t global_step = 0;
  bool averaged_variables = false;
  std::int64_t samples = 0;
  double loss = 0;
  /// Accuracy, parts of the loss, metrics: a number or a table each, in the order of reports.
  struct Entry {
    std::string name;
    double value = 0;
    std::optional<MetricTable> table = {};
  };
  std::vector<Entry> entries;

  /// "loss", or the number of this name. Throws Error(usage) if there is none.
  double value(std::string_view name) const;
};

/// All ranks; the same result on all. Throws SharedError, also if there is no checkpoint.
EvaluationOutcome run_evaluation_job(CommEnvironment& environment, const Config& config,
                                     const EvaluationJob& job);

}  // namespace lockstep
