// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5_arrays.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "io/file_descriptor.h"
#include "io/hdf5_handle.h"
#include "io/hdf5_output.h"

namespace lockstep {

namespace {

constexpr int kDeepest = 64;
/// HDF5 can compress; more than this is a mistake or an attack.
constexpr double kMostTimesFile = 1000;

class Collector {
 public:
  Collector(const std::string& path, std::uint64_t file_bytes)
      : context_{ErrorKind::data, path, "The file may be damaged."}, file_bytes_(file_bytes) {}

  void group(hid_t group, const std::string& prefix, int depth) {
    if (depth > kDeepest)
      throw Error(ErrorKind::data, "its groups are nested too deeply", context_.where, context_.advice);
    std::vector<std::string> names;
    hdf5_checked(H5Literate(
                     group, H5_INDEX_NAME, H5_ITER_INC, nullptr,
                     [](hid_t, const char* name, const H5L_info_t* link, void* to) -> herr_t {
                       if (link->type == H5L_TYPE_HARD)
                         static_cast<std::vector<std::string>*>(to)->emplace_back(name);
                       return 0;
                     },
                     &names),
                 context_, "list a group");
    for (const std::string& name : names) {
      const Hdf5Handle object(hdf5_checked(H5Oopen(group, name.c_str(), H5P_DEFAULT), context_,
                                           fmt::format("open {}{}", prefix, name)),
                              H5Oclose);
      const H5I_type_t kind = H5Iget_type(object.get());
      if (kind == H5I_GROUP)
        this->group(object.get(), fmt::format("{}{}/", prefix, name), depth + 1);
      else if (kind == H5I_DATASET)
        dataset(object.get(), prefix + name);
    }
  }

  std::vector<Hdf5Array> take() {
    std::ranges::stable_sort(arrays_, in_natural_order, &Hdf5Array::path);
    return std::move(arrays_);
  }

 private:
  void dataset(hid_t dataset, const std::string& path) {
    const Hdf5Handle type(hdf5_checked(H5Dget_type(dataset), context_, "read the type of " + path), H5Tclose);
    Hdf5Array array{.path = path};
    if (!hdf5_dtype_of(type.get(), array.dtype)) return;
    const Hdf5Handle space(hdf5_checked(H5Dget_space(dataset), context_, "read the shape of " + path),
                           H5Sclose);
    const int rank =
        hdf5_checked(H5Sget_simple_extent_ndims(space.get()), context_, "read the shape of " + path);
    std::vector<hsize_t> extents(static_cast<std::size_t>(rank));
    hdf5_checked(H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr), context_,
                 "read the shape of " + path);
    double bytes = static_cast<double>(size_in_bytes(array.dtype));
    for (const hsize_t extent : extents) {
      bytes *= static_cast<double>(extent);
      array.extents.push_back(static_cast<std::int64_t>(extent));
    }
    if (bytes > kMostTimesFile * static_cast<double>(file_bytes_))
      throw Error(ErrorKind::data,
                  fmt::format("{} would take {:.3g} bytes, and the file has {}", path, bytes, file_bytes_),
                  context_.where, context_.advice);
    array.bytes.resize(static_cast<std::size_t>(bytes));
    const Hdf5Handle half = array.dtype == DType::f16 || array.dtype == DType::bf16
                                ? hdf5_half_type(array.dtype, context_)
                                : Hdf5Handle();
    const hid_t memory = half.get() >= 0 ? half.get() : hdf5_memory_type(array.dtype);
    hdf5_checked(H5Dread(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, array.bytes.data()), context_,
                 "read " + path);
    arrays_.push_back(std::move(array));
  }

