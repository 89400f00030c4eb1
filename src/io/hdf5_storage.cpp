// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5_storage.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

namespace lockstep {

StorageQuery::StorageQuery(hid_t of, Hdf5Context with, bool fill, std::set<std::string>& files,
                           int sources_above)
    : dataset(of),
      context(std::move(with)),
      allow_fill(fill),
      source_files(files),
      depth(sources_above),
      space(hdf5_checked(H5Dget_space(of), context, "read the extents"), H5Sclose) {
  const int rank = hdf5_checked(H5Sget_simple_extent_ndims(space.get()), context, "read the extents");
  extents.resize(static_cast<std::size_t>(rank));
  hdf5_checked(H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr), context, "read the extents");
}

std::uint64_t StorageQuery::row_bytes() const {
  const Hdf5Handle type(hdf5_checked(H5Dget_type(dataset), context, "read the type"), H5Tclose);
  std::uint64_t bytes = H5Tget_size(type.get());
  for (std::size_t axis = 1; axis < extents.size(); ++axis)
    if (__builtin_mul_overflow(bytes, extents[axis], &bytes))
      throw Error(ErrorKind::data, "has extents beyond 64 bits", context.where, context.advice);
  return std::max<std::uint64_t>(1, bytes);
}

std::uint64_t StorageQuery::bytes() const {
  std::uint64_t bytes = row_bytes();
  if (__builtin_mul_overflow(bytes, extents[0], &bytes))
    throw Error(ErrorKind::data, "has extents beyond 64 bits", context.where, context.advice);
  return bytes;
}

std::pair<std::vector<hsize_t>, std::vector<hsize_t>> StorageQuery::bounds() const {
  std::vector<hsize_t> start(extents.size()), end(extents.size());
  hdf5_checked(H5Sget_select_bounds(needed, start.data(), end.data()), context, "select records");
  return {start, end};
}

Hdf5Handle StorageQuery::copy_of_needed() const {
  return {hdf5_checked(H5Scopy(needed), context, "select records"), H5Sclose};
}

Hdf5Handle StorageQuery::block(const std::vector<hsize_t>& start, const std::vector<hsize_t>& end) const {
  std::vector<hsize_t> count(extents.size());
  for (std::size_t axis = 0; axis < count.size(); ++axis) count[axis] = end[axis] - start[axis] + 1;
  Hdf5Handle selected(hdf5_checked(H5Scopy(space.get()), context, "select records"), H5Sclose);
  hdf5_checked(
      H5Sselect_hyperslab(selected.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr),
      context, "select records");
  return selected;
}

Hdf5Handle StorageQuery::rows(hsize_t first, hsize_t last) const {
  std::vector<hsize_t> start(extents.size(), 0), end = extents;
  for (hsize_t& extent : end) --extent;
  start[0] = first;
  end[0] = last;
  return block(start, end);
}

MissingPart StorageQuery::part_of_block(const std::vector<hsize_t>& start, const std::vector<hsize_t>& end,
                                        std::string what, MissingPart::Kind kind) const {
  return {combined(needed, H5S_SELECT_AND, block(start, end).get(), context), std::move(what), kind};
}

std::optional<MissingPart> StorageQuery::part_from(hsize_t row, std::string what) const {
  if (row >= extents[0] || row > bounds().second[0]) return std::nullopt;
  Hdf5Handle part = combined(needed, H5S_SELECT_AND, rows(row, extents[0] - 1).get(), context);
  if (num_selected(part.get(), context) == 0) return std::nullopt;
  return MissingPart{std::move(part), std::move(what), MissingPart::Kind::missing};
}

hssize_t num_selected(hid_t space, const Hdf5Context& context) {
  return hdf5_checked(H5Sget_select_npoints(space), context, "select records");
}

Hdf5Handle combined(hid_t a, H5S_seloper_t operation, hid_t b, const Hdf5Context& context) {
#if LOCKSTEP_HDF5_COMBINES_SELECTIONS
  // Not H5Scombine_select: in HDF5 1.10.8 it crashes for AND.
  Hdf5Handle result(hdf5_checked(H5Scopy(a), context, "select records"), H5Sclose);
  hdf5_checked(H5Smodify_select(result.get(), operation, b), context, "select records");
  return result;
#else
  (void)a, (void)operation, (void)b;
  throw Error(ErrorKind::data, "cannot be checked for missing parts by this version of HDF5", context.where,
              "Use HDF5 1.10.7 or newer.");
#endif
}

hsize_t first_row(hid_t space, const Hdf5Context& context) {
  std::array<hsize_t, H5S_MAX_RANK> start{}, end{};
  hdf5_checked(H5Sget_select_bounds(space, start.data(), end.data()), context, "select records");
  return start[0];
}

std::string file_name_of(hid_t object, const Hdf5Context& context) {
  const ssize_t length = hdf5_checked(H5Fget_name(object, nullptr, 0), context, "find the file");
  std::string name(static_cast<std::size_t>(length) + 1, '\0');
  hdf5_checked(H5Fget_name(object, name.data(), name.size()), context, "find the file");
  name.pop_back();
  return name;
}

std::vector<std::string> candidate_paths(const std::string& name, const std::string& from,
                                         const char* variable) {
  namespace fs = std::filesystem;
  std::vector<std::string> paths;
  std::string relative = name;
  if (name.starts_with('/')) {
    paths.push_back(name);
    relative = fs::path(name).filename().string();
  }
  if (const char* const prefixes = std::getenv(variable)) {
    const std::string list = prefixes;
    for (std::size_t begin = 0; begin <= list.size();) {
      const std::size_t end = std::min(list.find(':', begin), list.size());
      if (end > begin)
        paths.push_back(expanded_origin(list.substr(begin, end - begin), from) + "/" + relative);
      begin = end + 1;
    }
  }
  paths.push_back((fs::absolute(from).parent_path() / relative).string());
  paths.push_back(relative);
  std::error_code ignored;
  if (const fs::path real = fs::canonical(from, ignored); !ignored)
    paths.push_back((real.parent_path() / relative).string());
  return paths;
}

std::string expanded_origin(const std::string& prefix, const std::string& hdf5_file) {
  constexpr std::string_view origin = "${ORIGIN}";
  if (!prefix.starts_with(origin)) return prefix;
  return std::filesystem::absolute(hdf5_file).parent_path().string() + prefix.substr(origin.size());
}

}  // namespace lockstep
