// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/hdf5_texts.h"

#include <algorithm>

#include "data/data_files.h"
#include "data/reader_options.h"
#include "data/readers/hdf5_options.h"
#include "data/readers/hdf5_stored.h"
#include "data/readers/text_classes.h"
#include "io/hdf5_handle.h"

namespace lockstep {

namespace {

/// Texts that are read together.
constexpr std::int64_t kTogether = 16384;

/// Texts of variable length that HDF5 has allocated.
class AllocatedTexts {
 public:
  AllocatedTexts(hid_t type, hid_t space, std::int64_t count)
      : type_(type), space_(space), texts_(static_cast<std::size_t>(count), nullptr) {}
  ~AllocatedTexts() { H5Dvlen_reclaim(type_, space_, H5P_DEFAULT, texts_.data()); }
  AllocatedTexts(const AllocatedTexts&) = delete;
  AllocatedTexts& operator=(const AllocatedTexts&) = delete;

  void* data() { return texts_.data(); }
  std::string_view text(std::int64_t i) const {
    const char* const found = texts_[static_cast<std::size_t>(i)];
    return found == nullptr ? std::string_view() : found;
  }

 private:
  const hid_t type_, space_;
  std::vector<char*> texts_;
};

std::string_view trimmed(std::string_view text, H5T_str_t filled_with) {
  if (filled_with == H5T_STR_SPACEPAD) return text.substr(0, text.find_last_not_of(' ') + 1);
  return text.substr(0, text.find('\0'));
}

void read_some(const Hdf5Dataset& data, std::int64_t first, std::int64_t count,
               FunctionRef<void(std::int64_t, std::string_view)> use) {
  const Hdf5Context context = data.context();
  const hid_t type = data.file_type.get();
  if (hdf5_checked(H5Tis_variable_str(type), context, "read the type") != 0) {
    std::vector<hsize_t> extents = data.extents;
    extents[0] = static_cast<hsize_t>(count);
    const Hdf5Handle space(
        hdf5_checked(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), context,
                     "describe memory"),
        H5Sclose);
    AllocatedTexts texts(type, space.get(), count);
    read_slab(data, first, count, type, texts.data());
    for (std::int64_t i = 0; i < count; ++i) use(i, texts.text(i));
    return;
  }
  const std::size_t width = H5Tget_size(type) * static_cast<std::size_t>(data.values_per_row());
  const H5T_str_t filled_with = H5Tget_strpad(type);
  check_memory(data.where, count, static_cast<double>(width));
  std::string block(width * static_cast<std::size_t>(count), '\0');
  read_slab(data, first, count, type, block.data());
  for (std::int64_t i = 0; i < count; ++i)
    use(i, trimmed(std::string_view(block).substr(static_cast<std::size_t>(i) * width, width), filled_with));
}

}  // namespace

bool has_one_text(const Hdf5Dataset& data) {
  if (!holds_texts(data)) return false;
  if (data.values_per_row() == 1) return true;
  return data.extents.size() == 2 && H5Tis_variable_str(data.file_type.get()) == 0 &&
         H5Tget_size(data.file_type.get()) == 1 && H5Aexists(data.id.get(), "DIMENSION_LIST") > 0;
}

void read_texts(const Hdf5Dataset& data, const RowRange& rows,
                FunctionRef<void(std::int64_t, std::string_view)> use) {
  if (!has_one_text(data))
    throw Error(ErrorKind::data, "has several texts per sample", data.where,
                "Labels that are texts are one class per sample.");
  for (std::int64_t first = rows.first; first < rows.last; first += kTogether)
    read_some(data, first, std::min(kTogether, rows.last - first),
              [&](std::int64_t i, std::string_view text) {
                try {
                  use(first - rows.first + i, text);
                } catch (const Error& error) {
                  if (!error.where().empty()) throw;
                  throw Error(error.kind(), error.what_happened(),
                              fmt::format("{}, record {}", data.where, first + i), error.advice());
                }
              });
}

std::vector<std::string> hdf5_classes(const Params& params, const std::string& base_directory) {
  const auto options = params.as<Hdf5Options>();
  if (options.classes) return *options.classes;
  if (!options.labels || options.groups) return {};
  const std::optional<RowRange> wanted = rows_option(params);
  FoundClasses found;
  std::int64_t before = 0;  // rows of the files before this one
  const Hdf5Lock lock;
  for (const std::string& path : files_of_path(params, base_directory)) {
    const Hdf5Handle file = hdf5_open_file(path, hdf5_data_context(path));
    const Hdf5Dataset labels = open_hdf5_dataset(file.get(), path, *options.labels, options.samples_last);
    if (!holds_texts(labels)) return {};  // a mixture is found when the files are compared
    const auto within = [&](std::int64_t row) {
      return std::clamp<std::int64_t>(row - before, 0, labels.rows());
    };
    const RowRange rows =
        wanted ? RowRange{within(wanted->first), within(wanted->last)} : RowRange{0, labels.rows()};
    before += labels.rows();
    if (rows.first == rows.last) continue;
    check_stored(labels, rows, options.allow_fill);
    read_texts(labels, rows, [&](std::int64_t, std::string_view text) { found.add(text); });
  }
  return found.names();
}

}  // namespace lockstep
