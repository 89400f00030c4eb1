// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Element-wise float32 addition, the arithmetic of the reduction across ranks.
#pragma once

#include <cstdint>

namespace lockstep {

/// into[i] += from[i] for i < count. The ranges must not overlap. Each element is rounded once, so the bits
/// do not depend on the vector width.
void vector_add(float* into, const float* from, std::int64_t count);
/// to[i] = a[i] + b[i]. `to` may be a or b; otherwise the ranges must not overlap.
void vector_sum(float* to, const float* a, const float* b, std::int64_t count);

}  // namespace lockstep
