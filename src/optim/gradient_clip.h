// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Clips the gradient of the global batch and measures its norm: after the sum over ranks, the loss scale and
// regularization, before the optimizer. Every rank has the same sum and does the same with it, without
// communication; where ranks have parts of it, they exchange the sums of their blocks. Sums run in a fixed
// order (kernels/clip.h): the same bits on any number of ranks and threads, for sparse gradients as for dense
// ones.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/buffer.h"
#include "core/function_ref.h"
#include "core/range.h"
#include "optim/block_parts.h"
#include "optim/clip_rule.h"
#include "optim/update_context.h"

namespace lockstep {

/// The first flat element at or above `element` that begins a dense block (ClipBlock); the end of the dense
/// elements if there is none. `offsets` are those of the dense variables, ascending, and the end.
std::int64_t block_limit(std::span<const std::int64_t> offsets, std::int64_t element);

class GradientClip {
 public:
  /// Made after VariableStore::commit(). `parts`, where ranks have parts of the dense gradients, begin and
  /// end at blocks (block_limit()).
  GradientClip(const ClipRule& rule, const UpdateContext& context, GradientParts parts = {});

  const ClipRule& rule() const { return rule_; }
  /// Computes the norms of the summed gradients and the factors of clipping. `gradients` are the dense ones,
  /// flat; `sparse` those of sparse tables, or null. Does not change them. No allocation, no wait; with parts
  /// an exchange of all ranks.
  void measure(const float* gradients, const SparseTotals* sparse);
  /// Clips this thread's part of the dense gradients piece by piece and calls then(flat range) after each
  /// piece. The ranges of all threads together cover all dense elements, or this rank's parts of them.
  void clip_dense(int thread, float* gradients, FunctionRef<void(Range)> then);
  /// Clips the gradient's rows in [rows.first, rows.last) of a sparse table.
  void clip_rows(int thread, const Variable& table, const SparseTotals& sparse, Range rows);

  /// totals() waits for the device.
  bool must_wait() const { return !context_.device.is_host(); }
  /// Norms of the last measure(); the same on all ranks. None before the first one.
  std::optional<ClipTotals> totals();

  std::size_t memory_bytes() const {
    return parts_.memory_bytes() + blocks_.size_bytes() + variables_.size_bytes() + sums_.size_bytes() +
           2 * squares_.size_bytes();
  }

 private:
  std::int64_t begin_of(std::int64_t block) const;
  void for_blocks_of(int thread, FunctionRef<void(Range)> then) const {
    parts_.for_share(dense_blocks_, thread, context_.pool.size(), then);
  }
  const Lane& lane_of(int thread) const { return context_.lanes[static_cast<std::size_t>(thread)]; }

  UpdateContext context_;
  ClipRule rule_;
  std::int64_t num_variables_ = 0, dense_blocks_ = 0;
  struct Table {
    VariableId id;
    std::int32_t number;  ///< among the trainable variables, in the order of declaration
    std::int64_t first_block, num_blocks;
  };
  std::vector<Table> tables_;  ///< by Variable::sparse_index
  // On the device: ClipBlock in the order of the flat range; ClipVariable in the order of declaration, which
  // does not depend on which gradients are sparse; a sum per block; per variable its sum of squares and its
  // factor.
  Buffer blocks_, variables_, sums_, squares_, factors_;
  BlockParts parts_;  ///< of the dense blocks
  Buffer totals_;     ///< pinned: a ClipTotals
  DeviceEvent measured_;
  bool has_totals_ = false;
};

}  // namespace lockstep
