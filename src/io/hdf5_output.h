// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Private to io: how HDF5 writes checkpoints. After a write that failed, HDF5 can neither close the file nor
// end properly (1.10 crashes when the process exits). So it never sees one: this file driver writes to a
// descriptor of ours, remembers the first error, and from then on swallows what HDF5 still wants to write.
#pragma once

#include <atomic>
#include <cstdint>

#include "io/hdf5_handle.h"

namespace lockstep {

/// A new and empty file, open for reading and writing. Must outlive the HDF5 file.
struct Hdf5Output {
  int descriptor = -1;
  int error = 0;  ///< errno of the first failure; 0: none
  const std::atomic<bool>* cancelled =
      nullptr;                  ///< if set by another thread, the next write fails: ECANCELED
  std::uint64_t end_bytes = 0;  ///< length of the file so far
};

/// Makes `access` (file access properties) use `output`; to be used for H5Fcreate, whose file name then means
/// nothing. After H5Fclose, the file is whole if output.error is 0.
void hdf5_write_to(const Hdf5Handle& access, Hdf5Output& output, const Hdf5Context& context);

}  // namespace lockstep
