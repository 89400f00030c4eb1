// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of sines and cosines that positional_embedding adds.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

/// steps x features. Row `position` of the table of Vaswani et al. 2017, section 3.5: columns 2i and 2i + 1
/// are the sine and the cosine of position / 10000^(2i / features).
std::vector<float> sinusoids(std::int64_t steps, std::int64_t features);

}  // namespace lockstep
