// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which sample is used when: arithmetic, not state. Position p of epoch e maps to a sample through a
// permutation keyed by (seed, e), so there is no shuffle buffer, nothing depends on ranks, and a resumed run
// goes on inside the epoch from its cursor. Every rank evaluates the same plan.
//
// Vocabulary: an epoch is one pass over the samples; a position is an index into an epoch's order; a batch is
// a range of positions (of one epoch); it is cut into microshards.
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
  bool drop_remainder = false;  ///< leave out the last, smaller batch of an epoch
};

/// Where a run is: the samples of `epoch` before position `samples_consumed` have been used. In checkpoints.
struct Cursor {
  std::int64_t epoch = 0;
  std::int64_t samples_consumed = 0;
  friend bool operator==(const Cursor&, const Cursor&) = default;
};

/// Positions [first, first + count) of `epoch`.
struct Batch {
  std::int64_t epoch, first, count;
};

class StepPlan {
 public:
  /// Throws Error(config) for no samples, a batch or shard count below 1, or an epoch without a single batch.
  explicit StepPlan(StepPlanSpec spec);

  const StepPlanSpec& spec() const { return spec_; }
  /// Batches of an epoch that is begun at its start.
  std::int64_t steps_per_epoch() const;
  /// Samples that an epoch uses: all, or without drop_remainder's rest.
  std::int64_t samples_per_epoch() const { return samples_per_epoch_; }

  /// The batch at the cursor. A cursor at an epoch's end stands for the next one's start.
  Batch batch(Cursor cursor) const;
  /// The cursor after that batch; after the last batch of epoch e it is {e + 1, 0}.
  Cursor advance(Cursor cursor) const;

  /// Microshard `shard` of a batch of `count`: offsets [shard * count / G, (shard + 1) * count / G) in the
  /// batch. May be empty.
  Range shard_range(std::int64_t count, std::int64_t shard) const;
  /// All microshard sizes above 0 that can occur from `start` on, ascending: what primitives are made for.
  std::vector<std::int64_t> distinct_shard_sizes(Cursor start = {}) const;

  /// The sample at a position of an epoch, 0 <= position < num_samples. Every sample occurs once per epoch.
  std::int64_t sample_at(std::int64_t epoch, std::int64_t position) const;

 private:
  Cursor normalised(Cursor cursor) const;

  StepPlanSpec spec_;
  std::int64_t samples_per_epoch_ = 0;
  int low_bits_ = 0, high_bits_ = 0;  ///< the two halves of an index in the permutation
};

}  // namespace lockstep
