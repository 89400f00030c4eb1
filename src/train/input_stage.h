// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Samples on their way to a device with memory of its own. The stage gathers a batch into pinned host memory
// and copies it, on a stream of its own, into one of two places on the device. It works one batch ahead, so
// that the device computes while the host gathers and copies. The number of the step lies before the samples,
// in the same copy: recorded kernels read it there.
//
// One thread. Nothing is allocated after the constructor.
//
// Why there is no such stage on the CPU: a thread that works ahead would need a core, and each compute thread
// gathers the samples of its own microshard, which is a copy where sets lie in memory. Sets that are larger
// than their memory have reader threads (data/sample_stream.h).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/tree.h"
#include "core/buffer.h"
#include "core/range.h"
#include "model/heads.h"
#include "train/batch_source.h"

namespace lockstep {

class InputStage {
 public:
  /// `shards`: those of this rank, of up to `most_samples` samples with `features` features and the labels
  /// that the heads take.
  InputStage(Device& device, Range shards, std::int64_t most_samples, std::int64_t features,
             const Heads& heads);
  ~InputStage();

  /// Makes a batch the current one: fetches it, unless prefetch() has for the same step, and lets `stream`
  /// wait for the copies.
  void use(BatchSource& source, const Batch& batch, std::int64_t step, void* stream);
  /// All that reads the current batch is in the stream by now.
  void used(void* stream);
  /// Fetches another batch and starts its copies, for a use() of the same batch of the same source in `step`.
  void prefetch(BatchSource& source, const Batch& batch, std::int64_t step);

  /// Which of the two places the current batch is in.
  int side() const { return current_; }
  /// The features of the current batch, on the device.
  const float* features(int shard) const;
  /// The value for Lane::step_word; a recording that reads it is valid for this side().
  const std::uint32_t* step_word(int shard) const;
  LabelBlock labels(int shard) const;
  /// The same labels in host memory, valid until the second next prefetch() or use().
  LabelBlock host_labels(int shard) const;
  /// The counts of labels by head.
  std::span<const LossCounts> counts(int shard) const;

 private:
  struct Place;
  struct Side;
  void fill(Side& side, BatchSource& source, const Batch& batch, std::int64_t step);
  Side& side(int index) { return *sides_[static_cast<std::size_t>(index)]; }
  const Place& place(int shard) const;

  Device& device_;
  Range shards_;
  std::int64_t features_;
  const Heads& heads_;
  DeviceStream copies_;
  std::vector<std::unique_ptr<Side>> sides_;
  int current_ = 0;
};

}  // namespace lockstep
