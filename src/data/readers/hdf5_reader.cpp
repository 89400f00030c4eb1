// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads datasets of an HDF5 file, whose first axis counts samples. Reads once, in slabs of whole chunks, so
// that every chunk is decompressed once. Channels-first samples are converted slab by slab. Opens the file
// read-only without file locks.
#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "core/device.h"
#include "data/reader_options.h"
#include "data/reader_table.h"
#include "io/hdf5_handle.h"

namespace lockstep {

namespace {

constexpr std::array kOptions = with_common_options(std::array{
    ParamSpec{"path", ParamType::string, kRequired, "", "the file; relative to the config file's folder"},
    ParamSpec{"features", ParamType::string, kRequired, "", "path of a dataset in the file: train/image"},
    ParamSpec{"labels", ParamType::string, "null", "",
              "path of a dataset: integers are class indices, floats targets; null: none"},
    ParamSpec{"layout", ParamType::string, "channels_last", "channels_last|channels_first",
              "layout of a sample in the file; channels_first (C,H,W) is converted while reading"}});

/// The approximate size of a slab: whole chunks that are read at once.
constexpr std::int64_t kSlabBytes = std::int64_t{8} << 20;

struct Hdf5Data {
  Hdf5Handle id;
  std::string name, where;
  std::vector<hsize_t> extents;
  hsize_t rows_per_chunk = 1;
  hid_t file_class = H5T_NO_CLASS;
  Hdf5Handle file_type;

