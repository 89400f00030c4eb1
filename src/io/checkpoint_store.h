// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The checkpoints of one run directory: which there are, which is the newest that can be trusted, which may
// go. Used by the chief alone. On-disk names: do not change.
//
//   <run_dir>/checkpoints/step-00000200.h5   at least 8 digits
//   <run_dir>/checkpoint                     the state file, text:
//
//     model_checkpoint_path: "checkpoints/step-00000300.h5"
//     all_model_checkpoint_paths: "checkpoints/step-00000200.h5"
//     all_model_checkpoint_paths: "checkpoints/step-00000300.h5"
//
// The first line names the checkpoint that a run resumes from, the others all that are kept, oldest first.
// Paths are relative to the run directory, so that it can be moved; absolute ones work too. To go back, edit
// the first line by hand: checkpoints of later steps are then left alone until new ones displace them. Empty
// lines and lines that start with '#' are skipped.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint.h"

namespace lockstep {

class CheckpointStore {
 public:
  /// `keep`: how many checkpoints stay, 0 = all. Nothing is created before the first save.
  CheckpointStore(std::string run_dir, int keep);

  /// Writes the checkpoint of header.global_step, records it in the state file, then removes the oldest above
  /// `keep`. Checkpoints of later steps (of a run that was set back) go first. Returns the file's path.
  /// Throws Error(checkpoint), the older ones are then untouched; an old one that cannot be removed is a
  /// warning.
  std::string save(const CheckpointHeader& header, std::span<const CheckpointTensor> tensors);

  /// The newest checkpoint that is whole, every byte of it verified: the one that the state file names, or
  /// else those of earlier steps, newest first. Without a readable state file, the newest in the folder.
  /// Damaged ones are skipped, with what is wrong with each in `damaged` (may be null) for the caller to
  /// warn. Nothing: nullopt.
  std::optional<std::string> newest_intact(std::vector<std::string>* damaged) const;

  /// Removes what killed runs left half-written. Only for the holder of the run directory's lock.
  void clean();

  /// The path of the checkpoint of a step.
  std::string path_of(std::int64_t global_step) const;

 private:
  std::string run_dir_;
  int keep_;
};

/// The step of the newest checkpoint of a run directory, perhaps of another, running program: by its state file, not
/// verified. Nothing: nullopt.
std::optional<std::int64_t> newest_checkpoint_step(const std::string& run_dir);

}  // namespace lockstep
