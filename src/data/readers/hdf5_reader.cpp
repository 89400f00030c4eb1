// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads datasets of HDF5 files, whose first axis counts samples. Reads once, in slabs of whole chunks, so
// that every chunk is decompressed once. Channels-first samples are converted slab by slab. Opens the file
// read-only without file locks.
#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "core/device.h"
#include "data/data_files.h"
#include "data/reader_options.h"
#include "data/reader_table.h"
#include "data/readers/hdf5_dataset.h"
#include "data/readers/hdf5_stored.h"

namespace lockstep {

namespace {

constexpr std::array kOptions = with_common_options(std::array{
    ParamSpec{"path", ParamType::strings, kRequired, "",
              "the file; a list or a pattern (part*.h5) of files is read as one; relative to the config "
              "file's folder",
              Change::place},
    ParamSpec{"features", ParamType::string, kRequired, "", "path of a dataset in the file: train/image"},
    ParamSpec{"labels", ParamType::string, "null", "",
              "path of a dataset: integers are class indices, floats targets; null: none"},
    ParamSpec{"layout", ParamType::string, "channels_last", "channels_last|channels_first",
              "layout of a sample in the file; channels_first (C,H,W) is converted while reading"},
    ParamSpec{"allow_fill", ParamType::boolean, "false", "",
              "read the fill value (usually 0) where no value was ever written; false: that is an error"}});

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
Shape sample_shape(const Hdf5Dataset& data, bool channels_first) {
  std::vector<std::int64_t> extents(data.extents.begin() + 1, data.extents.end());
  if (channels_first && extents.size() < 2)
    throw Error(ErrorKind::data, "layout channels_first needs samples of at least two axes", data.where,
                "Leave out the option layout.");
  if (channels_first) std::rotate(extents.begin(), extents.begin() + 1, extents.end());
  if (extents.empty()) extents.push_back(1);
  return Shape(std::span<const std::int64_t>(extents));
}

/// How much a trial reads of the values: enough to meet the file's filters; in memory.
constexpr std::int64_t kTrialBytes = std::int64_t{64} << 20;

Hdf5Context file_context(const std::string& path) {
  return {ErrorKind::data, path, "Check that it is an HDF5 file and was copied completely."};
}

/// The datasets of one file.
struct Hdf5Part {
  Hdf5Handle file;
  Hdf5Dataset features;
  std::optional<Hdf5Dataset> labels;

  /// Only features if `labels_name` is null.
  Hdf5Part(const std::string& path, const std::string& features_name, const std::string* labels_name)
      : file(hdf5_open_file(path, file_context(path))),
        features(open_hdf5_dataset(file.get(), path, features_name)) {
    if (labels_name == nullptr) return;
    labels = open_hdf5_dataset(file.get(), path, *labels_name);
    if (labels->rows() != features.rows())
      throw Error(ErrorKind::data,
                  fmt::format("holds {} labels, but {} holds {} samples", labels->rows(), features.name,
                              features.rows()),
                  labels->where, "Name the labels of the same samples.");
    if (labels->file_class != H5T_FLOAT && labels->file_class != H5T_INTEGER)
      throw Error(ErrorKind::data, "labels are neither integers nor floating-point numbers", labels->where,
                  "Store them as int32.");
  }
};

/// Reads datasets of one or several files as if the files were one. All files are opened and checked before
/// the values of the first are read.
class Hdf5Files {
 public:
  /// if_there: only if the first file has them.
  enum class Labels { none, if_there, needed };

  Hdf5Files(const Params& params, std::vector<std::string> paths, Labels labels)
      : paths_(std::move(paths)),
        features_name_(params.string("features")),
        labels_name_(labels == Labels::none || !params.has("labels") ? nullptr : &params.string("labels")),
        labels_may_miss_(labels == Labels::if_there),
        channels_first_(params.string("layout") == "channels_first"),
        allow_fill_(params.boolean("allow_fill")) {
    parts_.source = name_of_files(paths_);
    parts_.record_word = "record";
    parts_.transform = transform_options(params);
  }

  /// Opens and checks all files as read() does, and reads only a few values of each. An action in a child
  /// process: errors and values do not matter, only that it ends.
  void try_all(const std::optional<RowRange>& rows, FunctionRef<void(const std::string&)> opening) {
    std::int64_t bytes_left = kTrialBytes;
    for (const std::string& path : paths_) {
      opening(path);
      open(path, rows, nullptr);
      for (const Hdf5Dataset* const data : {&part_->features, part_->labels ? &*part_->labels : nullptr})
        if (data != nullptr) bytes_left -= try_values(*data, ranges_.back(), bytes_left);
    }
  }

  DatasetParts read(const std::optional<RowRange>& rows, const Shape* feature_shape) && {
    for (const std::string& path : paths_) open(path, rows, feature_shape);
    checked_rows(rows, total_rows_, dataset_name());
    allocate();
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      if (ranges_[i].first == ranges_[i].last) continue;
      if (paths_.size() > 1) part_.emplace(paths_[i], features_name_, labels_name_);
      if (part_->features.rows() < ranges_[i].last)
        throw Error(ErrorKind::data, "became shorter while it was read", part_->features.where,
                    "Start when the file is complete.");
      if (part_->labels) read_labels(*part_->labels, ranges_[i]);
      read_features(part_->features, ranges_[i]);
    }
    return std::move(parts_);
  }

