// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Element-wise float32 addition: the one arithmetic operation of the reduction across ranks.
#pragma once

#include <cstdint>

namespace lockstep {

/// into[i] += from[i] for i < count. No overlap. One rounding per element, so any vector width gives the same
/// bits.
void vector_add(float* into, const float* from, std::int64_t count);

}  // namespace lockstep
