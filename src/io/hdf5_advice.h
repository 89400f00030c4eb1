// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Files and datasets that this HDF5 library cannot read: what they are, and how they become ones that it can.
#pragma once

#include <optional>
#include <string>

#include "io/hdf5_handle.h"

namespace lockstep {

struct Hdf5Filter;

/// The first filter of a dataset with these creation properties that HDF5 cannot apply; none, if it has all.
/// Plugins are looked for in HDF5_PLUGIN_PATH. The caller holds the Hdf5Lock.
std::optional<Hdf5Filter> missing_hdf5_filter(hid_t creation);
/// About chunks of the file `path` that need the filter.
Error missing_filter_error(const Hdf5Filter& filter, const std::string& path, const std::string& where);

/// True for what HDF5 says about a file or dataset that a newer library wrote.
bool is_newer_hdf5(const std::string& reason);
/// About such a dataset, or the file itself.
Error newer_hdf5_error(const std::string& path, const std::string& where, const std::string& reason);

/// What a file is that is no HDF5 file, by its first bytes; the advice has the command that converts it.
/// Nothing for a file that could be HDF5, and for one that is not known.
std::optional<Error> other_format_error(const std::string& path, const std::string& opened);

}  // namespace lockstep
