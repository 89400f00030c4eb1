// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5_arrays.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <exception>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>

#include "io/file_descriptor.h"
#include "io/hdf5_advice.h"
#include "io/hdf5_attribute.h"
#include "io/hdf5_chunk.h"
#include "io/hdf5_handle.h"
#include "io/hdf5_output.h"
#include "io/hdf5_storage.h"
#include "io/hdf5_type.h"
#include "io/input_budget.h"

namespace lockstep {

namespace {

constexpr int kDeepest = 64;
constexpr std::string_view kWriteAgain =
    "HDF5 would deliver other values, usually zeros. Copy or write the file again, with all that belongs to "
    "it.";

/// Permits or refuses external links, which the names of links and soft links may lead through.
class LinkGuard {
 public:
  LinkGuard(FollowedFiles& followed, const Hdf5Context& context)
      : followed_(followed),
        access_(hdf5_checked(H5Pcreate(H5P_LINK_ACCESS), context, "create properties"), H5Pclose) {
    hdf5_checked(H5Pset_elink_cb(access_.get(), traverse, this), context, "watch the external links");
  }

  Hdf5Handle open(hid_t group, const std::string& name, const std::string& where) {
    where_ = where;
    refused_.reset();
    Hdf5Handle object(H5Oopen(group, name.c_str(), access_.get()), H5Oclose);
    if (refused_) throw *refused_;
    return object;
  }

 private:
  static herr_t traverse(const char* parent, const char*, const char* child, const char*, unsigned*, hid_t,
                         void* data) {
    auto& self = *static_cast<LinkGuard*>(data);
    try {
      for (const std::string& path : candidate_paths(child, parent, "HDF5_EXT_PREFIX")) {
        std::error_code failed;
        if (!std::filesystem::exists(path, failed)) continue;
        self.followed_.open(path, "the external link", self.where_);
        break;
      }
      return 0;
    } catch (const Error& error) {  // no exception may pass through HDF5
      self.refused_ = error;
    } catch (const std::exception& error) {
      self.refused_ = Error(ErrorKind::data, error.what(), self.where_);
    }
    return -1;
  }

  FollowedFiles& followed_;
  Hdf5Handle access_;
  std::string where_;
  std::optional<Error> refused_;
};

class Collector {
 public:
  Collector(const std::string& path, std::uint64_t file_bytes, std::uint64_t most_bytes,
            FollowedFiles& followed)
      : context_{ErrorKind::data, path, "The file may be damaged."},
        budget_(path, file_bytes),
        most_bytes_(most_bytes),
        followed_(followed),
        links_(followed, context_) {}

  void group(hid_t group, const std::string& prefix, int depth) {
    if (depth > kDeepest)
      throw Error(ErrorKind::data, fmt::format("its groups are nested deeper than {} levels", kDeepest),
                  context_.where, context_.advice);
    for (const std::string& name : names_of(group)) {
      budget_.visit();
      const std::string path = prefix + name;
      const Hdf5Handle object = links_.open(group, name, place(path));
      if (object.get() < 0) {
        const std::string reason = hdf5_error_text();
        if (is_plain(group, name))
          throw Error(ErrorKind::data, fmt::format("cannot open {}: {}", path, reason), context_.where,
                      context_.advice);
        throw Error(ErrorKind::data, fmt::format("is a link that leads nowhere: {}", reason), place(path),
                    std::string(kWriteAgain));
      }
      // HDF5 may have passed over a file that is no HDF5 file.
      followed_.open(file_name_of(object.get(), context_), "the external link", place(path));
      const H5I_type_t kind = H5Iget_type(object.get());
      if (kind == H5I_GROUP)
        this->group(object.get(), path + "/", depth + 1);
      else if (kind == H5I_DATASET)
        dataset(object.get(), path);
    }
  }

  std::vector<Hdf5Array> take() {
    std::ranges::stable_sort(arrays_, in_natural_order, &Hdf5Array::path);
    return std::move(arrays_);
  }

 private:
  std::string place(const std::string& path) const {
    return fmt::format("{}, dataset {}", context_.where, path);
  }

