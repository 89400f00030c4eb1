// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/hdf5_dataset.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

#include "core/name_list.h"
#include "data/readers/hdf5_axes.h"
#include "io/hdf5_advice.h"
#include "io/hdf5_type.h"

namespace lockstep {

namespace {

herr_t collect_name(hid_t, const char* name, const H5L_info_t*, void* names) {
  try {
    static_cast<std::vector<std::string>*>(names)->emplace_back(name);
    return 0;
  } catch (...) {
    return -1;  // an exception must not pass through HDF5
  }
}

/// Finding a smaller chunk takes longer than copying it.
constexpr hsize_t kDirectChunkBytes = 16384;

/// "It holds: train/image, train/label and 7 more."
std::string datasets_text(hid_t file) {
  std::vector<std::string> names, datasets;
  if (H5Lvisit(file, H5_INDEX_NAME, H5_ITER_NATIVE, collect_name, &names) < 0) H5Eclear2(H5E_DEFAULT);
  for (std::string& name : names) {
    const Hdf5Handle object(H5Oopen(file, name.c_str(), H5P_DEFAULT), H5Oclose);
    if (object.get() >= 0 && H5Iget_type(object.get()) == H5I_DATASET) datasets.push_back(std::move(name));
  }
  H5Eclear2(H5E_DEFAULT);
  return datasets.empty() ? "It holds no datasets." : fmt::format("It holds: {}.", name_list(datasets));
}

/// Throws unless all values together, in 8 bytes each, can be counted in 63 bits.
void check_extents(const Hdf5Dataset& data) {
  hsize_t bytes = sizeof(double);
  constexpr auto limit = static_cast<hsize_t>(std::numeric_limits<std::int64_t>::max());
  for (const hsize_t extent : data.extents) {
    // An axis without values must not hide the others: rows and values of a row are multiplied apart, too.
    if (__builtin_mul_overflow(bytes, std::max<hsize_t>(1, extent), &bytes) || bytes > limit)
      throw Error(
          ErrorKind::data,
          fmt::format("its extents {} are more values than any memory holds", fmt::join(data.extents, "x")),
          data.where, "The file may be damaged; h5ls shows the extents.");
  }
}

[[noreturn]] void fail_no_dataset(hid_t file, const Hdf5Dataset& data, const std::string& reason) {
  const Hdf5Handle group(H5Gopen2(file, data.name.c_str(), H5P_DEFAULT), H5Gclose);
  const bool is_sparse = group.get() >= 0 && H5Aexists(group.get(), "MATLAB_sparse") > 0;
  H5Eclear2(H5E_DEFAULT);
  if (is_sparse)
    throw Error(ErrorKind::data, "is a sparse matrix of MATLAB", data.where, "Save full(x) in MATLAB.");
  throw Error(ErrorKind::data,
              group.get() >= 0 ? std::string("there is no such dataset: it is a group")
                               : fmt::format("there is no such dataset ({})", reason),
              data.where, datasets_text(file));
}

/// False if the first chunk was stored without the filter.
bool needs_filter(hid_t dataset, unsigned index) {
  const Hdf5Handle space(H5Dget_space(dataset), H5Sclose);
  std::array<hsize_t, H5S_MAX_RANK> start{};
  hsize_t chunks = 0, bytes = 0;
  haddr_t address = 0;
  unsigned skipped = 0;
  const bool known =
      H5Dget_num_chunks(dataset, space.get(), &chunks) >= 0 && chunks > 0 &&
      H5Dget_chunk_info(dataset, space.get(), 0, start.data(), &skipped, &address, &bytes) >= 0;
  H5Eclear2(H5E_DEFAULT);
  return known && (skipped >> index & 1U) == 0;
}

bool has_unlimited_mapping(hid_t dataset) {
  const Hdf5Handle creation(H5Dget_create_plist(dataset), H5Pclose);
  std::size_t count = 0;
  if (H5Pget_layout(creation.get()) != H5D_VIRTUAL || H5Pget_virtual_count(creation.get(), &count) < 0)
    return false;
  for (std::size_t i = 0; i < count; ++i) {
    const Hdf5Handle space(H5Pget_virtual_vspace(creation.get(), i), H5Sclose);
    std::array<hsize_t, H5S_MAX_RANK> start{}, stride{}, number{}, block{};
    if (H5Sget_select_type(space.get()) != H5S_SEL_HYPERSLABS || H5Sis_regular_hyperslab(space.get()) <= 0 ||
        H5Sget_regular_hyperslab(space.get(), start.data(), stride.data(), number.data(), block.data()) < 0)
      continue;
    for (const std::array<hsize_t, H5S_MAX_RANK>* list : {&number, &block})
      if (std::find(list->begin(), list->end(), H5S_UNLIMITED) != list->end()) return true;
  }
  return false;
}

std::vector<hsize_t> extents_of(hid_t dataset, const Hdf5Context& context) {
  const Hdf5Handle space(hdf5_checked(H5Dget_space(dataset), context, "read the extents"), H5Sclose);
  const int rank = hdf5_checked(H5Sget_simple_extent_ndims(space.get()), context, "read the extents");
  std::vector<hsize_t> extents(static_cast<std::size_t>(rank));
  hdf5_checked(H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr), context, "read the extents");
  return extents;
}

/// A virtual dataset that grows with its sources ends at the first source that is missing, or at the last one
/// that is there. Throws if that is not the same. Closes `dataset` and opens it again.
void check_growing(hid_t file, const std::string& name, Hdf5Handle& dataset, const Hdf5Context& context) {
  constexpr hsize_t kMissingFiles = 100;  // in a row, where source files are numbered
  if (!has_unlimited_mapping(dataset.get())) return;
  const auto extents_to = [&](H5D_vds_view_t end) {
    dataset.close();
    const Hdf5Handle access(hdf5_checked(H5Pcreate(H5P_DATASET_ACCESS), context, "open"), H5Pclose);
    hdf5_checked(H5Pset_virtual_view(access.get(), end), context, "open");
    if (end == H5D_VDS_LAST_AVAILABLE)
      hdf5_checked(H5Pset_virtual_printf_gap(access.get(), kMissingFiles), context, "open");
    dataset = Hdf5Handle(hdf5_checked(H5Dopen2(file, name.c_str(), access.get()), context, "open"), H5Dclose);
    return extents_of(dataset.get(), context);
  };
  const std::vector<hsize_t> to_last = extents_to(H5D_VDS_LAST_AVAILABLE);
  const std::vector<hsize_t> to_first = extents_to(H5D_VDS_FIRST_MISSING);
  if (to_first == to_last) return;
  throw Error(ErrorKind::data,
              fmt::format("has the extents {}, but a source is missing: complete are {}",
                          fmt::join(to_last, "x"), fmt::join(to_first, "x")),
              fmt::format("{}, record {}", context.where, to_first.empty() ? 0 : to_first[0]),
              "Copy the missing source files to where they are looked for.");
}

bool has_link(hid_t file, const std::string& name) {
  for (std::size_t end = 0; end < name.size();) {  // every group on the way
    end = std::min(name.find('/', end + 1), name.size());
    const std::string part = name.substr(0, end);
    if (part.find_first_not_of('/') == std::string::npos) continue;
    if (H5Lexists(file, part.c_str(), H5P_DEFAULT) > 0) continue;
    H5Eclear2(H5E_DEFAULT);
    return false;
  }
  return true;
}

/// Where "table.column" is cut, unless it is the name of a dataset itself.
std::optional<std::size_t> end_of_table(hid_t file, const std::string& name) {
  const auto dot = name.rfind('.');
  if (dot == name.npos || has_link(file, name) || !has_link(file, name.substr(0, dot))) return std::nullopt;
  return dot;
}

}  // namespace

