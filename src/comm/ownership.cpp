// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/ownership.h"

#include <algorithm>

#include "comm/tree_reduction.h"
#include "core/range.h"

namespace lockstep {

Ownership::Ownership(std::vector<Range> buckets, int ranks, int shards,
                     FunctionRef<std::int64_t(std::int64_t)> cut)
    : buckets_(std::move(buckets)), ranks_(ranks), shards_(shards) {
  for (const Range& bucket : buckets_)
    for (int position = 0; position <= ranks; ++position)
      limits_.push_back(position == ranks ? bucket.last
                        : position == 0   ? bucket.first
                                          : std::clamp(cut(bucket.first + bucket.size() * position / ranks),
                                                       limits_.back(), bucket.last));
}

Ownership::Ownership(std::vector<Range> buckets, int ranks, int shards, std::span<const int> owners)
    : buckets_(std::move(buckets)), ranks_(ranks), shards_(shards) {
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    const int owner = TreeReduction::position_of(owners[bucket], ranks, shards);
    for (int position = 0; position <= ranks; ++position)
      limits_.push_back(position <= owner ? buckets_[bucket].first : buckets_[bucket].last);
  }
}

Range Ownership::part(int bucket, int rank) const {
  const auto position = static_cast<std::size_t>(TreeReduction::position_of(rank, ranks_, shards_));
  const std::span<const std::int64_t> all = limits(bucket);
  return {all[position], all[position + 1]};
}

std::vector<Range> Ownership::parts(int rank) const {
  std::vector<Range> parts;
  for (int bucket = 0; bucket < static_cast<int>(buckets_.size()); ++bucket) {
    const Range own = part(bucket, rank);
    if (own.size() == 0) continue;
    if (!parts.empty() && parts.back().last == own.first)
      parts.back().last = own.last;
    else
      parts.push_back(own);
  }
  return parts;
}

}  // namespace lockstep
