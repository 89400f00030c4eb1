// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/vector_add.h"

#include "core/vector_clones.h"

namespace lockstep {

// Of a loop: what it writes is not read by a later round.
#ifdef __clang__
#define LOCKSTEP_NO_OVERLAP _Pragma("clang loop vectorize(assume_safety)")
#else
#define LOCKSTEP_NO_OVERLAP _Pragma("GCC ivdep")
#endif

LOCKSTEP_VECTOR_CLONES void vector_add(float* __restrict into, const float* __restrict from,
                                       std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) into[i] += from[i];
}

LOCKSTEP_VECTOR_CLONES void vector_sum(float* to, const float* a, const float* b, std::int64_t count) {
  LOCKSTEP_NO_OVERLAP
  for (std::int64_t i = 0; i < count; ++i) to[i] = a[i] + b[i];
}

}  // namespace lockstep
