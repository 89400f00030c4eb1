// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which rank owns which part of the flat gradients, where ranks share the update (docs/sharding.md). Each
// bucket is cut into one part per rank, so that a bucket's sum and the exchange of its variables use all
// ranks. Pure arithmetic: every rank computes the parts of all ranks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/function_ref.h"
#include "core/range.h"

namespace lockstep {

class Ownership {
 public:
  /// `cut(i)` is the first element at or above i where a part may begin; it must not descend. Parts may be
  /// empty. `shards` is that of the gradients' sum, whose algorithm decides on the order of the parts.
  Ownership(std::vector<Range> buckets, int ranks, int shards, FunctionRef<std::int64_t(std::int64_t)> cut);
  /// Each bucket is whole on one rank, by bucket.
  Ownership(std::vector<Range> buckets, int ranks, int shards, std::span<const int> owners);

  int ranks() const { return ranks_; }
  const std::vector<Range>& buckets() const { return buckets_; }
  /// Where the parts of a bucket begin and end: ranks() + 1 elements of the flat range, ascending.
  std::span<const std::int64_t> limits(int bucket) const {
    return std::span(limits_).subspan(static_cast<std::size_t>(bucket) * per_bucket(), per_bucket());
  }
  Range part(int bucket, int rank) const;
  /// The parts of a rank in all buckets that are not empty, ascending; neighbours are joined.
  std::vector<Range> parts(int rank) const;

 private:
  std::size_t per_bucket() const { return static_cast<std::size_t>(ranks_) + 1; }

  std::vector<Range> buckets_;
  int ranks_, shards_;
  std::vector<std::int64_t> limits_;
};

}  // namespace lockstep