  Hdf5Context context() const {
    return {ErrorKind::data, where,
            "The file may be damaged or truncated; h5dump and h5ls show its contents."};
  }
  std::int64_t rows() const { return static_cast<std::int64_t>(extents[0]); }
  std::int64_t values_per_row() const {
    std::int64_t product = 1;
    for (std::size_t axis = 1; axis < extents.size(); ++axis)
      product *= static_cast<std::int64_t>(extents[axis]);
    return product;
  }
};

herr_t collect_name(hid_t, const char* name, const H5L_info_t*, void* names) {
  try {
    static_cast<std::vector<std::string>*>(names)->emplace_back(name);
    return 0;
  } catch (...) {
    return -1;  // an exception must not pass through HDF5
  }
}

/// "It holds: train/image, train/label": the file's datasets, at most a dozen.
std::string datasets_text(hid_t file) {
  std::vector<std::string> names;
  if (H5Lvisit(file, H5_INDEX_NAME, H5_ITER_NATIVE, collect_name, &names) < 0) H5Eclear2(H5E_DEFAULT);
  std::string text;
  int shown = 0;
  for (const std::string& name : names) {
    const Hdf5Handle object(H5Oopen(file, name.c_str(), H5P_DEFAULT), H5Oclose);
    if (object.get() < 0 || H5Iget_type(object.get()) != H5I_DATASET) continue;
    if (shown == 12) return text + ", ...";
    text += (shown++ == 0 ? "It holds: " : ", ") + name;
  }
  return shown == 0 ? "It holds no datasets." : text + ".";
}

Hdf5Data open_data(hid_t file, const std::string& path, const std::string& name) {
  Hdf5Data data;
  data.name = name;
  data.where = fmt::format("{}, dataset {}", path, name);
  data.id = Hdf5Handle(H5Dopen2(file, name.c_str(), H5P_DEFAULT), H5Dclose);
  if (data.id.get() < 0) {
    const std::string reason = hdf5_error_text();
    throw Error(ErrorKind::data, fmt::format("there is no such dataset ({})", reason), data.where,
                datasets_text(file));
  }
  const Hdf5Context context = data.context();
  const Hdf5Handle space(hdf5_checked(H5Dget_space(data.id.get()), context, "read the extents"), H5Sclose);
  const int rank = hdf5_checked(H5Sget_simple_extent_ndims(space.get()), context, "read the extents");
  if (rank < 1 || rank >= Shape::kMaxRank)
    throw Error(ErrorKind::data, fmt::format("has {} axes; 1 to {} can be read", rank, Shape::kMaxRank - 1),
                data.where, "The first axis counts the samples.");
  data.extents.resize(static_cast<std::size_t>(rank));
  hdf5_checked(H5Sget_simple_extent_dims(space.get(), data.extents.data(), nullptr), context,
               "read the extents");
  data.file_type = Hdf5Handle(hdf5_checked(H5Dget_type(data.id.get()), context, "read the type"), H5Tclose);
  data.file_class = hdf5_checked(H5Tget_class(data.file_type.get()), context, "read the type");

  const Hdf5Handle creation(hdf5_checked(H5Dget_create_plist(data.id.get()), context, "read the layout"),
                            H5Pclose);
  if (hdf5_checked(H5Pget_layout(creation.get()), context, "read the layout") == H5D_CHUNKED) {
    std::vector<hsize_t> chunk(data.extents.size());
    hdf5_checked(H5Pget_chunk(creation.get(), rank, chunk.data()), context, "read the chunk size");
    data.rows_per_chunk = std::max<hsize_t>(1, chunk[0]);
  }
  return data;
}

/// Calls slab(first, count) for consecutive ranges of rows that cover [rows.first, rows.last) and end at
/// chunk boundaries.
template <typename Slab>
void for_each_slab(const Hdf5Data& data, const RowRange& rows, std::int64_t row_bytes, Slab slab) {
  const auto chunk = static_cast<std::int64_t>(data.rows_per_chunk);
  const std::int64_t step =
      std::max<std::int64_t>(1, kSlabBytes / std::max<std::int64_t>(1, row_bytes * chunk)) * chunk;
  for (std::int64_t first = rows.first; first < rows.last;) {
    const std::int64_t last = std::min(rows.last, (first / step + 1) * step);
    slab(first, last - first);
    first = last;
  }
}

/// Reads rows [first, first + count) as `memory_type` into `out`.
void read_slab(const Hdf5Data& data, std::int64_t first, std::int64_t count, hid_t memory_type, void* out) {
  Hdf5Context context = data.context();
  context.where = fmt::format("{}, record {}", data.where, first);
  std::vector<hsize_t> start(data.extents.size(), 0), extents = data.extents;
  start[0] = static_cast<hsize_t>(first);
  extents[0] = static_cast<hsize_t>(count);
  const Hdf5Handle in_file(hdf5_checked(H5Dget_space(data.id.get()), context, "read the extents"), H5Sclose);
  hdf5_checked(
      H5Sselect_hyperslab(in_file.get(), H5S_SELECT_SET, start.data(), nullptr, extents.data(), nullptr),
      context, "select rows");
  const Hdf5Handle in_memory(
      hdf5_checked(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), context,
                   "describe memory"),
      H5Sclose);
  hdf5_checked(H5Dread(data.id.get(), memory_type, in_memory.get(), in_file.get(), H5P_DEFAULT, out), context,
               fmt::format("read {} records", count));
}

/// to[sample][position][channel] = from[sample][channel][position]
template <typename T>
void channels_to_last(const void* from, void* to, std::int64_t samples, std::int64_t channels,
                      std::int64_t positions) {
  const T* in = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  for (std::int64_t sample = 0; sample < samples; ++sample, in += channels * positions)
    for (std::int64_t position = 0; position < positions; ++position)
      for (std::int64_t channel = 0; channel < channels; ++channel)
        *out++ = in[channel * positions + position];
}

void channels_to_last(std::size_t value_bytes, const void* from, void* to, std::int64_t samples,
                      std::int64_t channels, std::int64_t positions) {
  switch (value_bytes) {
    case 1:
      return channels_to_last<std::uint8_t>(from, to, samples, channels, positions);
    case 2:
      return channels_to_last<std::uint16_t>(from, to, samples, channels, positions);
    case 4:
      return channels_to_last<std::uint32_t>(from, to, samples, channels, positions);
    default:
      return channels_to_last<std::uint64_t>(from, to, samples, channels, positions);
  }
}

/// The shape of a sample in memory: channels last, at least one axis.
Shape sample_shape(const Hdf5Data& data, bool channels_first) {
  std::vector<std::int64_t> extents(data.extents.begin() + 1, data.extents.end());
  if (channels_first && extents.size() < 2)
    throw Error(ErrorKind::data, "layout channels_first needs samples of at least two axes", data.where,
                "Leave out the option layout.");
  if (channels_first) std::rotate(extents.begin(), extents.begin() + 1, extents.end());
  if (extents.empty()) extents.push_back(1);
  return Shape(std::span<const std::int64_t>(extents));
}

void read_features(DatasetParts& parts, const Hdf5Data& data, const RowRange& rows, bool channels_first) {
  if (!hdf5_dtype_of(data.file_type.get(), parts.feature_dtype))
    throw Error(ErrorKind::data, "has a type that cannot be read", data.where,
                "Features may be int8 to int64, uint8, uint16, float32 or float64.");
  const std::size_t value_bytes = size_in_bytes(parts.feature_dtype);
  parts.first_record = rows.first;
  parts.size = rows.last - rows.first;
  parts.feature_shape = sample_shape(data, channels_first);
  const std::int64_t row_bytes = data.values_per_row() * static_cast<std::int64_t>(value_bytes);
  parts.features = Buffer(cpu_device(), static_cast<std::size_t>(parts.size * row_bytes));
  if (row_bytes == 0) return;  // Dataset rejects samples without values
  const hid_t memory_type = hdf5_memory_type(parts.feature_dtype);
  char* out = static_cast<char*>(parts.features.data());
  std::vector<char> scratch;
  for_each_slab(data, rows, row_bytes, [&](std::int64_t first, std::int64_t count) {
    if (channels_first) {
      scratch.resize(static_cast<std::size_t>(count * row_bytes));
      read_slab(data, first, count, memory_type, scratch.data());
      const auto channels = static_cast<std::int64_t>(data.extents[1]);
      channels_to_last(value_bytes, scratch.data(), out, count, channels, data.values_per_row() / channels);
    } else {
      read_slab(data, first, count, memory_type, out);
    }
    out += count * row_bytes;
  });
}

void read_labels(DatasetParts& parts, const Hdf5Data& data, const RowRange& rows) {
  const auto values = static_cast<std::size_t>((rows.last - rows.first) * data.values_per_row());
  parts.num_label_columns = data.values_per_row();
  if (data.file_class == H5T_FLOAT) {
    parts.label_rows.resize(values);
    if (values > 0)
      read_slab(data, rows.first, rows.last - rows.first, H5T_NATIVE_FLOAT, parts.label_rows.data());
    return;
  }
  if (data.file_class != H5T_INTEGER)
    throw Error(ErrorKind::data, "labels are neither integers nor floating-point numbers", data.where,
                "Store them as int32.");
  std::vector<std::int64_t> wide(values);
  if (values > 0) read_slab(data, rows.first, rows.last - rows.first, H5T_NATIVE_INT64, wide.data());
  const auto bad = std::find_if(wide.begin(), wide.end(), [](std::int64_t label) {
    return label < std::numeric_limits<std::int32_t>::min() ||
           label > std::numeric_limits<std::int32_t>::max();
  });
  if (bad != wide.end())
    throw Error(
        ErrorKind::data, fmt::format("label {} does not fit into 32 bits", *bad),
        fmt::format("{}, record {}", data.where, rows.first + (bad - wide.begin()) / parts.num_label_columns),
        "Labels are class numbers from 0 on.");
  parts.label_indices.assign(wide.begin(), wide.end());
}

/// Reads a file; only features if `labels` is null.
DatasetParts read_file(const Params& params, const std::string& path, const std::optional<RowRange>& rows,
                       const std::string* labels, const Shape* feature_shape) {
  DatasetParts parts;
  parts.source = path;
  parts.record_word = "record";
  parts.transform = transform_options(params);
  const Hdf5Lock lock;
  const Hdf5Handle file = hdf5_open_file(
      path, {ErrorKind::data, path, "Check that it is an HDF5 file and was copied completely."});
  const Hdf5Data features = open_data(file.get(), path, params.string("features"));
  const RowRange range = checked_rows(rows, features.rows(), features.where);
  const bool channels_first = params.string("layout") == "channels_first";
  if (feature_shape != nullptr)
    check_feature_shape(sample_shape(features, channels_first), *feature_shape, features.where);
  if (labels != nullptr) {
    const Hdf5Data data = open_data(file.get(), path, *labels);
    if (data.rows() != features.rows())
      throw Error(ErrorKind::data,
                  fmt::format("holds {} labels, but {} holds {} samples", data.rows(), features.name,
                              features.rows()),
                  data.where, "Name the labels of the same samples.");
    read_labels(parts, data, range);
  }
  read_features(parts, features, range, channels_first);
  return parts;
}

std::unique_ptr<Dataset> make(const Params& params, const std::string& base_directory) {
  const std::string path = resolved_path(params.string("path"), base_directory);
  const std::string* const labels = params.has("labels") ? &params.string("labels") : nullptr;
  return std::make_unique<Dataset>(read_file(params, path, rows_option(params), labels, nullptr));
}

std::unique_ptr<Dataset> make_features(const Params& params, const std::string& path,
                                       const Shape& feature_shape, const TextInfo* /*text*/) {
  return std::make_unique<Dataset>(read_file(params, path, std::nullopt, nullptr, &feature_shape));
}

}  // namespace

ReaderEntry hdf5_reader() { return {"hdf5", "datasets of an HDF5 file", kOptions, make, make_features}; }

}  // namespace lockstep
