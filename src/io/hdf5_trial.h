// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes an HDF5 file, reads it again and compares: for `lockstep doctor`.
#pragma once

#include <cstddef>
#include <string>

namespace lockstep {

/// Returns the seconds that it took. The file stays. Throws Error(checkpoint).
double hdf5_trial(const std::string& path, std::size_t bytes);

}  // namespace lockstep
