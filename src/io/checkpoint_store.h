// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The checkpoints of one run directory: lists them, finds the newest intact one, saves new ones and removes
// old ones. Only the chief uses it. Thread-safe, so that one thread may save while another notes a metric.
// On-disk names: do not change.
//
//   <run_dir>/checkpoints/step-00000200.h5   at least 8 digits
//   <run_dir>/checkpoint                     the state file, text: checkpoint_state.h
//
// The first line of the state file names the checkpoint from which a run resumes; the others name all kept
// ones, oldest first. Paths are relative to the run directory, so that it can be moved; absolute paths also
// work. To go back, edit the first line by hand: checkpoints of later steps are kept until new ones replace
// them.
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

/// Why this process may not read the file ("Permission denied"); empty if it may, or if there is none.
std::string unreadable_reason(const std::string& path);

class CheckpointStore {
 public:
  /// Seconds since 1970.
  using Clock = std::function<double()>;

  /// Creates nothing before the first save. Throws Error(config) for invalid rules. `clock`: the system clock
  /// if empty.
  CheckpointStore(std::string run_dir, const RetentionRules& rules, Clock clock = {});
  /// Keeps the `keep` newest checkpoints; 0: all.
  CheckpointStore(std::string run_dir, int keep)
      : CheckpointStore(std::move(run_dir), RetentionRules{keep}) {}

  /// Writes the checkpoint of header.global_step, records it in the state file and removes the checkpoints
  /// that the rules do not keep. Checkpoints of later steps, left by a run that was set back, count as the
  /// oldest. Returns the file's path. Throws Error(checkpoint) and leaves older checkpoints untouched on
  /// failure. Failure to remove an old one is a warning. `cancelled`: see write_checkpoint().
  std::string save(const CheckpointHeader& header, std::span<const CheckpointTensor> tensors,
                   const std::atomic<bool>* cancelled = nullptr);

  /// Sets the metric of a step for keep_best, before or after its checkpoint is written. Ignores values that
  /// are not finite. Failure to write the state file is a warning.
  void note_metric(std::int64_t step, double value);
  /// Forgets the metrics of all steps. Failure to write the state file is a warning.
  void forget_metrics();

  /// All checkpoints in the folder in step order, with the reasons for keeping them.
  std::vector<KeptCheckpoint> list() const;

  /// The best checkpoint, as the state file names it; nullopt: it names none, or the file is gone.
  std::optional<KeptCheckpoint> recorded_best() const;

  /// Throws Error(checkpoint) with sizes if the disk has no room for all checkpoints that the rules keep plus
  /// one. Existing checkpoints need no further room.
  void require_room(std::size_t checkpoint_bytes) const;

  /// Returns the newest intact checkpoint, with every byte verified: the one that the state file names, or
  /// otherwise those of earlier steps, newest first. Without a readable state file, the newest one in the
  /// folder; without that folder, one of its files that was copied into the run directory itself. Skips
  /// damaged ones and appends what is wrong with each to `damaged` (may be null), for the
  /// caller to report. Returns nullopt if there is none.
  /// Another program may save and remove checkpoints meanwhile: one that is gone before it is open is no
  /// damaged one, and the newest is looked for again, a few times.
  std::optional<std::string> newest_intact(std::vector<std::string>* damaged) const;
  /// The same, open: its contents can be read also after another program has removed it.
  std::optional<CheckpointFile> open_newest_intact(std::vector<std::string>* damaged) const;

  /// Opens the first one of these without a look at its contents; nullopt: there is none. Throws
  /// Error(checkpoint) if it cannot be opened.
  std::optional<CheckpointFile> open_newest() const;

  /// Removes temporary files of killed runs. Only for the holder of the run directory's lock.
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
  std::vector<std::string> candidates() const;
  void write_state(const std::string& newest, const Listing& listing) const;
  void rewrite_state(Listing listing) const;

  const std::string run_dir_;
  const RetentionRules rules_;
  const Clock clock_;
  const double begin_;
  mutable std::mutex mutex_;  // guards the state file and noted_
  std::map<std::int64_t, double> noted_;
};

/// With the fault "replaced_checkpoint" (core/fault.h), what training may do between a reader's look at the
/// folder and the opening of `path`: the next checkpoint comes, and this one goes.
void fault_replaced_checkpoint(const std::string& run_dir, const std::string& path);

/// How often a reader looks for a checkpoint of a run that another program trains and that is removed before
/// it is open.
inline constexpr int kMostLooks = 10;

/// The step of the newest checkpoint of a run directory, which another program may be using. Reads the state
/// file and verifies nothing. Returns nullopt if there is none.
std::optional<std::int64_t> newest_checkpoint_step(const std::string& run_dir);

}  // namespace lockstep
