// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/vector_add.h"

// One version per instruction set, selected when the program is loaded. The sanitizers' runtime is not
// initialised that early.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define LOCKSTEP_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define LOCKSTEP_VECTOR_CLONES
#endif

namespace lockstep {

LOCKSTEP_VECTOR_CLONES void vector_add(float* __restrict into, const float* __restrict from,
                                       std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) into[i] += from[i];
}

}  // namespace lockstep