  std::vector<std::string> names_of(hid_t group) const {
    std::vector<std::string> names;
    hdf5_checked(H5Literate(
                     group, H5_INDEX_NAME, H5_ITER_INC, nullptr,
                     [](hid_t, const char* name, const H5L_info_t*, void* to) -> herr_t {
                       auto& all = *static_cast<std::vector<std::string>*>(to);
                       all.emplace_back(name);
                       return all.size() > InputBudget::kMostVisits ? 1 : 0;
                     },
                     &names),
                 context_, "list a group");
    return names;
  }

  static bool is_plain(hid_t group, const std::string& name) {
    H5L_info_t info{};
    const bool plain = H5Lget_info(group, name.c_str(), &info, H5P_DEFAULT) < 0 || info.type == H5L_TYPE_HARD;
    H5Eclear2(H5E_DEFAULT);
    return plain;
  }

  void dataset(hid_t dataset, const std::string& path) {
    const Hdf5Context here{ErrorKind::data, place(path), context_.advice};
    const Hdf5Handle type(hdf5_checked(H5Dget_type(dataset), here, "read the type"), H5Tclose);
    Hdf5Array array{.path = path};
    const bool is_bfloat16 = is_bfloat16_of_keras(dataset, type.get(), here);
    if (is_bfloat16)
      array.dtype = DType::bf16;
    else if (!hdf5_dtype_of(type.get(), array.dtype))
      return pass_over(type.get(), here);
    array.extents = stored_extents(dataset, here);
    std::uint64_t bytes = size_in_bytes(array.dtype);
    for (const std::int64_t extent : array.extents)
      if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes))
        throw Error(ErrorKind::data, "has extents beyond 64 bits", here.where, here.advice);
    budget_.add_file(followed_.bytes() - followed_bytes_);
    followed_bytes_ = followed_.bytes();
    budget_.take(bytes);
    budget_.require(chunk_bytes(dataset, here));
    read_bytes_ += bytes;
    if (read_bytes_ <= most_bytes_) read(dataset, array, bytes, here, is_bfloat16 ? type.get() : -1);
    arrays_.push_back(std::move(array));
  }

  /// HDF5's library has no bfloat16: Keras writes two bytes that mean nothing to it, and says so next to
  /// them.
  static bool is_bfloat16_of_keras(hid_t dataset, hid_t type, const Hdf5Context& here) {
    if (H5Tget_class(type) != H5T_OPAQUE || H5Tget_size(type) != 2) return false;
    if (H5Aexists(dataset, "dtype") <= 0) return false;
    const Hdf5Handle attribute(
        hdf5_checked(H5Aopen(dataset, "dtype", H5P_DEFAULT), here, "open attribute dtype"), H5Aclose);
    return text_of_attribute(attribute.get(), here) == "bfloat16";
  }

  /// Texts, bools and unsigned numbers, such as the states of random generators, are no weights. What else
  /// cannot be read may be one, which nobody would miss until the net is wrong.
  static void pass_over(hid_t type, const Hdf5Context& here) {
    const H5T_class_t kind = H5Tget_class(type);
    if (kind == H5T_STRING || kind == H5T_INTEGER || kind == H5T_ENUM) return;
    throw Error(ErrorKind::data, fmt::format("holds {}, a type that cannot be read", hdf5_type_name(type)),
                here.where, "Save the weights as float32: in Keras, from a model with dtype=\"float32\".");
  }

  /// Checks that all values are there.
  std::vector<std::int64_t> stored_extents(hid_t dataset, const Hdf5Context& here) {
    std::set<std::string> sources;
    StorageQuery query(dataset, here, false, sources);
    query.followed = &followed_;
    std::optional<MissingPart> missing;
    if (query.extents.empty()) {
      check_scalar(query);
    } else if (std::ranges::find(query.extents, hsize_t{0}) == query.extents.end()) {
      const Hdf5Handle all = query.rows(0, query.extents[0] - 1);
      query.needed = all.get();
      missing = missing_part(query);
    }
    if (missing)
      throw Error(ErrorKind::data, missing->what,
                  fmt::format("{}, row {}", here.where, first_row(missing->values.get(), here)),
                  std::string(kWriteAgain));
    reserve_open_files(sources.size(), here.where);
    return {query.extents.begin(), query.extents.end()};
  }