 private:
  /// Opens and checks a file, and adds its rows.
  void open(const std::string& path, const std::optional<RowRange>& rows, const Shape* feature_shape) {
    if (&path == &paths_.front() && labels_may_miss_ && labels_name_ != nullptr &&
        !has_hdf5_link(hdf5_open_file(path, file_context(path)).get(), *labels_name_))
      labels_name_ = nullptr;
    part_.emplace(path, features_name_, labels_name_);
    if (&path == &paths_.front())
      begin(feature_shape);
    else
      check_alike();
    add(path, rows);
  }

  /// Reads slabs of up to `bytes` in memory, but at least the first and the last one; none if `bytes` is 0.
  static std::int64_t try_values(const Hdf5Dataset& data, const RowRange& rows, std::int64_t bytes) {
    const Hdf5Handle native(H5Tget_native_type(data.file_type.get(), H5T_DIR_DEFAULT), H5Tclose);
    const std::int64_t row_bytes =
        data.values_per_row() * static_cast<std::int64_t>(H5Tget_size(native.get()));
    if (row_bytes <= 0 || bytes <= 0) return 0;
    std::int64_t done = 0;
    std::vector<char> values;
    for_each_slab(data, rows, row_bytes, [&](std::int64_t first, std::int64_t count) {
      if (done > 0 && done + count * row_bytes > bytes && first + count != rows.last) return;
      check_memory(data.where, count, static_cast<double>(row_bytes));
      values.resize(static_cast<std::size_t>(count * row_bytes));
      read_slab(data, first, count, native.get(), values.data());
      done += count * row_bytes;
    });
    return done;
  }

  DType feature_type() const {
    DType type{};
    if (!hdf5_dtype_of(part_->features.file_type.get(), type))
      throw Error(ErrorKind::data, "has a type that cannot be read", part_->features.where,
                  "Features may be int8 to int64, uint8, uint16, float16, bfloat16, float32 or float64.");
    return type;
  }
  std::string dataset_name() const { return fmt::format("{}, dataset {}", parts_.source, features_name_); }
  bool float_labels() const { return part_->labels->file_class == H5T_FLOAT; }

  /// The first file says what a sample is.
  void begin(const Shape* feature_shape) {
    parts_.feature_shape = sample_shape(part_->features, channels_first_);
    if (feature_shape != nullptr)
      check_feature_shape(parts_.feature_shape, *feature_shape, part_->features.where);
    parts_.feature_dtype = feature_type();
    if (!part_->labels) return;
    parts_.num_label_columns = part_->labels->values_per_row();
    float_labels_ = float_labels();
  }

  void check_alike() const {
    const std::string& first = paths_.front();
    const auto fail = [](std::string what, const std::string& where) {
      throw Error(ErrorKind::data, std::move(what), where,
                  "All files of a data set need samples and labels of the same form.");
    };
    const Hdf5Dataset& features = part_->features;
    if (const Shape shape = sample_shape(features, channels_first_); !(shape == parts_.feature_shape))
      fail(fmt::format("its samples have the shape {}, but those of {} have {}", shape.to_string(), first,
                       parts_.feature_shape.to_string()),
           features.where);
    if (const DType type = feature_type(); type != parts_.feature_dtype)
      fail(fmt::format("its features are {}, but those of {} are {}", name_of(type), first,
                       name_of(parts_.feature_dtype)),
           features.where);
    if (!part_->labels) return;
    if (part_->labels->values_per_row() != parts_.num_label_columns)
      fail(fmt::format("has {} labels per sample, but {} has {}", part_->labels->values_per_row(), first,
                       parts_.num_label_columns),
           part_->labels->where);
    if (float_labels() != float_labels_)
      fail(fmt::format("its labels are {}, but those of {} are {}", kind_of_labels(float_labels()), first,
                       kind_of_labels(float_labels_)),
           part_->labels->where);
  }
  static const char* kind_of_labels(bool floats) { return floats ? "floating-point numbers" : "integers"; }

  /// Notes which rows of the open file are wanted, and checks that they are stored.
  void add(const std::string& path, const std::optional<RowRange>& rows) {
    const std::int64_t own = part_->features.rows();
    const auto within = [&](std::int64_t row) { return std::clamp<std::int64_t>(row - total_rows_, 0, own); };
    const RowRange range = rows ? RowRange{within(rows->first), within(rows->last)} : RowRange{0, own};
    if (__builtin_add_overflow(total_rows_, own, &total_rows_))
      throw Error(ErrorKind::data, "the files have more rows than 63 bits count", path, "Check the files.");
    ranges_.push_back(range);
    if (range.first == range.last) return;
    if (parts_.size == 0) parts_.first_record = range.first;
    if (paths_.size() > 1) begin_file(parts_, path, range.first);
    parts_.size += range.last - range.first;
    if (part_->labels) check_stored(*part_->labels, range, allow_fill_);
    check_stored(part_->features, range, allow_fill_);
  }

