// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/hdf5_numbers.h"

#include <vector>

namespace lockstep {

namespace {

Hdf5NumberType type_of(hid_t type, const Hdf5Context& context) {
  if (std::optional<Hdf5NumberType> found = hdf5_number_type(type, context)) return std::move(*found);
  const H5T_class_t type_class = H5Tget_class(type);
  throw Error(
      ErrorKind::data, fmt::format("holds {}, a type that cannot be read", hdf5_type_name(type)),
      context.where,
      fmt::format("{}Numbers may be bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32 or "
                  "float64; store them so: data.astype('float32') in NumPy.",
                  type_class == H5T_STRING      ? "Texts can be labels. "
                  : type_class == H5T_REFERENCE ? "References (cells of MATLAB) name other datasets: "
                                                  "name one of these. "
                                                : ""));
}

}  // namespace

Hdf5Numbers::Hdf5Numbers(const Hdf5Dataset& data, const NetcdfOptions& netcdf)
    : stored(type_of(data.file_type.get(), data.context())), meaning(data, stored, netcdf) {}

Hdf5Numbers::Hdf5Numbers(hid_t type, const std::string& name, const Hdf5Context& context)
    : stored(type_of(type, context)), meaning(name, stored) {}

void Hdf5Numbers::read(std::int64_t count, void* values, FunctionRef<void(void* stored)> read_stored,
                       FunctionRef<std::string(std::int64_t i)> where) const {
  if (meaning.plain()) return read_stored(values);
  std::vector<char> numbers(static_cast<std::size_t>(count) * size_in_bytes(stored.dtype));
  read_stored(numbers.data());
  meaning.decode(numbers.data(), count, values, where);
}

void Hdf5Numbers::read(const Hdf5Dataset& data, std::int64_t first, std::int64_t rows, void* values) const {
  const std::int64_t per_row = data.values_per_row();
  read(
      rows * per_row, values,
      [&](void* numbers) { read_slab(data, first, rows, stored.memory.get(), numbers); },
      [&](std::int64_t i) { return fmt::format("{}, record {}", data.where, first + i / per_row); });
}

}  // namespace lockstep
