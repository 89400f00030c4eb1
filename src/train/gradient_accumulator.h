// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The sums of gradients inside one rank, along the shard tree. Each worker adds the microshards that it
// computed, as in a binary counter; then all threads together add what the tree joins across workers, each a
// slice. The results are the rank's partial sums, which GradientReducer adds across ranks. If the reducer
// compresses, the nodes below them are rounded as they are added; with error feedback leaves too.
//
// A phase (ExecutionPlan) fills one range of the flat gradients. Scratch is as large as the largest phase,
// not as the model.
#pragma once

#include <span>
#include <vector>

#include "comm/gradient_reducer.h"
#include "comm/tree.h"
#include "core/buffer.h"
#include "core/range.h"
#include "core/thread_pool.h"
#include "kernels/kernel_table.h"

namespace lockstep {

class GradientAccumulator {
 public:
  /// `shards_of_workers`: the consecutive shards that each worker computes. `max_phase_elements`: elements of
  /// the largest phase's range.
  GradientAccumulator(const KernelTable& kernels, Device& device, ThreadPool& pool, GradientReducer& reducer,
                      int shards, std::span<const Range> shards_of_workers, std::int64_t max_phase_elements);

  /// The consecutive shards that a worker computes.
  Range shards_of(int worker) const { return workers_[static_cast<std::size_t>(worker)].shards; }

  /// Where the shard's gradients of the phase's range are written; element 0 is range.first. Called on the
  /// worker that computes the shard. `base` is the flat element that scratch begins with: range.first, or
  /// less for a part of a longer range.
  float* leaf(int worker, std::int64_t shard, Range range, std::int64_t base) const;
  /// The leaf is complete: adds what the tree joins inside this worker. In the order of the shards.
  void finished(const Lane& lane, int worker, std::int64_t shard, Range range, std::int64_t base) const;
  /// All workers have finished all their shards: adds across workers, with the first lanes, one per thread.
  /// On the main thread, outside pool.run().
  void combine(std::span<const Lane> lanes, Range range, std::int64_t base) const;

  std::size_t memory_bytes() const;

 private:
  struct Worker {
    Range shards{};
    CounterPlan counter;
    std::vector<float*>
        slots;  ///< start of the buffer of each slot; where_[slot] says whether it is a whole partial
    std::vector<bool> is_partial;
  };
  /// A step of the tree, for the elements from `first`.
  void add(const Lane& lane, std::int64_t first, std::int64_t count, float* into, const float* from,
           const TreeStep& step) const;
  static float* at(const Worker& worker, int slot, Range range, std::int64_t base) {
    const auto i = static_cast<std::size_t>(slot);
    return worker.slots[i] + (worker.is_partial[i] ? range.first : range.first - base);
  }

  const KernelTable& kernels_;
  ThreadPool& pool_;
  bool compress_;
  ErrorFeedback* feedback_;  ///< null: errors are not given back
  std::vector<Worker> workers_;
  std::vector<Buffer> scratch_;
  TreePlan across_;
  std::vector<std::pair<int, int>> input_place_;  ///< input of across_ -> (worker, slot)
};

}  // namespace lockstep
