// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A thread that writes checkpoints in the background of the training loop. start() copies the tensors to the
// writer's memory, and the loop waits only for this copy. The thread does hashing, writing, flushing and
// retention. At most one checkpoint is in flight. For the chief; one thread, the loop's, makes all calls.
//
// Tensors on a GPU are copied in a separate stream, and the writer's thread waits for these copies. The loop
// must only make the next update wait for copied().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

/// The result of one checkpoint.
struct CheckpointOutcome {
  std::int64_t step = 0;
  std::string path;            ///< of the file; empty on failure
  std::size_t bytes = 0;       ///< of its tensors
  double blocked_seconds = 0;  ///< time that the loop waited
  double write_seconds = 0;    ///< from the copy to the durable file
  std::optional<Error> error;  ///< reason of a failure; older checkpoints are untouched
};

/// How tensors are copied. `pool` (may be null) helps with tensors in host memory. Tensors on `device` are
/// saved as of the completion of the work that is in `stream` at the call. All members outlive the writer.
struct CheckpointCopyWays {
  ThreadPool* pool = nullptr;
  Device* device = nullptr;  ///< null, or the CPU: no tensor is on a device
  void* stream = nullptr;
};

class CheckpointWriter {
 public:
  /// Starts the thread and allocates memory for `tensors`.
  CheckpointWriter(std::shared_ptr<CheckpointStore> store, std::span<const CheckpointTensor> tensors,
                   CheckpointCopyWays ways);
  /// Waits some seconds for a checkpoint in flight, then cancels it. If it still does not end, logs a warning
  /// and detaches the thread.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// True from start() until the file is durable or has failed.
  bool busy() const;
  /// The step of the checkpoint in flight, or of the last one.
  std::int64_t step() const;
  /// Starts a checkpoint; not while busy. After the call the tensors may change, those on a device after
  /// copied(). The writer's memory grows if the tensors are larger than the first ones.
  void start(const CheckpointHeader& header, std::span<const CheckpointTensor> tensors);
  /// Called in the writer's thread before each file is written; not while busy.
  void set_before_write(std::function<void()> function);
  /// The event of the completed copy of the tensors on the device; null if there are never any.
  const DeviceEvent* copied() const;
  /// The results since the last call, in order.
  std::vector<CheckpointOutcome> poll();
  /// Waits until nothing is in flight. Returns false if that takes longer than `limit_seconds`.
  bool wait(double limit_seconds) const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // shared with the thread, which may be detached
  CheckpointCopyWays ways_;
};

}  // namespace lockstep
