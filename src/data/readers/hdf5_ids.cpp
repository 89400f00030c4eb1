// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/hdf5_ids.h"

#include "core/error.h"
#include "data/readers/hdf5_dataset.h"
#include "data/readers/hdf5_texts.h"
#include "io/hdf5_handle.h"

namespace lockstep {

namespace {

template <typename T>
void add_numbers(const Hdf5Dataset& data, hid_t memory_type, std::vector<std::string>& ids) {
  std::vector<T> numbers;
  for_each_slab(data, {0, data.rows()}, sizeof(T), [&](std::int64_t first, std::int64_t count) {
    numbers.resize(static_cast<std::size_t>(count));
    read_slab(data, first, count, memory_type, numbers.data());
    for (const T number : numbers) ids.push_back(std::to_string(number));
  });
}

}  // namespace

std::optional<std::vector<std::string>> hdf5_ids(const std::vector<std::string>& paths,
                                                 const std::string& name, bool wanted) {
  std::vector<std::string> ids;
  const Hdf5Lock lock;
  for (const std::string& path : paths) {
    const Hdf5Handle file = hdf5_open_file(path, hdf5_data_context(path));
    if (&path == &paths.front() && !has_hdf5_link(file.get(), name)) return std::nullopt;
    const Hdf5Dataset data = open_hdf5_dataset(file.get(), path, name);
    const bool has_numbers = data.values_per_row() == 1 && data.file_class == H5T_INTEGER;
    if (!has_numbers && !has_one_text(data)) {
      if (!wanted) return std::nullopt;
      throw Error(ErrorKind::data, "has no text and no whole number for each sample", data.where,
                  "Name another dataset.");
    }
    if (holds_texts(data))
      read_texts(data, {0, data.rows()},
                 [&](std::int64_t, std::string_view text) { ids.emplace_back(text); });
    else if (H5Tget_sign(data.file_type.get()) == H5T_SGN_NONE)  // hashes take all 64 bits
      add_numbers<std::uint64_t>(data, H5T_NATIVE_UINT64, ids);
    else
      add_numbers<std::int64_t>(data, H5T_NATIVE_INT64, ids);
  }
  return ids;
}

}  // namespace lockstep
