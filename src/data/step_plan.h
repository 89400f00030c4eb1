// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which samples each step uses: a computation without state. Position p of epoch e maps to a sample through a
// permutation keyed by (seed, e). There is no shuffle buffer, nothing depends on the number of ranks, and a
// resumed run continues inside an epoch from its cursor. Every rank evaluates the same plan.
//
// Vocabulary: an epoch is one pass over the chosen samples, or several. A position is an index into the order
// of an epoch. A batch is a range of positions of one epoch. A batch is divided into microshards.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/range.h"
#include "data/block_order.h"
#include "data/class_quotas.h"
#include "data/cursor.h"
#include "data/permutation.h"
#include "data/sample_choice.h"

namespace lockstep {

class LengthBuckets;
class SampleMixing;

/// samples: a permutation of all samples. blocks: of blocks and within windows of them (block_order.h). none:
/// the file's order in every epoch.
enum class Shuffle { none, samples, blocks };

/// The last batch of an epoch, if there are too few samples for it. smaller: has these. drop: is left out.
/// fill: is completed with the first samples of the epoch's order.
enum class LastBatch { smaller, drop, fill };

struct StepPlanSpec {
  std::int64_t num_samples = 0;  ///< of the data set
  std::int64_t batch_size = 0;   ///< samples of the whole global batch
  std::int64_t shards = 1;       ///< microshards G
  std::uint64_t seed = 0;
  Shuffle shuffle = Shuffle::samples;
  LastBatch last_batch = LastBatch::smaller;
  /// The samples that are used; null: all.
  std::shared_ptr<const SampleChoice> choice = nullptr;
  std::int64_t repeat = 1;  ///< passes over them that are an epoch
  /// Classes have these shares of an epoch instead; for Shuffle::samples.
  std::shared_ptr<const ClassQuotas> quotas = nullptr;
  /// Batches have samples of similar length (length_buckets.h); for Shuffle::samples.
  std::shared_ptr<const LengthBuckets> buckets = nullptr;
  /// Batches are mixed (DatasetBatchSource); null: they are not.
  std::shared_ptr<const SampleMixing> mixing = nullptr;
  /// For Shuffle::blocks: UsedDataset::chosen_blocks().
  std::optional<BlockGrid> blocks = std::nullopt;
  std::int64_t window_blocks = 16;
};

class StepPlan {
 public:
  /// Throws Error(config) if there are no samples, if the batch size or the number of shards is below 1, or
  /// if an epoch has no batch.
  explicit StepPlan(StepPlanSpec spec);

  const StepPlanSpec& spec() const { return spec_; }
  /// The number of batches of a whole epoch.
  std::int64_t steps_per_epoch() const;
  /// The number of positions in the order of an epoch: the chosen samples, times the passes.
  std::int64_t order_size() const { return order_size_; }
  /// The number of samples that the batches of an epoch have together: order_size(), less what is dropped, or
  /// more by what fills the last batch.
  std::int64_t samples_per_epoch() const { return samples_per_epoch_; }

  /// The batch at the cursor. A cursor at the end of an epoch means the start of the next one.
  Batch batch(Cursor cursor) const;
  /// The cursor after that batch; {e + 1, 0} after the last batch of epoch e.
  Cursor advance(Cursor cursor) const;

  /// Microshard `shard` of a batch of `count` samples: offsets [shard * count / G, (shard + 1) * count / G)
  /// in the batch. May be empty.
  Range shard_range(std::int64_t count, std::int64_t shard) const;
  /// All microshard sizes above 0 that can occur from `start` on, ascending. Primitives are created for
  /// these.
  std::vector<std::int64_t> distinct_shard_sizes(Cursor start = {}) const;

  /// out[i] = the sample at position first + i of an epoch. Every chosen sample occurs once in each pass, or
  /// as ClassQuotas says; positions from order_size() on have the samples from the beginning again. Threads
  /// may call it concurrently.
  void samples(std::int64_t epoch, std::int64_t first, std::span<std::int64_t> out) const;
  /// The sample at one position.
  std::int64_t sample_at(std::int64_t epoch, std::int64_t position) const {
    std::int64_t sample = 0;
    samples(epoch, position, {&sample, 1});
    return sample;
  }

 private:
  Cursor normalised(Cursor cursor) const;
  /// Samples of the pass, counted over all epochs, by their indices in the choice.
  void in_pass(std::int64_t pass, std::int64_t first, std::span<std::int64_t> out) const;
  void in_classes(std::int64_t epoch, std::int64_t first, std::span<std::int64_t> out) const;
  void in_buckets(std::int64_t epoch, std::int64_t first, std::span<std::int64_t> out) const;

  StepPlanSpec spec_;
  std::int64_t chosen_ = 0;  ///< samples
  std::int64_t order_size_ = 0;
  std::int64_t samples_per_epoch_ = 0;
  std::shared_ptr<const BlockOrder> block_order_;  ///< null unless blocks are shuffled
};

}  // namespace lockstep