  static void check_scalar(const StorageQuery& query) {
    const Hdf5Context& here = query.context;
    const Hdf5Handle creation(hdf5_checked(H5Dget_create_plist(query.dataset), here, "read the layout"),
                              H5Pclose);
    const bool plain =
        H5Pget_layout(creation.get()) != H5D_VIRTUAL && H5Pget_external_count(creation.get()) <= 0;
    if (!plain)
      throw Error(ErrorKind::data, "is one number that is kept in another file", here.where,
                  "Write it into the file itself.");
    if (H5Sget_simple_extent_type(query.space.get()) != H5S_SCALAR)
      throw Error(ErrorKind::data, "has no values (a null dataspace)", here.where, std::string(kWriteAgain));
    const Hdf5Handle type(hdf5_checked(H5Dget_type(query.dataset), here, "read the type"), H5Tclose);
    if (H5Dget_storage_size(query.dataset) < H5Tget_size(type.get()))
      throw Error(ErrorKind::data, "was never written", here.where, std::string(kWriteAgain));
  }

  /// HDF5 decompresses a chunk as a whole, which may be larger than what the dataset has of it.
  static std::uint64_t chunk_bytes(hid_t dataset, const Hdf5Context& here) {
    const Hdf5Handle creation(hdf5_checked(H5Dget_create_plist(dataset), here, "read the layout"), H5Pclose);
    if (H5Pget_layout(creation.get()) != H5D_CHUNKED) return 0;
    std::array<hsize_t, H5S_MAX_RANK> extents{};
    const int rank =
        hdf5_checked(H5Pget_chunk(creation.get(), H5S_MAX_RANK, extents.data()), here, "read the chunk size");
    const Hdf5Handle type(hdf5_checked(H5Dget_type(dataset), here, "read the type"), H5Tclose);
    std::uint64_t bytes = H5Tget_size(type.get());
    for (int axis = 0; axis < rank; ++axis)
      if (__builtin_mul_overflow(bytes, extents[static_cast<std::size_t>(axis)], &bytes))
        return std::numeric_limits<std::uint64_t>::max();
    return bytes;
  }

  /// `as_it_is`: the type of values that are read byte by byte; negative: that of array.dtype.
  void read(hid_t dataset, Hdf5Array& array, std::uint64_t bytes, const Hdf5Context& here,
            hid_t as_it_is) const {
    array.bytes.resize(bytes);
    const bool is_half = array.dtype == DType::f16 || array.dtype == DType::bf16;
    const Hdf5Handle half = is_half && as_it_is < 0 ? hdf5_half_type(array.dtype, here) : Hdf5Handle();
    const hid_t memory = as_it_is >= 0     ? as_it_is
                         : half.get() >= 0 ? half.get()
                                           : hdf5_memory_type(array.dtype);
    const herr_t result = H5Dread(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, array.bytes.data());
    if (result >= 0) return;
    const std::string reason = hdf5_error_text();
    const Hdf5Handle creation(H5Dget_create_plist(dataset), H5Pclose);
    if (const auto filter = missing_hdf5_filter(creation.get()))
      throw missing_filter_error(*filter, context_.where, here.where);
    throw Error(ErrorKind::data, fmt::format("cannot read: {}", reason), here.where, here.advice);
  }

  Hdf5Context context_;
  InputBudget budget_;
  const std::uint64_t most_bytes_;
  FollowedFiles& followed_;
  LinkGuard links_;
  std::uint64_t followed_bytes_ = 0, read_bytes_ = 0;
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

std::vector<Hdf5Array> read_hdf5_arrays(const std::string& path, FollowedFiles& followed,
                                        std::uint64_t most_bytes) {
  const Hdf5Context context{ErrorKind::data, path, "Give a file of HDF5."};
  std::error_code code;
  const std::uintmax_t bytes =
      std::filesystem::is_regular_file(path, code) ? std::filesystem::file_size(path, code) : 0;
  if (bytes == 0 || code) throw Error(ErrorKind::data, "is no file, or empty", path, "Give a file of HDF5.");
  const Hdf5Lock lock;
  const Hdf5Handle file = hdf5_open_file(path, context);
  Collector collector(path, bytes, most_bytes, followed);
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
