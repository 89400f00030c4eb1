// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The order of an epoch in which disks read whole blocks, and each rank reads its own: a computation, like
// the order of single samples (permutation.h).
//
//  1. The blocks of the set are permuted. One after the other they are a sequence of all samples.
//  2. Each microshard of the batches has a part of the sequence of its own, as long as the samples that it
//     takes in an epoch. A rank owns microshards, so it reads the blocks of its parts and no others.
//  3. Each part is cut into windows of `window_blocks` blocks; the samples of a window are permuted.
//
// So a microshard needs the blocks of one window at a time, and a batch has samples of as many windows as it
// has microshards. The order depends on the seed, the blocks, the batch size and the number of microshards.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/range.h"
#include "data/block_grid.h"
#include "data/permutation.h"

namespace lockstep {

class BlockOrder {
 public:
  struct Spec {
    std::int64_t batch_size, shards;
    std::int64_t samples_per_epoch;  ///< of all batches
    std::int64_t window_blocks;
    std::uint64_t seed;
  };

  BlockOrder(BlockGrid grid, const Spec& spec);

  /// out[i] = the sample at position first + i of the epoch. All samples of the epoch's batches occur once.
  /// Threads may call it concurrently. Allocates in the first call of an epoch.
  void samples(std::int64_t epoch, std::int64_t first, std::span<std::int64_t> out) const;

 private:
  /// Where the sequence of an epoch deviates from blocks of equal size.
  struct Epoch {
    std::int64_t number;
    std::vector<std::int64_t> slot;   ///< after a short block, ascending
    std::vector<std::int64_t> start;  ///< of the sequence there
  };
  std::shared_ptr<const Epoch> epoch(std::int64_t number) const;
  /// Position in the sequence -> sample.
  std::int64_t in_sequence(const Epoch& epoch, std::int64_t place) const;
  Range part_of(std::int64_t shard) const;

  BlockGrid grid_;
  Spec spec_;
  KeyedPermutation blocks_;
  std::int64_t full_batches_, last_batch_;
  mutable std::mutex mutex_;
  mutable std::array<std::shared_ptr<const Epoch>, 2> epochs_;  ///< an epoch and the next, by parity
};

}  // namespace lockstep
