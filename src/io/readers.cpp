// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/readers.h"

#include <fmt/ranges.h>

#include <array>
#include <vector>

#include "io/reader_options.h"

namespace lockstep {

// Each in its own file, <name>_reader.cpp.
ReaderEntry csv_reader(), hdf5_reader(), idx_reader();

std::span<const ReaderEntry> reader_table() {
  static const std::array table{csv_reader(), hdf5_reader(), idx_reader()};
  return table;
}

const ReaderEntry& find_reader(std::string_view format, const std::string& where) {
  std::vector<std::string_view> names;
  for (const ReaderEntry& entry : reader_table()) {
    if (entry.name == format) return entry;
    names.push_back(entry.name);
  }
  const std::string near = nearest(format, names);
  throw Error(
      ErrorKind::config, fmt::format("unknown data format '{}'", format), where,
      fmt::format("{}Known formats: {}.", near.empty() ? "" : fmt::format("Did you mean '{}'? ", near),
                  fmt::join(names, ", ")));
}

std::unique_ptr<Dataset> open_dataset(std::string_view format, const Params& params,
                                      const std::string& base_directory) {
  return find_reader(format).make(params, base_directory);
}

std::unique_ptr<Dataset> open_features(std::string_view format, const Params& params,
                                       const std::string& base_directory, const std::string& path,
                                       const Shape& feature_shape) {
  return find_reader(format).make_features(params, resolved_path(path, base_directory), feature_shape);
}

}  // namespace lockstep
