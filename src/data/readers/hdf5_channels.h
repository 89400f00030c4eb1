// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the HDF5 reader: the option channels, with which only some channels of each sample become
// features, in the order of the option. Channels are the last axis of a sample in the file, or the first one
// with layout channels_first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "config/params.h"
#include "data/readers/hdf5_dataset.h"

namespace lockstep {

/// The option `channels`, for option_as(); empty: all channels. Throws Error(config) if one is named twice.
std::vector<std::int64_t> channels_option(const Params& params, const ParamSpec& option);

/// The extent of the axis of channels. Throws Error(data) if samples have no such axis.
std::int64_t num_channels(const Hdf5Dataset& data, bool channels_first);

/// Throws Error(data) unless the dataset has all of these channels.
void check_channels(const Hdf5Dataset& data, bool channels_first, std::span<const std::int64_t> channels);

/// Channels of records whose first axis they are: reads only these values, in ascending order of the
/// channels, as out[record][channel][position]. The caller holds the Hdf5Lock.
void read_channels(const Hdf5Dataset& data, const RowRange& rows, std::span<const std::int64_t> ascending,
                   hid_t memory_type, void* out);

/// to[record][position][i] = the value of channels[i] in `from`, which holds `all` channels of each record:
/// from[record][channel][position] with channels_first, otherwise from[record][position][channel].
void choose_channels(std::size_t value_bytes, const void* from, void* to, std::int64_t records,
                     std::int64_t all, std::int64_t positions, bool channels_first,
                     std::span<const std::int64_t> channels);

}  // namespace lockstep
