// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How a flat range of gradients is cut into buckets that are reduced one after the other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/thread_pool.h"

namespace lockstep {

/// Cuts [0, num_elements) of float32 into consecutive buckets, only at `cut_points` (element offsets where a
/// variable ends, ascending; 0 and num_elements need not be among them). The first bucket ends at the first
/// cut point where it has at least `first_bytes`, so that communication starts early; the others have at
/// least `bytes`, the last one what is left.
std::vector<Range> make_buckets(std::int64_t num_elements, std::span<const std::int64_t> cut_points,
                                std::int64_t first_bytes = std::int64_t{1} << 20,
                                std::int64_t bytes = std::int64_t{25} << 20);

}  // namespace lockstep
