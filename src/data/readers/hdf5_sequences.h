// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the HDF5 reader: datasets of variable-length type (h5py.vlen_dtype), a sequence of numbers per
// record.
#pragma once

#include <span>

#include "core/function_ref.h"
#include "data/readers/hdf5_dataset.h"

namespace lockstep {

/// True if `data` has a variable-length type of numbers. Throws Error(data) for one of something else, and
/// unless the records have one axis.
bool holds_sequences(const Hdf5Dataset& data);

/// Calls use(i, values) for records first + i of [first, first + count), as float32. The caller holds the
/// Hdf5Lock. Throws Error(data); what `use` throws without a place gets that of the record.
void read_sequences(const Hdf5Dataset& data, std::int64_t first, std::int64_t count,
                    FunctionRef<void(std::int64_t i, std::span<const float> values)> use);

}  // namespace lockstep
