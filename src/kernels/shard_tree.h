// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Merge order of the shard tree (comm/tree.h), for kernels that add a sparse set of its leaves. The left
// child of a node over n leaves covers the largest power of two below n. For two leaves, numbered from the
// node's first leaf, take the highest bit in which their numbers differ: the higher the bit, the closer their
// common ancestor is to the root. For files compiled per instruction-set level (isa.h) and for *.cu files.
#pragma once

#include <cstdint>

namespace lockstep {
namespace {  // internal linkage, as isa.h requires

/// Maximum number of pending partial sums: one per bit of a leaf's number, and one more.
constexpr int kMaxPending = 32;

/// For leaves a < b < c: true if a and b have a common ancestor that does not contain c.
constexpr bool joined_before(std::int32_t a, std::int32_t b, std::int32_t c) {
  const std::int32_t near = a ^ b, far = b ^ c;
  return near < far && near < (near ^ far);  // compares the highest set bits of near and far
}

}  // namespace
}  // namespace lockstep
