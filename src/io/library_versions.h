// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Versions of the libraries that io uses, as loaded: for `lockstep info`.
#pragma once

#include <string>

namespace lockstep {

/// "1.10.8". Throws Error(device) if HDF5 does not say.
std::string hdf5_library_version();

}  // namespace lockstep
