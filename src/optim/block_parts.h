// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Blocks of the flat gradients whose squares are added one by one (kernels/clip.h), where ranks have parts of
// the gradients. Each rank adds the squares of its own blocks; exchange() gives all ranks the sums of all
// blocks, so that each adds them in the same order as without parts.
#pragma once

#include <span>
#include <vector>

#include "core/buffer.h"
#include "core/function_ref.h"
#include "core/range.h"
#include "kernels/clip.h"
#include "optim/update_context.h"

namespace lockstep {

class BlockParts {
 public:
  /// Every rank has all blocks.
  BlockParts() = default;
  /// `blocks`: in the order of the flat range; no part cuts one.
  BlockParts(std::span<const ClipBlock> blocks, GradientParts parts);

  /// Calls then(blocks) with the share of a thread of the blocks [0, num_blocks), or of each range of them
  /// that this rank has.
  void for_share(std::int64_t num_blocks, int thread, int threads, FunctionRef<void(Range)> then) const;
  /// This rank has written the sums of its own blocks; afterwards all have all. All ranks; no allocation.
  void exchange(double* sums);

  std::size_t memory_bytes() const { return exchanged_.size_bytes(); }

 private:
  GradientParts parts_;
  std::vector<std::vector<Range>> of_rank_;  ///< empty: all ranks have all blocks
  std::int64_t most_ = 0;                    ///< blocks of one rank
  Buffer exchanged_;                         ///< `most_` sums of each rank, after this rank's own
};

}  // namespace lockstep
