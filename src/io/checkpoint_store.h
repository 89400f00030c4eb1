// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The checkpoints of one run directory: which there are, which is the newest that can be trusted, which may
// go. Used by the chief alone; thread-safe, so that one thread may save while another notes a metric. On-disk
// names: do not change.
//
//   <run_dir>/checkpoints/step-00000200.h5   at least 8 digits
//   <run_dir>/checkpoint                     the state file, text: checkpoint_state.h
//
// The first line names the checkpoint that a run resumes from, the others all that are kept, oldest first.
// Paths are relative to the run directory, so that it can be moved; absolute ones work too. To go back, edit
// the first line by hand: checkpoints of later steps are then left alone until new ones displace them. Empty
// lines and lines that start with '#' are skipped.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "io/checkpoint_retention.h"

namespace lockstep {

class CheckpointStore {
 public:
  /// Seconds since 1970.
  using Clock = std::function<double()>;

  /// Nothing is created before the first save. Throws Error(config) for rules that make no sense. `clock`:
  /// the system's if empty.
  CheckpointStore(std::string run_dir, const RetentionRules& rules, Clock clock = {});
  /// Keeps the `keep` newest, 0: all.
  CheckpointStore(std::string run_dir, int keep)
      : CheckpointStore(std::move(run_dir), RetentionRules{keep}) {}

  /// Writes the checkpoint of header.global_step, records it in the state file, then removes those that the
  /// rules do not keep. Checkpoints of later steps (of a run that was set back) count as the oldest. Returns
  /// the file's path. Throws Error(checkpoint), the older ones are then untouched; an old one that cannot be
  /// removed is a warning. `cancelled`: see write_checkpoint().
  std::string save(const CheckpointHeader& header, std::span<const CheckpointTensor> tensors,
                   const std::atomic<bool>* cancelled = nullptr);

  /// Says how good the model of a step is, for keep_best: before its checkpoint is written, or afterwards. A
  /// value that is not finite is no metric. A state file that cannot be written is a warning.
  void note_metric(std::int64_t step, double value);

  /// All that lie in the folder, in order of their steps, and why each stays.
  std::vector<KeptCheckpoint> list() const;

  /// Throws Error(checkpoint) with figures if the disk has no room for all that the rules keep and one more.
  /// Those that are there already need none.
  void require_room(std::size_t checkpoint_bytes) const;

  /// The newest checkpoint that is whole, every byte of it verified: the one that the state file names, or
  /// else those of earlier steps, newest first. Without a readable state file, the newest in the folder.
  /// Damaged ones are skipped, with what is wrong with each in `damaged` (may be null) for the caller to
  /// warn. Nothing: nullopt.
  std::optional<std::string> newest_intact(std::vector<std::string>* damaged) const;

  /// Removes what killed runs left half-written. Only for the holder of the run directory's lock.
  void clean();

  /// The path of the checkpoint of a step.
  std::string path_of(std::int64_t global_step) const;
  const std::string& run_dir() const { return run_dir_; }
  const RetentionRules& rules() const { return rules_; }

 private:
  struct Listing {
    std::vector<KeptCheckpoint> all;  // oldest first
    double last_preserved = 0;
  };
  Listing look() const;
  void write_state(const std::string& newest, const Listing& listing) const;

  const std::string run_dir_;
  const RetentionRules rules_;
  const Clock clock_;
  const double begin_;
  mutable std::mutex mutex_;  // the state file, and what is noted
  std::map<std::int64_t, double> noted_;
};

/// The step of the newest checkpoint of a run directory, perhaps of another, running program: by its state
/// file, not verified. Nothing: nullopt.
std::optional<std::int64_t> newest_checkpoint_step(const std::string& run_dir);

}  // namespace lockstep
