// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which samples each step uses: a computation without state. Position p of epoch e maps to a sample through a
// permutation keyed by (seed, e). There is no shuffle buffer, nothing depends on the number of ranks, and a
// resumed run continues inside an epoch from its cursor. Every rank evaluates the same plan.
//
// Vocabulary: an epoch is one pass over the samples. A position is an index into the order of an epoch. A
// batch is a range of positions of one epoch. A batch is divided into microshards.
#pragma once

#include <cstdint>
#include <vector>

#include "core/thread_pool.h"

namespace lockstep {

struct StepPlanSpec {
  std::int64_t num_samples = 0;
  std::int64_t batch_size = 0;  ///< samples of the whole global batch
  std::int64_t shards = 1;      ///< microshards G
  std::uint64_t seed = 0;
  bool shuffle = true;          ///< false: the file's order in every epoch
  bool drop_remainder = false;  ///< skip the last, smaller batch of an epoch
};

/// The position of a run: the samples of `epoch` before position `samples_consumed` have been used. Stored in
/// checkpoints.
struct Cursor {
  std::int64_t epoch = 0;
  std::int64_t samples_consumed = 0;
  friend bool operator==(const Cursor&, const Cursor&) = default;
};

/// Positions [first, first + count) of `epoch`.
struct Batch {
  std::int64_t epoch, first, count;
  friend bool operator==(const Batch&, const Batch&) = default;
};

class StepPlan {
 public:
  /// Throws Error(config) if there are no samples, if the batch size or the number of shards is below 1, or
  /// if an epoch has no batch.
  explicit StepPlan(StepPlanSpec spec);

  const StepPlanSpec& spec() const { return spec_; }
  /// The number of batches of a whole epoch.
  std::int64_t steps_per_epoch() const;
  /// The number of samples that an epoch uses: all, or without the remainder if drop_remainder is set.
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

  /// The sample at a position of an epoch, 0 <= position < num_samples. Every sample occurs once per epoch.
  std::int64_t sample_at(std::int64_t epoch, std::int64_t position) const;

 private:
  Cursor normalised(Cursor cursor) const;

  StepPlanSpec spec_;
  std::int64_t samples_per_epoch_ = 0;
  int low_bits_ = 0, high_bits_ = 0;  ///< bits of the two halves of an index in the permutation
};

}  // namespace lockstep