std::int64_t Hdf5Dataset::values_per_row() const {
  if (!columns.empty()) return values_of(columns);
  std::int64_t product = 1;
  for (std::size_t axis = 1; axis < extents.size(); ++axis)
    product *= static_cast<std::int64_t>(extents[axis]);
  return product;
}

Hdf5Context hdf5_data_context(const std::string& path) {
  return {ErrorKind::data, path, "Check that it is an HDF5 file and was copied completely."};
}

Hdf5Dataset open_hdf5_dataset(hid_t file, const std::string& path, const std::string& name,
                              bool samples_last) {
  if (const auto dot = end_of_table(file, name)) {
    Hdf5Dataset table = open_hdf5_dataset(file, path, name.substr(0, *dot), samples_last);
    choose_column(table, name.substr(*dot + 1));
    return table;
  }
  Hdf5Dataset data;
  data.name = name;
  data.path = path;
  data.where = fmt::format("{}, dataset {}", path, name);
  data.id = Hdf5Handle(H5Dopen2(file, name.c_str(), H5P_DEFAULT), H5Dclose);
  if (data.id.get() < 0) {
    const std::string reason = hdf5_error_text();
    if (is_newer_hdf5(reason)) throw newer_hdf5_error(path, data.where, reason);
    fail_no_dataset(file, data, reason);
  }
  const Hdf5Context context = data.context();
  check_growing(file, name, data.id, context);
  data.extents = extents_of(data.id.get(), context);
  const int rank = static_cast<int>(data.extents.size());
  if (rank < 1 || rank >= Shape::kMaxRank)
    throw Error(ErrorKind::data, fmt::format("has {} axes; 1 to {} can be read", rank, Shape::kMaxRank - 1),
                data.where, "The first axis counts the samples.");
  check_extents(data);
  const Hdf5Handle stored(hdf5_checked(H5Dget_type(data.id.get()), context, "read the type"), H5Tclose);
  data.file_type = hdf5_plain_type(stored.get(), context);
  data.file_class = hdf5_checked(H5Tget_class(data.file_type.get()), context, "read the type");

  const Hdf5Handle creation(hdf5_checked(H5Dget_create_plist(data.id.get()), context, "read the layout"),
                            H5Pclose);
  if (hdf5_checked(H5Pget_layout(creation.get()), context, "read the layout") == H5D_CHUNKED) {
    std::vector<hsize_t> chunk(data.extents.size());
    hdf5_checked(H5Pget_chunk(creation.get(), rank, chunk.data()), context, "read the chunk size");
    data.rows_per_chunk = std::max<hsize_t>(1, chunk[0]);
    data.missing_filter = missing_hdf5_filter(creation.get());
    if (data.missing_filter && needs_filter(data.id.get(), data.missing_filter->index))
      throw missing_filter_error(*data.missing_filter, path, data.where);
    if (std::equal(chunk.begin() + 1, chunk.end(), data.extents.begin() + 1)) {
      data.filters = ChunkFilters::of(creation.get(), context);
      if (data.filters && !data.filters->decodes()) {
        data.filters.reset();
        const auto row = static_cast<hsize_t>(data.values_per_row()) * H5Tget_size(data.file_type.get());
        data.direct_chunks = H5Pget_nfilters(creation.get()) == 0 && row > 0 &&
                             data.rows_per_chunk >= (kDirectChunkBytes + row - 1) / row;
      }
    }
  }
  order_axes(data, samples_last);
  return data;
}