  std::int64_t row_bytes() const {
    return parts_.feature_shape.num_elements() *
           static_cast<std::int64_t>(size_in_bytes(parts_.feature_dtype));
  }

  void allocate() {
    const double label_bytes = float_labels_ ? 4 : 12;  // integers are int64 before they are int32
    check_memory(
        dataset_name(), parts_.size,
        static_cast<double>(row_bytes()) + label_bytes * static_cast<double>(parts_.num_label_columns));
    parts_.features = Buffer(cpu_device(), static_cast<std::size_t>(parts_.size * row_bytes()));
    const auto labels = static_cast<std::size_t>(parts_.size * parts_.num_label_columns);
    if (float_labels_)
      parts_.label_rows.reserve(labels);
    else
      parts_.label_indices.reserve(labels);
    next_ = static_cast<char*>(parts_.features.data());
  }

  void read_features(const Hdf5Dataset& data, const RowRange& rows) {
    if (row_bytes() == 0) return;  // Dataset rejects samples without values
    const std::int64_t bytes = row_bytes();
    Hdf5Handle half;
    if (parts_.feature_dtype == DType::f16 || parts_.feature_dtype == DType::bf16)
      half = hdf5_half_type(parts_.feature_dtype, data.context());
    const hid_t memory_type = half.get() >= 0 ? half.get() : hdf5_memory_type(parts_.feature_dtype);
    std::vector<char> scratch;
    for_each_slab(data, rows, bytes, [&](std::int64_t first, std::int64_t count) {
      if (channels_first_) {
        scratch.resize(static_cast<std::size_t>(count * bytes));
        read_slab(data, first, count, memory_type, scratch.data());
        const auto channels = static_cast<std::int64_t>(data.extents[1]);
        channels_to_last(size_in_bytes(parts_.feature_dtype), scratch.data(), next_, count, channels,
                         data.values_per_row() / channels);
      } else {
        read_slab(data, first, count, memory_type, next_);
      }
      next_ += count * bytes;
    });
  }

  void read_labels(const Hdf5Dataset& data, const RowRange& rows) {
    const auto values = static_cast<std::size_t>((rows.last - rows.first) * parts_.num_label_columns);
    if (values == 0) return;
    if (float_labels_) {
      parts_.label_rows.resize(parts_.label_rows.size() + values);
      read_slab(data, rows.first, rows.last - rows.first, H5T_NATIVE_FLOAT,
                parts_.label_rows.data() + parts_.label_rows.size() - values);
      return;
    }
    std::vector<std::int64_t> wide(values);
    read_slab(data, rows.first, rows.last - rows.first, H5T_NATIVE_INT64, wide.data());
    const auto bad = std::find_if(wide.begin(), wide.end(), [](std::int64_t label) {
      return label < std::numeric_limits<std::int32_t>::min() ||
             label > std::numeric_limits<std::int32_t>::max();
    });
    if (bad != wide.end())
      throw Error(ErrorKind::data, fmt::format("label {} does not fit into 32 bits", *bad),
                  fmt::format("{}, record {}", data.where,
                              rows.first + (bad - wide.begin()) / parts_.num_label_columns),
                  "Labels are class numbers from 0 on.");
    parts_.label_indices.insert(parts_.label_indices.end(), wide.begin(), wide.end());
  }

  std::vector<std::string> paths_;
  std::string features_name_;
  const std::string* labels_name_;  ///< null: none are read
  bool labels_may_miss_, channels_first_, allow_fill_, float_labels_ = false;
  const Hdf5Lock lock_;
  std::optional<Hdf5Part> part_;  ///< the open file
  std::vector<RowRange> ranges_;  ///< of each file
  std::int64_t total_rows_ = 0;
  DatasetParts parts_;
  char* next_ = nullptr;  ///< where the next features go
};

std::unique_ptr<Dataset> make(const Params& params, const std::string& base_directory) {
  return std::make_unique<Dataset>(
      Hdf5Files(params, data_files(params, "path", base_directory), Hdf5Files::Labels::needed)
          .read(rows_option(params), nullptr));
}

std::unique_ptr<Dataset> make_input(const Params& params, const InputRequest& request) {
  using Labels = Hdf5Files::Labels;
  return std::make_unique<Dataset>(
      Hdf5Files(params, request.paths, request.labels ? Labels::if_there : Labels::none)
          .read(std::nullopt, &request.feature_shape));
}

void trial(const Params& params, const std::string& base_directory, const std::vector<std::string>* inputs,
           FunctionRef<void(const std::string&)> opening) {
  if (inputs != nullptr)
    Hdf5Files(params, *inputs, Hdf5Files::Labels::if_there).try_all(std::nullopt, opening);
  else
    Hdf5Files(params, data_files(params, "path", base_directory), Hdf5Files::Labels::needed)
        .try_all(rows_option(params), opening);
}

}  // namespace

ReaderEntry hdf5_reader() { return {"hdf5", "datasets of HDF5 files", kOptions, make, make_input, trial}; }

}  // namespace lockstep
