// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A dataset is asked for a selection of its values (a dataspace) and answers with the first missing part. A
// virtual dataset asks its sources for the part that it takes from them, and translates the answer back.
#include "io/hdf5_storage.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

namespace lockstep {

namespace {

/// Files that may be opened in addition to the sources: libraries, sockets of MPI.
constexpr std::size_t kSpareDescriptors = 64;

std::optional<MissingPart> missing_in_contiguous(const StorageQuery& query) {
  const hid_t dataset = query.dataset;
  if (H5Dget_storage_size(dataset) == 0)
    return MissingPart{query.copy_of_needed(), "was never written", MissingPart::Kind::never_written};
  const haddr_t offset = H5Dget_offset(dataset);
  hsize_t file_bytes = 0;
  const Hdf5Handle file(hdf5_checked(H5Iget_file_id(dataset), query.context, "find the file"), H5Fclose);
  hdf5_checked(H5Fget_filesize(file.get(), &file_bytes), query.context, "read the size of the file");
  const std::uint64_t available = offset == HADDR_UNDEF || offset > file_bytes ? 0 : file_bytes - offset;
  if (available >= query.bytes()) return std::nullopt;
  return query.part_from(available / query.row_bytes(), "lies beyond the end of the file");
}

/// Values in the header of the dataset. HDF5 1.10 does not compare their size with the extents: it delivers
/// the memory after them, or crashes.
std::optional<MissingPart> missing_in_compact(const StorageQuery& query) {
  const hsize_t stored = H5Dget_storage_size(query.dataset);
  if (stored >= query.bytes()) return std::nullopt;
  return query.part_from(stored / query.row_bytes(),
                         fmt::format("is not there: the dataset stores {} bytes, but its extents need {}",
                                     stored, query.bytes()));
}

/// The relative names of external files begin in the current folder, or in HDF5_EXTFILE_PREFIX, where
/// ${ORIGIN} is the folder of the HDF5 file (H5Pset_efile_prefix).
std::string external_path(const std::string& name, const std::string& hdf5_file) {
  if (name.starts_with('/')) return name;
  const char* const variable = std::getenv("HDF5_EXTFILE_PREFIX");
  const std::string prefix = variable == nullptr ? "" : variable;
  if (prefix.empty() || prefix == ".") return name;
  return expanded_origin(prefix, hdf5_file) + "/" + name;
}

std::optional<MissingPart> missing_in_external(const StorageQuery& query, hid_t creation, int count) {
  const std::uint64_t all_bytes = query.bytes();
  const std::string hdf5_file = file_name_of(query.dataset, query.context);
  std::uint64_t begin = 0;  // of this file's part of the data
  for (int i = 0; i < count && begin < all_bytes; ++i) {
    std::array<char, 4097> name{};
    off_t offset = 0;
    hsize_t size = 0;
    hdf5_checked(
        H5Pget_external(creation, static_cast<unsigned>(i), name.size() - 1, name.data(), &offset, &size),
        query.context, "read the external files");
    const std::uint64_t wanted = std::min<std::uint64_t>(size, all_bytes - begin);
    const std::string path = external_path(name.data(), hdf5_file);
    if (query.followed != nullptr) query.followed->open(path, "the external raw file", query.context.where);
    struct stat status {};
    const bool exists = ::stat(path.c_str(), &status) == 0;
    const auto bytes =
        exists && status.st_size > offset ? static_cast<std::uint64_t>(status.st_size - offset) : 0;
    if (bytes < wanted) {
      auto part = query.part_from((begin + bytes) / query.row_bytes(),
                                  exists ? fmt::format("the external file {} ends early: truncated?", path)
                                         : fmt::format("the external file {} is missing", path));
      if (part) return part;
    }
    begin += wanted;
  }
  return std::nullopt;
}

std::optional<MissingPart> missing_in_chunked(const StorageQuery& query, hid_t creation) {
  const std::size_t rank = query.extents.size();
  std::vector<hsize_t> chunk(rank);
  hdf5_checked(H5Pget_chunk(creation, static_cast<int>(rank), chunk.data()), query.context,
               "read the chunk size");
  hsize_t all = 1, stored = 0;
  for (std::size_t axis = 0; axis < rank; ++axis)
    if (chunk[axis] == 0 ||
        __builtin_mul_overflow(all, (query.extents[axis] + chunk[axis] - 1) / chunk[axis], &all))
      return query.part_from(0, "has chunks of an impossible size");
  hdf5_checked(H5Dget_num_chunks(query.dataset, query.space.get(), &stored), query.context,
               "read the index of the chunks");
  if (stored == all) return std::nullopt;

  // Row by row of chunks within the bounds of what is needed; a look-up takes logarithmic time.
  const auto [low, high] = query.bounds();
  std::vector<hsize_t> start(rank), end(rank);
  for (std::size_t axis = 0; axis < rank; ++axis) start[axis] = low[axis] / chunk[axis] * chunk[axis];
  const std::vector<hsize_t> first = start;
  for (;;) {
    hsize_t bytes = 0;
    const bool there = H5Dget_chunk_storage_size(query.dataset, start.data(), &bytes) >= 0 && bytes > 0;
    if (!there) {
      H5Eclear2(H5E_DEFAULT);
      for (std::size_t axis = 0; axis < rank; ++axis)
        end[axis] = std::min(start[axis] + chunk[axis], query.extents[axis]) - 1;
      if (hdf5_checked(H5Sselect_intersect_block(query.needed, start.data(), end.data()), query.context,
                       "select a chunk") > 0)
        return query.part_of_block(start, end, "was never written", MissingPart::Kind::never_written);
    }
    std::size_t axis = rank;
    while (axis > 0 && (start[axis - 1] += chunk[axis - 1]) > high[axis - 1]) {
      --axis;
      start[axis] = first[axis];
    }
    if (axis == 0) return std::nullopt;
  }
}

}  // namespace

std::optional<MissingPart> missing_part(const StorageQuery& query) {
  if (query.extents.empty() || num_selected(query.needed, query.context) == 0) return std::nullopt;
  const Hdf5Handle creation(
      hdf5_checked(H5Dget_create_plist(query.dataset), query.context, "read the layout"), H5Pclose);
  std::optional<MissingPart> part;
  switch (hdf5_checked(H5Pget_layout(creation.get()), query.context, "read the layout")) {
    case H5D_CONTIGUOUS: {
      const int external =
          hdf5_checked(H5Pget_external_count(creation.get()), query.context, "read the external files");
      part =
          external > 0 ? missing_in_external(query, creation.get(), external) : missing_in_contiguous(query);
      break;
    }
    case H5D_CHUNKED:
      part = missing_in_chunked(query, creation.get());
      break;
    case H5D_VIRTUAL:
      part = missing_in_virtual(query, creation.get());
      break;
    case H5D_COMPACT:
      part = missing_in_compact(query);
      break;
    default:
      break;
  }
  return part && part->kind == MissingPart::Kind::never_written && query.allow_fill ? std::nullopt
                                                                                    : std::move(part);
}

void reserve_open_files(std::size_t count, const std::string& where) {
  if (count == 0) return;
  std::size_t wanted = count + kSpareDescriptors;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++wanted;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, wanted);
  if (limit.rlim_cur < wanted || ::setrlimit(RLIMIT_NOFILE, &limit) != 0)
    throw Error(ErrorKind::data,
                fmt::format("needs {} source files open at once, but this process may open {} files", count,
                            std::max(before, limit.rlim_max)),
                where, fmt::format("Raise the limit: ulimit -n {}", wanted));
}

}  // namespace lockstep
