// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which evaluated checkpoints of a run are kept as exports, in RUN_DIR/export/NAME/step-00000480:
//
//   weights.h5    the variables (their moving averages, where there are some), without the state of training
//   config.yaml   the configuration of the run
//   checkpoint    names weights.h5, so that the folder is a run directory for evaluate and predict
//   classes.txt, normalization.txt, ...   what the run keeps of its data
//
// A folder appears complete or not at all. On-disk names: do not change.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "run/jobs/evaluation_job.h"
#include "run/sections/experiment_options.h"

namespace lockstep {

/// Writes a checkpoint of a run as the folder FOLDER/step-00000480, and returns its path. If it is there
/// already, with these weights, it stays; with others that is an Error(output). On the chief.
std::string export_checkpoint(const std::string& run_dir, const std::string& folder,
                              const CheckpointFile& checkpoint, bool averages);
/// The path of such a folder.
std::string export_path(const std::string& folder, std::int64_t global_step);

/// Exports on the chief alone, without communication. Throws Error.
std::vector<std::string> export_here(const std::string& run_dir,
                                     const std::vector<ExportStrategy>& strategies,
                                     const EvaluationOutcome& evaluation, bool is_final);

/// Exports the checkpoint of an evaluation as the strategies say. Returns the new folders. All ranks; the
/// chief writes. Throws SharedError.
std::vector<std::string> export_evaluated(Communicator& world, const std::string& run_dir,
                                          const std::vector<ExportStrategy>& strategies,
                                          const EvaluationOutcome& evaluation, bool is_final);

}  // namespace lockstep
