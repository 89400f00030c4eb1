// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the HDF5 reader: the numbers of a dataset, one rule for features and labels: their type in the
// file, and what attributes say about them. The caller holds the Hdf5Lock.
#pragma once

#include <cstdint>
#include <string>

#include "core/function_ref.h"
#include "data/readers/hdf5_dataset.h"
#include "data/readers/netcdf_values.h"
#include "io/hdf5_type.h"

namespace lockstep {

struct Hdf5Numbers {
  Hdf5NumberType stored;
  NetcdfValues meaning;

  Hdf5Numbers() = default;
  /// Of a dataset. Throws Error(data) that names a type that cannot be read.
  Hdf5Numbers(const Hdf5Dataset& data, const NetcdfOptions& netcdf);
  /// Of values of a type without attributes, at `where`.
  Hdf5Numbers(hid_t type, const std::string& name, const Hdf5Context& context);

  /// Calls read(stored), which writes `count` stored numbers, and decodes them into `values`.
  void read(std::int64_t count, void* values, FunctionRef<void(void* stored)> read_stored,
            FunctionRef<std::string(std::int64_t i)> where) const;
  /// All values of rows of the dataset.
  void read(const Hdf5Dataset& data, std::int64_t first, std::int64_t rows, void* values) const;
};

}  // namespace lockstep
