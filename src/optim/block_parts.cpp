// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/block_parts.h"

#include <algorithm>

#include "core/error.h"
#include "core/range.h"

namespace lockstep {

BlockParts::BlockParts(std::span<const ClipBlock> blocks, GradientParts parts) : parts_(std::move(parts)) {
  const auto block_at = [&](std::int64_t element) {
    const auto at = std::ranges::lower_bound(blocks, element, {}, &ClipBlock::first) - blocks.begin();
    if (at > 0) {
      const ClipBlock& before = blocks[static_cast<std::size_t>(at) - 1];
      LOCKSTEP_CHECK(before.first + before.count <= element, "a part begins at {} in the block [{}, {})",
                     element, before.first, before.first + before.count);
    }
    return static_cast<std::int64_t>(at);
  };
  for (const std::vector<Range>& of_rank : parts_.of_rank) {
    std::vector<Range>& found = of_rank_.emplace_back();
    std::int64_t count = 0;
    for (const Range& part : of_rank) {
      found.push_back({block_at(part.first), block_at(part.last)});
      count += found.back().size();
    }
    most_ = std::max(most_, count);
  }
  exchanged_ = Buffer(cpu_device(), (of_rank_.size() + 1) * static_cast<std::size_t>(most_) * sizeof(double));
}

void BlockParts::for_share(std::int64_t num_blocks, int thread, int threads,
                           FunctionRef<void(Range)> then) const {
  const auto share_of = [&](Range range) {
    const Range share = part_of(range.size(), thread, threads);
    if (share.size() > 0) then({range.first + share.first, range.first + share.last});
  };
  if (of_rank_.empty()) return share_of({0, num_blocks});
  for (const Range& own : of_rank_[static_cast<std::size_t>(parts_.rank)]) share_of(own);
}

void BlockParts::exchange(double* sums) {
  if (of_rank_.empty()) return;
  double* const mine = exchanged_.as<double>().data();
  double* const all = mine + most_;
  double* to = mine;
  for (const Range& own : of_rank_[static_cast<std::size_t>(parts_.rank)])
    to = std::copy(sums + own.first, sums + own.last, to);
  parts_.allgather(mine, static_cast<std::size_t>(most_) * sizeof(double), all);
  for (std::size_t rank = 0; rank < of_rank_.size(); ++rank) {
    const double* from = all + static_cast<std::int64_t>(rank) * most_;
    for (const Range& range : of_rank_[rank]) {
      std::copy(from, from + range.size(), sums + range.first);
      from += range.size();
    }
  }
}

}  // namespace lockstep
