// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Where leaves of the shard tree (comm/tree.h) meet, for kernels that add few of them. A node over n leaves
// has the largest power of two below n in its left child, so two leaves, numbered from the node's first one,
// meet the nearer to its root the higher the first bit is in which their numbers differ. For files compiled
// per instruction-set level (isa.h) and for *.cu files.
#pragma once

#include <cstdint>

namespace lockstep {
namespace {  // each file's own, as isa.h wants it

/// Partial sums that wait for what comes behind them; one for each bit of a leaf's number at most, and one.
constexpr int kMostWaiting = 32;

/// Of leaves a < b < c: whether a and b meet in a node that c is not below.
constexpr bool meet_before(std::int32_t a, std::int32_t b, std::int32_t c) {
  const std::int32_t near = a ^ b, far = b ^ c;
  return near < far && near < (near ^ far);  // the highest bit of near is below that of far
}

}  // namespace
}  // namespace lockstep
