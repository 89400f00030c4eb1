// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the HDF5 reader: are the values of a dataset there? HDF5 itself delivers fill values, usually
// zeros, without an error for
//  - chunks and contiguous storage that were never written,
//  - an external raw file that is too short,
//  - values in the header of a dataset (compact layout) that are fewer than its extents,
//  - parts of a virtual dataset that no source covers, or whose source file or dataset is missing or damaged,
//    or cannot be opened because too many files are open.
// Values that were written as fill values in advance (early allocation) cannot be told from others.
#pragma once

#include "data/readers/hdf5_dataset.h"

namespace lockstep {

/// Throws Error(data) that names the first of the records [rows.first, rows.last) of which a part is missing,
/// and why. `allow_fill` permits what was never written, never what is missing. Reads no values. The caller
/// holds the Hdf5Lock.
void check_stored(const Hdf5Dataset& data, const RowRange& rows, bool allow_fill);

}  // namespace lockstep
