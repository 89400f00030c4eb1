// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/library_versions.h"

#include <fmt/format.h>

#include "io/hdf5_handle.h"

namespace lockstep {

std::string hdf5_library_version() {
  const Hdf5Lock lock;
  unsigned major = 0, minor = 0, release = 0;
  hdf5_checked(H5get_libversion(&major, &minor, &release), {ErrorKind::device, "", ""},
               "query HDF5's version");
  return fmt::format("{}.{}.{}", major, minor, release);
}

}  // namespace lockstep
