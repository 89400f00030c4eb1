// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the HDF5 reader: attributes of a netCDF-4 variable. The caller holds the Hdf5Lock.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/readers/hdf5_dataset.h"

namespace lockstep {

/// What an attribute has: numbers, or one text.
struct NetcdfAttribute {
  /// Holds each number of 64 bits and each double.
  using Exact = long double;

  bool exists = false;
  std::vector<Exact> numbers;
  bool is_fraction = false;  ///< the numbers are of a type of fractions
  std::optional<std::string> text;
};

NetcdfAttribute netcdf_attribute(const Hdf5Dataset& data, const char* name);

/// Some programs write numbers as texts: "0.01".
std::optional<NetcdfAttribute::Exact> number_in_text(const std::string& text);

/// Nothing without the attribute. Throws Error(data) unless it is one finite number, which may be a text.
std::optional<double> netcdf_number(const Hdf5Dataset& data, const char* name);

/// True for this text, in lower case or not.
bool netcdf_says(const Hdf5Dataset& data, const char* name, std::string_view text);

}  // namespace lockstep
