// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/update_parts.h"

#include "comm/buckets.h"
#include "core/range.h"
#include "optim/gradient_clip.h"

namespace lockstep {

std::shared_ptr<const Ownership> share_update(const VariableStore& variables, int ranks, int shards,
                                              std::int64_t bucket_first_bytes, std::int64_t bucket_bytes) {
  const std::vector<std::int64_t> offsets = variables.cut_points();
  return std::make_shared<Ownership>(
      make_buckets(variables.dense_elements(), offsets, bucket_first_bytes, bucket_bytes), ranks, shards,
      [&](std::int64_t element) { return block_limit(offsets, element); });
}

std::vector<Range> held_parts(const Ownership& ownership, const VariableStore& variables, int rank) {
  std::vector<Range> parts = ownership.parts(rank);
  const Range tables{variables.dense_elements(), variables.trainable_elements()};
  if (tables.size() > 0 || parts.empty()) parts.push_back(tables);
  return parts;
}

GradientParts gradient_parts(const Ownership& ownership, Communicator& communicator) {
  GradientParts parts{.rank = communicator.rank(), .of_rank = {}, .allgather = {}};
  for (int rank = 0; rank < ownership.ranks(); ++rank) parts.of_rank.push_back(ownership.parts(rank));
  parts.allgather = [&communicator](const void* mine, std::size_t bytes, void* all) {
    communicator.allgather(mine, bytes, all, "norms of the gradients");
  };
  return parts;
}

}  // namespace lockstep
