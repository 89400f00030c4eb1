// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Work before training that threads share, such as reading files: threads of its own, which end with it. The
// threads of a step are those of thread_pool.h.
#pragma once

#include <cstdint>

#include "core/function_ref.h"

namespace lockstep {

/// Calls work(i) for 0 <= i < count on up to `threads` threads, the calling one among them, in rising order
/// of i. If calls throw, no further one begins, and the exception of the lowest i is rethrown: the same on
/// any number of threads, if work(i) alone decides whether it throws.
void in_parallel(int threads, std::int64_t count, FunctionRef<void(std::int64_t i)> work);

}  // namespace lockstep
