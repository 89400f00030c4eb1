// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Private to io: the text of the state file `checkpoint`. On-disk names: do not change.
//
//   model_checkpoint_path: "checkpoints/step-00000300.h5"            where a run resumes
//   all_model_checkpoint_paths: "checkpoints/step-00000200.h5"       all that are kept, oldest first
//   all_model_checkpoint_paths: "checkpoints/step-00000300.h5"
//   all_model_checkpoint_timestamps: 1700000000.25                   when each was written, in the same order
//   all_model_checkpoint_timestamps: 1700003600.5
//   last_preserved_timestamp: 1700000000.25                          of the last one kept for good
//   preserved_checkpoint_path: "checkpoints/step-00000200.h5"        kept for good
//   checkpoint_metric: "checkpoints/step-00000300.h5" 0.125          the metric that `keep_best` compares
//
// The first five names are those of the format's ancestor. Every line but the first kind may be missing.
// Empty lines, lines that start with '#' and names that this version does not know are skipped.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Paths are as written: relative to the run directory, or absolute. Times are seconds since 1970.
struct CheckpointState {
  std::string newest;  ///< empty: not named
  std::vector<std::string> paths;
  std::vector<double> times;  ///< of `paths`; empty unless there is one for each
  std::optional<double> last_preserved;
  std::vector<std::string> preserved;
  std::map<std::string, double> metrics;  ///< by path
};

/// Never fails: what cannot be understood is left out.
CheckpointState parse_checkpoint_state(std::string_view text);
std::string format_checkpoint_state(const CheckpointState& state);

}  // namespace lockstep
