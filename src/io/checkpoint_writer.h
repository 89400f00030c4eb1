// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A thread that writes checkpoints beside the training loop. start() copies the tensors into memory of its
// own, which is all that the loop waits for; hashing, writing, flushing and retention are the thread's. At
// most one checkpoint is in flight. For the chief; all calls from one thread, the loop's.
//
// Tensors on a GPU are copied on a stream beside the one that computes, and the thread waits for that: the
// loop only has to keep the next update behind copied().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/error.h"
#include "core/thread_pool.h"
#include "io/checkpoint_store.h"

namespace lockstep {

/// What became of one checkpoint.
struct CheckpointOutcome {
  std::int64_t step = 0;
  std::string path;            ///< of the file; empty if it failed
  std::size_t bytes = 0;       ///< of its tensors
  double blocked_seconds = 0;  ///< that the loop waited
  double write_seconds = 0;    ///< from the copy to the durable file
  std::optional<Error> error;  ///< why it failed; the temporary is gone, older checkpoints are untouched
};

/// Who copies: `pool` (may be null) helps with what is in host memory; tensors on `device` are as they are
/// when the work that is in `stream` now is done. All outlive the writer.
struct CheckpointCopyWays {
  ThreadPool* pool = nullptr;
  Device* device = nullptr;  ///< null, or the CPU: no tensor is on a device
  void* stream = nullptr;
};

class CheckpointWriter {
 public:
  /// Starts the thread and takes memory for `tensors`.
  CheckpointWriter(std::shared_ptr<CheckpointStore> store, std::span<const CheckpointTensor> tensors,
                   CheckpointCopyWays ways);
  /// A checkpoint in flight gets some seconds to end, is then cancelled, and at last left alone with a
  /// warning.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// True from start() until the file is durable or has failed.
  bool busy() const;
  /// The step in flight; of the last one if there is none.
  std::int64_t step() const;
  /// Not while busy. Afterwards the tensors may change, those on a device after copied(). Memory grows if
  /// they are larger than the first ones.
  void start(const CheckpointHeader& header, std::span<const CheckpointTensor> tensors);
  /// When the tensors on the device have been copied; null: none ever is there.
  const DeviceEvent* copied() const;
  /// What ended since the last call, in order.
  std::vector<CheckpointOutcome> poll();
  /// Waits until nothing is in flight; false if `limit_seconds` pass before.
  bool wait(double limit_seconds) const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // also the thread's, should it be left alone
  CheckpointCopyWays ways_;
};

}  // namespace lockstep
