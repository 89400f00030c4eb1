// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Samples on their way to a device with memory of its own: gathered into pinned host memory, copied on a
// stream of their own into one of two places on the device, one batch ahead of the computation. So the copy
// of a batch and the gathering of the next one happen while the device computes.
//
// One thread. Nothing is allocated after the constructor.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/tree.h"
#include "core/buffer.h"
#include "model/heads.h"

namespace lockstep {

struct BatchView;
struct Microshard;

class InputStage {
 public:
  /// `shards`: those of this rank, of up to `most_samples` samples with so many features and the labels that
  /// the heads take.
  InputStage(Device& device, Range shards, std::int64_t most_samples, std::int64_t features,
             const Heads& heads);
  ~InputStage();

  /// Makes `batch` the current one: fetches what prefetch() did not, and lets `stream` wait for the copies.
  void use(const BatchView& batch, void* stream);
  /// What the stream has been given so far is all that reads the current batch.
  void used(void* stream);
  /// Fetches another batch and starts its copies. use() of the batch with the same ticket finds it there.
  void prefetch(const BatchView& batch);

  /// Which of the two places the current batch is in.
  int side() const { return current_; }
  /// Of the current batch, on the device.
  const Microshard& microshard(int shard) const;
  const float* features(int shard) const;
  LabelBlock labels(int shard) const;
  /// The same labels in host memory, until the next prefetch() or use() but one.
  LabelBlock host_labels(int shard) const;
  /// By head.
  std::span<const LossCounts> counts(int shard) const;

 private:
  struct Place;
  struct Side;
  void fill(Side& side, const BatchView& batch);
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
