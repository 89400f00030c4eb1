// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Recomputation of activations (activation checkpointing; Chen et al. 2016, arXiv:1604.06174). A segment is a
// set of operations whose activations are not kept from the forward to the backward pass. Immediately before
// the backward pass of its last operation, those of its operations that are needed compute once more what
// they computed in the forward pass, from the values that enter the segment, which are kept. The same kernels
// run on the same numbers, so the bits of a step do not change.
//
// An operation is computed once more if an operation of its segment reads its output after the loss, unless
// one outside does, too, and it is kept for that one; and if it saves something for its own backward call. A
// collective layer keeps its totals, so its forward() is called once more without forward_local() and without
// a synchronisation.
//
// Pure arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/graph.h"
#include "model/recompute.h"

namespace lockstep {

/// Sets Graph::Operation::recomputed from the segments. The operations are prepared.
void find_recomputed(Graph::Calls& calls);
/// Replaces the segments by those with which microshards of up to `max_samples` samples need the least
/// memory; none if no choice saves any. Calls find_recomputed().
void choose_segments(Graph::Calls& calls, std::int64_t max_samples);

/// By operation: those that are computed once more immediately before its backward call, in order.
std::vector<std::vector<int>> recomputations(const Graph::Calls& calls);

/// What recomputation saves and costs in a microshard of some number of samples.
struct RecomputationCost {
  int segments = 0;
  std::size_t bytes = 0, bytes_without = 0;  ///< of activations, gradients and saved state
  double share = 0;  ///< of the multiplications and additions of a forward pass that are done once more
};
/// The cost of training calls. Zero segments: nothing is recomputed.
RecomputationCost recomputation_cost(const Graph::Calls& calls, std::int64_t max_samples);
/// What a user is told of it: "3.10 MB of activations per microshard instead of 9.42 MB: 6 segments compute
/// 79 % of the forward pass once more"; empty: no layer is marked and nothing is chosen.
std::string recomputation_text(Recompute which, const Graph::Calls& calls, std::int64_t max_samples);

}  // namespace lockstep
