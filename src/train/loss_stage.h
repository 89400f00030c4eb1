// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The executor's losses: all heads of one microshard, their sums, and what these are divided by. Where that
// depends on the labels, it is agreed upon by all ranks before the first loss of a training step. Allocates
// nothing after the constructor.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "comm/small_sum.h"
#include "core/buffer.h"
#include "model/heads.h"
#include "model/memory_plan.h"

namespace lockstep {

struct ExecutorContext;
struct Microshard;

/// A microshard's part of one head's numbers.
struct HeadSums {
  LossSums sums;
  LossCounts counts;
};

class LossStage {
 public:
  /// `own`: the shards of this rank. Where there is no device memory, labels are arranged in `slots` places,
  /// of up to `most_samples` samples each.
  LossStage(const ExecutorContext& context, bool training, Range own, int slots, std::int64_t most_samples);

  /// The gradient's scale depends on the labels: count() every own microshard and agree() before any run().
  bool agrees() const { return agreed_ != nullptr; }

  /// From the next batch on gradients are multiplied by it.
  void set_scale(double scale) { scale_ = scale; }
  double scale() const { return scale_; }

  /// A new batch: sums and counts are zero. `count`: samples of the whole batch.
  void begin(std::int64_t count);
  /// Host labels of a microshard, as the heads take them; they live until the slot's next call. Different
  /// slots on different threads.
  LabelBlock arrange(int slot, const Labels& labels, std::int64_t n);
  /// Counts a microshard's labels, which are in host memory.
  void count(int shard, const LabelBlock& labels, std::int64_t n);
  /// The same, counted by somebody else.
  void set_counts(int shard, std::span<const LossCounts> counts);
  /// All ranks.
  void agree();

  /// One head's part of a microshard.
  struct Place {
    const float* outputs = nullptr;
    float* d_outputs = nullptr;  ///< written; null: nobody wants it
    float* into = nullptr;       ///< if not null: d_outputs is added to it then
  };
  /// Puts all heads' losses into the lane's stream. `labels` on the device.
  void run(const Lane& lane, int shard, std::int64_t n, const LabelBlock& labels,
           std::span<const Place> places);

  /// Of an own microshard, by head; the losses when they are done.
  std::span<const HeadSums> results(int shard);

 private:
  std::size_t first(int shard) const {
    return static_cast<std::size_t>(shard - own_.first) * static_cast<std::size_t>(heads_.size());
  }

  const Heads& heads_;
  const KernelTable& kernels_;
  bool training_;
  double scale_ = 1;
  Range own_;
  Buffer sums_;                       ///< pinned: LossSums by own microshard and head
  std::vector<LossCounts> counts_;    ///< likewise
  std::vector<double> divisors_;      ///< of the whole batch, by head
  std::vector<HeadSums> results_;     ///< by own microshard and head
  std::vector<Buffer> labels_;        ///< by slot
  std::unique_ptr<SmallSum> agreed_;  ///< of the divisors
};

}  // namespace lockstep
