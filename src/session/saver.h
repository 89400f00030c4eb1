// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Saves the state of a run in the background. A training step waits only for a copy in host memory; a thread
// of the chief writes the file (io/checkpoint_writer.h). Only finish() communicates. On ranks other than the
// chief all other calls do nothing. State that is distributed over the ranks is written in the foreground,
// and then save() communicates as well (distributed_state.h).
//
//   save()       begins a checkpoint, unless one is in flight
//   poll()       returns what has become durable or failed since the last call
//   finish()     writes the last checkpoint and waits until it is durable
//
// A failure in finish() is an error. Any earlier failure is a warning: it leaves no temporary file, and the
// older checkpoints are untouched.
//
// All ranks compare a hash of their variables before the chief copies its state: a flipped bit in the chief's
// memory would become the start of the next job. A damaged replica ends the run with the name of the rank,
// and no checkpoint contains it. The hash runs at 10 GB/s or more on a CPU core.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/thread_ban.h"
#include "io/checkpoint_writer.h"

namespace lockstep {

class Communicator;
class DistributedState;

struct SaverOptions {
  RetentionRules retention;
  bool background = true;         ///< false: save() returns when the file is durable
  double timeout_seconds = 3600;  ///< > 0: the longest wait for one checkpoint
};

class Saver {
 public:
  Saver(bool is_chief, const std::string& run_dir, const SaverOptions& options);
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  /// Called once, before the first save. Checks that the disk has room for all checkpoints that will be kept
  /// and one more, and allocates memory for the copy. Throws Error(checkpoint) on the chief only: call it in
  /// agree().
  void prepare(const CheckpointHeader& header, std::span<const CheckpointTensor> tensors,
               CheckpointCopyWays ways);
  /// Sets, before prepare(), a function that is called before each file is written, maybe in the writer's
  /// thread. It makes durable what a resumed run needs in addition to the checkpoint.
  void set_before_write(std::function<void()> function) { before_write_ = std::move(function); }
  /// Sets, before prepare(), state whose parts lie on different ranks. Then save() and finish() write the
  /// file before they return, and all ranks call them at the same time. Null: none. It outlives the saver's
  /// use.
  void set_distributed(DistributedState* state) { distributed_ = state; }
  DistributedState* distributed() const { return distributed_; }
  /// Tensors may be on the device: after save() the next update must wait for copied().
  bool copies_from_device() const { return background(); }
  /// Happens when the last save has copied from the device; null: it copied nothing from there.
  const DeviceEvent* copied() const { return writer_ ? writer_->copied() : nullptr; }

  /// A checkpoint is in flight. Always false on other ranks.
  bool busy() const;
  /// Begins the checkpoint of header.global_step. While one is in flight it does nothing and returns false:
  /// try again after a later step. After the call the tensors may change (those on a device: after copied()).
  /// Always true on other ranks, which with distributed() take part; their arguments are not used.
  bool save(const CheckpointHeader& header, std::span<const CheckpointTensor> tensors);
  /// What has ended since the last call, in order. Logs each failure as a warning. For the thread of the
  /// loop.
  std::vector<CheckpointOutcome> poll();
  /// Waits until nothing is in flight; returns how long, which counts as blocked time. Throws
  /// Error(checkpoint), on the chief only, after `limit_seconds`.
  double wait(double limit_seconds);

  /// The last checkpoint of the run. Waits for the one in flight; if that is of the same step, it is not
  /// written again. Throws the same Error(checkpoint) on all ranks if the file cannot be written, or not
  /// within options.timeout_seconds. While they wait, the ranks synchronise every `sync_seconds`, well below
  /// the time limit of the communicator, so that no watchdog takes the wait for a hang. poll() returns the
  /// outcomes. All ranks.
  void finish(Communicator& world, const CheckpointHeader& header, std::span<const CheckpointTensor> tensors,
              double sync_seconds);

  /// The best checkpoint so far, on the chief: by the metrics that were noted.
  std::optional<KeptCheckpoint> best() const { return store_ ? store_->recorded_best() : std::nullopt; }
  /// Notes how good the model is after `step`, for retention by a metric.
  void note_metric(std::int64_t step, double value);
  /// Forgets all that was noted, also by earlier jobs.
  void forget_metrics();
  const SaverOptions& options() const { return options_; }

  // Measured so far, on the chief.

  /// How long the loop has waited for saves.
  double blocked_seconds() const { return blocked_seconds_; }
  /// The longest time from the beginning of a save to the durable file. Before the first one has ended, an
  /// estimate from the size.
  double longest_save_seconds() const { return longest_save_seconds_; }

 private:
  bool background() const { return options_.background && distributed_ == nullptr && !ThreadBan::active(); }
  void collect();
  void add(CheckpointOutcome outcome);
  void begin(const CheckpointHeader& header, std::span<const CheckpointTensor> tensors);
  void wait_together(Communicator& world, double sync_seconds);

  const bool is_chief_;
  const SaverOptions options_;
  std::shared_ptr<CheckpointStore> store_;  // the chief's
  std::unique_ptr<CheckpointWriter> writer_;
  std::function<void()> before_write_;
  DistributedState* distributed_ = nullptr;
  std::vector<CheckpointOutcome> finished_;
  std::int64_t durable_step_ = -1;  // the newest
  bool measured_ = false;
  double blocked_seconds_ = 0, longest_save_seconds_ = 0;
};

}  // namespace lockstep
