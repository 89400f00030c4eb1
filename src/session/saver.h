// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Saves the state of a run, in the background: a training step waits for a copy in host memory only, a thread
// of the chief's does the rest (io/checkpoint_writer.h). The chief writes; on other ranks every call but
// finish() does nothing, and nothing here but finish() communicates.
//
//   save()       begins a checkpoint, unless one is in flight
//   poll()       says, on the loop's thread, what has become durable or failed since
//   finish()     the last checkpoint: waits until it is durable, and only here a failure is an error
//
// A checkpoint that fails before that leaves no temporary and the older ones untouched, and is a warning.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "core/thread_pool.h"
#include "io/checkpoint_writer.h"

namespace lockstep {

struct SaverOptions {
  RetentionRules retention;
  bool background = true;         ///< false: save() returns when the file is durable
  double timeout_seconds = 3600;  ///< > 0: of the waiting for one checkpoint
};

class Saver {
 public:
  Saver(bool is_chief, const std::string& run_dir, const SaverOptions& options);
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  /// Once, before the first save: looks whether the disk has room for all checkpoints that will be kept and
  /// one more, and takes memory for the copy. Throws Error(checkpoint) on the chief alone: call it under
  /// agree().
  void prepare(const CheckpointHeader& header, std::span<const CheckpointTensor> tensors,
               CheckpointCopyWays ways);
  /// Tensors may be on the device: after save() the next update must come behind copied().
  bool copies_from_device() const { return options_.background; }
  /// The last save has taken its copy from the device; null: it had none to take.
  const DeviceEvent* copied() const { return writer_ ? writer_->copied() : nullptr; }

  /// A checkpoint is in flight. Always false on other ranks.
  bool busy() const;
  /// Begins the checkpoint of header.global_step. False, and nothing done, while one is in flight: try again
  /// after a later step. Afterwards the tensors may change (those on a device: behind copied()). On other
  /// ranks true.
  bool save(const CheckpointHeader& header, std::span<const CheckpointTensor> tensors);
  /// What has ended since the last call, in order; logs each failure as one warning.
  std::vector<CheckpointOutcome> poll();
  /// Waits until nothing is in flight; throws Error(checkpoint), on the chief alone, when `limit_seconds`
  /// have passed.
  void wait(double limit_seconds);

  /// All ranks: the last checkpoint of the run. Waits for the one in flight; if that is this very step's, it
  /// is not written again. Throws the same Error(checkpoint) on all ranks if it cannot be written, or is not
  /// within options.timeout_seconds. Ranks meet often while they wait, so that no watchdog takes it for a
  /// hang: `meet_seconds` is how often, well below the communicator's limit. Outcomes are left for poll().
  void finish(Communicator& world, const CheckpointHeader& header, std::span<const CheckpointTensor> tensors,
              double meet_seconds);

  /// For retention by a metric: how good the model is after `step`.
  void note_metric(std::int64_t step, double value);
  const SaverOptions& options() const { return options_; }

  // Measured so far, on the chief.

  /// That the loop waited for saves.
  double blocked_seconds() const { return blocked_seconds_; }
  /// From the beginning of a save to the durable file, at most. Before the first one has ended: a guess from
  /// the size.
  double longest_save_seconds() const { return longest_save_seconds_; }

 private:
  void collect();
  void add(CheckpointOutcome outcome);
  void begin(const CheckpointHeader& header, std::span<const CheckpointTensor> tensors);
  void wait_together(Communicator& world, double meet_seconds);

  const bool is_chief_;
  const SaverOptions options_;
  std::shared_ptr<CheckpointStore> store_;  // the chief's
  std::unique_ptr<CheckpointWriter> writer_;
  std::vector<CheckpointOutcome> finished_;
  std::int64_t durable_step_ = -1;  // the newest
  bool measured_ = false;
  double blocked_seconds_ = 0, longest_save_seconds_ = 0;
};

}  // namespace lockstep
