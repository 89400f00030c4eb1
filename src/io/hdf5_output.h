// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to io: the file driver with which HDF5 writes checkpoints. After a failed write HDF5 can neither
// close the file nor shut down (1.10 crashes at process exit). This driver therefore hides failures from
// HDF5: it writes to its own descriptor, remembers the first error and ignores all further writes.
#pragma once

#include <atomic>
#include <cstdint>

#include "io/hdf5_handle.h"

namespace lockstep {

/// A new, empty file, open for reading and writing. It must outlive the HDF5 file.
struct Hdf5Output {
  int descriptor = -1;
  int error = 0;  ///< errno of the first failure; 0: none
  /// A flag of another thread: if it is set, the next write fails with ECANCELED. May be null.
  const std::atomic<bool>* cancelled = nullptr;
  std::uint64_t end_bytes = 0;  ///< current length of the file
};

/// Makes `access` (file access properties) use `output`. For H5Fcreate, which then ignores its file name.
/// After H5Fclose the file is complete if output.error is 0.
void hdf5_write_to(const Hdf5Handle& access, Hdf5Output& output, const Hdf5Context& context);

}  // namespace lockstep
