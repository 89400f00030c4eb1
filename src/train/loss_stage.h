// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The losses of the executor's microshards: all heads, their sums, and the divisors of these. Where a divisor
// depends on the labels, all ranks agree on it before the first loss of a training step. Allocates nothing
// after the constructor.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "comm/small_sum.h"
#include "core/buffer.h"
#include "core/range.h"
#include "model/heads.h"
#include "model/memory_plan.h"

namespace lockstep {

struct ExecutorContext;

/// A microshard's part of one head's numbers.
struct HeadSums {
  LossSums sums;
  LossCounts counts;
};

class LossStage {
 public:
  /// `own`: the shards of this rank. On the CPU, labels are arranged in `slots` buffers of up to
  /// `most_samples` samples each.
  LossStage(const ExecutorContext& context, bool training, Range own, int slots, std::int64_t most_samples);

  /// The gradient's scale depends on the labels: count() every own microshard and agree() before any run().
  bool agrees() const { return agreed_ != nullptr; }

  /// From the next batch on, gradients are multiplied by `scale`.
  void set_scale(double scale) { scale_ = scale; }
  double scale() const { return scale_; }

  /// Begins a batch of `count` samples on all ranks together: sums and counts are zero.
  void begin(std::int64_t count);
  /// Arranges a microshard's labels in host memory as the heads take them. They are valid until the slot's
  /// next call. Workers call it concurrently, for different slots.
  LabelBlock arrange(int slot, const Labels& labels, std::int64_t n);
  /// Counts a microshard's labels, which are in host memory.
  void count(int shard, const LabelBlock& labels, std::int64_t n);
  /// Sets the counts of labels that the caller has counted.
  void set_counts(int shard, std::span<const LossCounts> counts);
  /// Sums the counts over all ranks. All ranks.
  void agree();

  /// One head's part of a microshard.
  struct Place {
    ConstData outputs;
    Data d_outputs;  ///< written; null: not wanted
    Data into;       ///< if not null, d_outputs is then added to it
  };
  /// Puts all heads' losses into the lane's stream. `labels` on the device.
  void run(const Lane& lane, int shard, std::int64_t n, const LabelBlock& labels,
           std::span<const Place> places);

  /// The sums of an own microshard, by head. Losses are valid when the device has computed them.
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
