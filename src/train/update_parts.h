// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How ranks share the update of the variables (`optimizer.shard`, docs/sharding.md): parts of the flat range
// that begin and end at the blocks of the gradient's norm, so that no sum of squares crosses ranks. Sparse
// tables stay whole on each rank.
#pragma once

#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "comm/ownership.h"
#include "core/range.h"
#include "model/variable_store.h"
#include "optim/update_context.h"

namespace lockstep {

/// Called after VariableStore::commit(). The buckets are those of the gradients (make_buckets()).
std::shared_ptr<const Ownership> share_update(const VariableStore& variables, int ranks, int shards,
                                              std::int64_t bucket_first_bytes, std::int64_t bucket_bytes);

/// The parts of the flat range whose slots a rank holds: its own, and the sparse tables. Never empty: a rank
/// without any holds an empty part.
std::vector<Range> held_parts(const Ownership& ownership, const VariableStore& variables, int rank);

/// What GradientClip needs of the parts. The communicator outlives it.
GradientParts gradient_parts(const Ownership& ownership, Communicator& communicator);

}  // namespace lockstep
