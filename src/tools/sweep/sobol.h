// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Sobol's low-discrepancy sequence: points that fill a cube more evenly than random ones. Direction numbers:
// S. Joe and F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional projections", SIAM J. Sci.
// Comput. 30 (2008), file new-joe-kuo-6.21201.
#pragma once

#include <cstddef>
#include <cstdint>

#include "run/sections/sweep_options.h"

namespace lockstep {

inline constexpr std::size_t kSobolDimensions = kMostSobolKeys;

/// Coordinate `dimension` of point `index`, as a fraction of 2^32. In the order of the binary (not the Gray)
/// code: any first 2^n points are the same set in both.
std::uint32_t sobol_word(std::uint32_t index, std::size_t dimension);

}  // namespace lockstep
