// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to io: the text of the state file `checkpoint`. On-disk names: do not change.
//
//   model_checkpoint_path: "checkpoints/step-00000300.h5"            a run resumes from this one
//   all_model_checkpoint_paths: "checkpoints/step-00000200.h5"       all kept ones, oldest first
//   all_model_checkpoint_paths: "checkpoints/step-00000300.h5"
//   all_model_checkpoint_timestamps: 1700000000.25                   times of writing, in the same order
//   all_model_checkpoint_timestamps: 1700003600.5
//   last_preserved_timestamp: 1700000000.25                          of the last preserved one
//   preserved_checkpoint_path: "checkpoints/step-00000200.h5"        kept permanently
//   checkpoint_metric: "checkpoints/step-00000300.h5" 0.125          the metric that `keep_best` compares
//   best_checkpoint_path: "checkpoints/step-00000300.h5"             the best by that metric
//
// The first four names are those of TensorFlow's state file. Every line except the first may be missing.
// Empty lines, lines that start with '#' and unknown names are skipped.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Paths are as written: relative to the run directory, or absolute. Times are seconds since 1970.
struct CheckpointState {
  std::string newest;  ///< empty: unknown
  std::vector<std::string> paths;
  std::vector<double> times;  ///< of `paths`; empty if any is missing
  std::optional<double> last_preserved;
  std::vector<std::string> preserved;
  std::map<std::string, double> metrics;  ///< by path
  std::string best;                       ///< empty: unknown
};

/// Never fails: text that cannot be parsed is skipped.
CheckpointState parse_checkpoint_state(std::string_view text);
std::string format_checkpoint_state(const CheckpointState& state);

}  // namespace lockstep
