// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which evaluated checkpoints of a run are kept as exports, in RUN_DIR/export/NAME/step-00000480:
//
//   weights.h5    the variables (with their moving averages, where there are some), without the state of
//   training config.yaml   the configuration of the run
//
// A folder appears complete or not at all. On-disk names: do not change.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "driver/estimator/evaluation_job.h"

namespace lockstep {

struct ExportStrategy {
  /// latest: each evaluated checkpoint. best: one that is better than all before it. final: that of the end.
  enum class When { latest, best, final };
  When when = When::latest;
  std::string name = "latest";  ///< of the folder
  int keep = 5;                 ///< so many of the newest; 0: all
  std::string metric = "loss";  ///< best: a number of the evaluation
  bool larger_is_better = false;
};

/// Whether a folder may have this name: letters, digits, - and _.
bool is_export_name(std::string_view name);

/// Exports the checkpoint of an evaluation as the strategies say. Returns the new folders. All ranks; the
/// chief writes. Throws SharedError.
std::vector<std::string> export_evaluated(Communicator& world, const std::string& run_dir,
                                          const std::vector<ExportStrategy>& strategies,
                                          const EvaluationOutcome& evaluation, bool is_final);

}  // namespace lockstep
