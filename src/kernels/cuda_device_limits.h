// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What the current GPU has, for launches. Only times may depend on it, never bits.
#pragma once

#include <cstddef>

namespace lockstep::cuda {

/// The most shared memory of a block in bytes, static and dynamic (99 KiB or more since capability 8.0).
std::size_t most_shared_bytes();
int num_multiprocessors();

}  // namespace lockstep::cuda