  Hdf5Context context_;
  std::uint64_t file_bytes_;
  std::vector<Hdf5Array> arrays_;
};

Hdf5Handle without_times(hid_t kind, const Hdf5Context& context) {
  Hdf5Handle properties(hdf5_checked(H5Pcreate(kind), context, "create properties"), H5Pclose);
  hdf5_checked(H5Pset_obj_track_times(properties.get(), false), context, "switch off times");
  return properties;
}

void write_array(hid_t file, const Hdf5Array& array, const Hdf5Context& context) {
  std::vector<hsize_t> extents(array.extents.begin(), array.extents.end());
  const Hdf5Handle space(hdf5_checked(extents.empty() ? H5Screate(H5S_SCALAR)
                                                      : H5Screate_simple(static_cast<int>(extents.size()),
                                                                         extents.data(), nullptr),
                                      context, "describe a shape"),
                         H5Sclose);
  const Hdf5Handle links(hdf5_checked(H5Pcreate(H5P_LINK_CREATE), context, "create properties"), H5Pclose);
  hdf5_checked(H5Pset_create_intermediate_group(links.get(), 1), context, "create groups");
  const Hdf5Handle layout = without_times(H5P_DATASET_CREATE, context);
  const Hdf5Handle dataset(hdf5_checked(H5Dcreate2(file, array.path.c_str(), hdf5_file_type(array.dtype),
                                                   space.get(), links.get(), layout.get(), H5P_DEFAULT),
                                        context, "create " + array.path),
                           H5Dclose);
  if (!array.bytes.empty())
    hdf5_checked(H5Dwrite(dataset.get(), hdf5_memory_type(array.dtype), H5S_ALL, H5S_ALL, H5P_DEFAULT,
                          array.bytes.data()),
                 context, "write " + array.path);
}

}  // namespace

bool in_natural_order(const std::string& a, const std::string& b) {
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    if (!is_digit(a[i]) || !is_digit(b[k])) {
      if (a[i] != b[k]) return a[i] < b[k];
      ++i, ++k;
      continue;
    }
    const auto digits = [&](const std::string& text, std::size_t& at) {
      while (at + 1 < text.size() && text[at] == '0' && is_digit(text[at + 1])) ++at;
      const std::size_t first = at;
      while (at < text.size() && is_digit(text[at])) ++at;
      return text.substr(first, at - first);
    };
    const std::string one = digits(a, i), other = digits(b, k);
    if (one != other) return one.size() != other.size() ? one.size() < other.size() : one < other;
  }
  return a.size() < b.size();
}

std::vector<Hdf5Array> read_hdf5_arrays(const std::string& path) {
  const Hdf5Context context{ErrorKind::data, path, "Give a file of HDF5."};
  std::error_code code;
  const std::uintmax_t bytes =
      std::filesystem::is_regular_file(path, code) ? std::filesystem::file_size(path, code) : 0;
  if (bytes == 0 || code) throw Error(ErrorKind::data, "is no file, or empty", path, "Give a file of HDF5.");
  const Hdf5Lock lock;
  const Hdf5Handle file = hdf5_open_file(path, context);
  Collector collector(path, bytes);
  collector.group(file.get(), "", 0);
  return collector.take();
}

void write_hdf5_arrays(int descriptor, const std::string& path, std::span<const Hdf5Array> arrays) {
  const Hdf5Context context{ErrorKind::output, path, "Choose another --output."};
  Hdf5Output driver;
  driver.descriptor = descriptor;
  const Hdf5Lock lock;
  const Hdf5Handle access = hdf5_access_properties(context);
  hdf5_checked(H5Pset_libver_bounds(access.get(), H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST), context,
               "choose the format");
  hdf5_write_to(access, driver, context);
  Hdf5Handle file(hdf5_checked(H5Fcreate(path.c_str(), H5F_ACC_TRUNC,
                                         without_times(H5P_FILE_CREATE, context).get(), access.get()),
                               context, "create"),
                  H5Fclose);
  for (const Hdf5Array& array : arrays) write_array(file.get(), array, context);
  hdf5_checked(file.close(), context, "close");
  if (driver.error != 0) throw file_error(ErrorKind::output, "write", path, driver.error);
}

}  // namespace lockstep