bool has_hdf5_link(hid_t file, const std::string& name) {
  const auto dot = end_of_table(file, name);
  if (!dot) return has_link(file, name);
  const Hdf5Handle table(H5Dopen2(file, name.substr(0, *dot).c_str(), H5P_DEFAULT), H5Dclose);
  const Hdf5Handle type(table.get() < 0 ? -1 : H5Dget_type(table.get()), H5Tclose);
  const bool has = type.get() >= 0 && H5Tget_class(type.get()) == H5T_COMPOUND &&
                   H5Tget_member_index(type.get(), name.c_str() + *dot + 1) >= 0;
  H5Eclear2(H5E_DEFAULT);
  return has;
}

void read_selection(const Hdf5Dataset& data, hid_t memory_type, hid_t in_memory, hid_t in_file, void* out,
                    const Hdf5Context& context, std::string_view action) {
  const herr_t result = H5Dread(data.id.get(), memory_type, in_memory, in_file, H5P_DEFAULT, out);
  if (result < 0 && data.missing_filter)
    throw missing_filter_error(*data.missing_filter, data.path, context.where);
  hdf5_checked(result, context, action);
}

void read_stored_slab(const Hdf5Dataset& data, const std::vector<hsize_t>& extents, hsize_t first,
                      hsize_t count, hid_t memory_type, void* out) {
  Hdf5Context context = data.context();
  if (data.axes.empty()) context.where = fmt::format("{}, record {}", data.where, first);
  std::vector<hsize_t> start(extents.size(), 0), block = extents;
  start[0] = first;
  block[0] = count;
  const Hdf5Handle in_file(hdf5_checked(H5Dget_space(data.id.get()), context, "read the extents"), H5Sclose);
  hdf5_checked(
      H5Sselect_hyperslab(in_file.get(), H5S_SELECT_SET, start.data(), nullptr, block.data(), nullptr),
      context, "select rows");
  const Hdf5Handle in_memory(
      hdf5_checked(H5Screate_simple(static_cast<int>(block.size()), block.data(), nullptr), context,
                   "describe memory"),
      H5Sclose);
  const Hdf5Handle row = data.columns.empty() ? Hdf5Handle() : row_type_of(data, memory_type);
  if (!data.columns.empty()) memory_type = row.get();
  read_selection(data, memory_type, in_memory.get(), in_file.get(), out, context,
                 fmt::format("read {} records", count));
}

void read_slab(const Hdf5Dataset& data, std::int64_t first, std::int64_t count, hid_t memory_type,
               void* out) {
  if (!data.axes.empty()) return read_reordered(data, first, count, memory_type, out);
  read_stored_slab(data, data.extents, static_cast<hsize_t>(first), static_cast<hsize_t>(count), memory_type,
                   out);
}

}  // namespace lockstep
