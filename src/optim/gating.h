// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// When variables are updated (optimizer.gating).
#pragma once

namespace lockstep {

/// With the same bits: graph: when the step's gradients are all summed; op: the variables of a layer when the
/// sums of that layer are there, during the rest of the backward pass; none: each when its own sum is there.
enum class Gating { graph, op, none };

inline const char* name_of(Gating gating) {
  return gating == Gating::none ? "none" : gating == Gating::op ? "op" : "graph";
}

}  // namespace lockstep
