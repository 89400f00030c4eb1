// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Divides a flat range of gradients into buckets, which are reduced one after the other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/range.h"

namespace lockstep {

/// Divides [0, num_elements) of float32 into consecutive buckets. Cuts only at `cut_points`: ascending
/// element offsets where a variable ends; 0 and num_elements need not be among them. The first bucket ends at
/// the first cut point where it has at least `first_bytes`, so that communication starts early. The others
/// have at least `bytes`, except that the last one holds the remainder.
std::vector<Range> make_buckets(std::int64_t num_elements, std::span<const std::int64_t> cut_points,
                                std::int64_t first_bytes = std::int64_t{1} << 20,
                                std::int64_t bytes = std::int64_t{25} << 20);

}  // namespace lockstep
