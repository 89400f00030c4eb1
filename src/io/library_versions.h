// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Versions of the loaded libraries, for `lockstep info`.
#pragma once

#include <string>

namespace lockstep {

/// HDF5's version, such as "1.10.8". Throws Error(device) if HDF5 does not report it.
std::string hdf5_library_version();

}  // namespace lockstep
