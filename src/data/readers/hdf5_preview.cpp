// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/hdf5_preview.h"

#include <algorithm>

#include "data/readers/hdf5_dataset.h"
#include "data/readers/hdf5_texts.h"

namespace lockstep {

namespace {

/// A dataset, and the file that it lies in.
struct OpenDataset {
  OpenDataset(const std::string& path, const std::string& name)
      : file(hdf5_open_file(path, hdf5_data_context(path))),
        data(open_hdf5_dataset(file.get(), path, name)) {}

  std::int64_t first_rows(std::int64_t most_values) const {
    return std::min(data.rows(), std::max<std::int64_t>(
                                     1, most_values / std::max<std::int64_t>(1, data.values_per_row())));
  }

  Hdf5Handle file;
  Hdf5Dataset data;
};

}  // namespace

std::vector<double> first_hdf5_numbers(const std::string& path, const std::string& name, std::int64_t most) {
  const Hdf5Lock lock;
  const OpenDataset open(path, name);
  const std::int64_t rows = open.first_rows(most);
  std::vector<double> values(static_cast<std::size_t>(rows * open.data.values_per_row()));
  read_slab(open.data, 0, rows, H5T_NATIVE_DOUBLE, values.data());
  return values;
}

std::vector<std::string> first_hdf5_texts(const std::string& path, const std::string& name,
                                          std::int64_t most) {
  const Hdf5Lock lock;
  const OpenDataset open(path, name);
  std::vector<std::string> texts;
  read_texts(open.data, {0, open.first_rows(most)},
             [&](std::int64_t, std::string_view text) { texts.emplace_back(text); });
  return texts;
}

std::vector<Hdf5ColumnLook> hdf5_table_columns(const std::string& path, const std::string& name) {
  const Hdf5Lock lock;
  const OpenDataset open(path, name);
  std::vector<Hdf5ColumnLook> columns;
  if (open.data.file_class != H5T_COMPOUND) return columns;
  const hid_t type = open.data.file_type.get();
  for (unsigned i = 0; i < static_cast<unsigned>(H5Tget_nmembers(type)); ++i) {
    char* const member = H5Tget_member_name(type, i);
    if (member == nullptr) continue;
    Hdf5Handle value(H5Tget_member_type(type, i), H5Tclose);
    if (H5Tget_class(value.get()) == H5T_ARRAY) value = Hdf5Handle(H5Tget_super(value.get()), H5Tclose);
    const H5T_class_t kind = H5Tget_class(value.get());
    columns.push_back({member, kind == H5T_INTEGER || kind == H5T_FLOAT});
    H5free_memory(member);
  }
  return columns;
}

}  // namespace lockstep
