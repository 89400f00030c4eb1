// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads datasets of HDF5 files, whose first axis counts samples: opens and checks all files. hdf5_store.cpp
// reads the values. Files are opened read-only without file locks.
#include <algorithm>
#include <optional>
#include <vector>

#include "data/data_files.h"
#include "data/reader_dataset.h"
#include "data/reader_options.h"
#include "data/reader_table.h"
#include "data/readers/hdf5_axes.h"
#include "data/readers/hdf5_channels.h"
#include "data/readers/hdf5_dataset.h"
#include "data/readers/hdf5_groups.h"
#include "data/readers/hdf5_options.h"
#include "data/readers/hdf5_sequences.h"
#include "data/readers/hdf5_stored.h"
#include "data/readers/hdf5_texts.h"
#include "data/readers/sequence_rows.h"
#include "io/hdf5_attribute.h"
#include "io/hdf5_storage.h"

namespace lockstep {

namespace {

/// The shape of a sample in memory: channels last, those that are chosen, at least one axis.
Shape sample_shape(const Hdf5Dataset& data, bool channels_first, const std::vector<std::int64_t>& channels) {
  std::vector<std::int64_t> extents(data.extents.begin() + 1, data.extents.end());
  if (!data.columns.empty()) extents = {data.values_per_row()};
  if (channels_first && extents.size() < 2)
    throw Error(ErrorKind::data, "layout channels_first needs samples of at least two axes", data.where,
                "Leave out the option layout.");
  if (channels_first) std::rotate(extents.begin(), extents.begin() + 1, extents.end());
  if (extents.empty()) extents.push_back(1);
  if (!channels.empty()) {
    check_channels(data, channels_first, channels);
    extents.back() = static_cast<std::int64_t>(channels.size());
  }
  return Shape(std::span<const std::int64_t>(extents));
}

/// How much a trial reads of the values: enough to meet the file's filters; in memory.
constexpr std::int64_t kTrialBytes = std::int64_t{64} << 20;

/// Reads datasets of one or several files as if the files were one.
class Hdf5Files {
 public:
  /// if_there: only if the first file has them.
  enum class Labels { none, if_there, needed };

  /// `classes`: of labels that are texts.
  Hdf5Files(const Params& params, std::vector<std::string> paths, Labels labels,
            std::vector<std::string> classes = {})
      : paths_(std::move(paths)),
        o_(params.as<Hdf5Options>()),
        labels_name_(labels == Labels::none || !o_.labels ? nullptr : &*o_.labels),
        labels_may_miss_(labels == Labels::if_there),
        classes_(std::move(classes)),
        netcdf_(params.as<NetcdfOptions>()),
        params_(params),
        sequence_(SequenceRows::from(params)) {
    if (sequence_ && params.given("layout"))
      throw params.error("layout", "is given with pad_to, where samples are sequences", "Leave it out.");
    if (!o_.columns.empty() && !o_.channels.empty())
      throw params.error("channels", "is given beside columns, which choose from a table", "Leave it out.");
    if (sequence_ && o_.window)
      throw params.error("window", "is given with pad_to, where samples are sequences", "Leave it out.");
    if (sequence_ && !o_.channels.empty())
      throw params.error("channels", "is given with pad_to, where samples are sequences", "Leave it out.");
    parts_.source = name_of_files(paths_);
    parts_.record_word = "record";
    parts_.transform = transform_options(params);
  }

  /// Opens and checks all files as open_all() does, and reads only a few values of each. An action in a child
  /// process: errors and values do not matter, only that it ends.
  void try_all(const std::optional<RowRange>& rows, FunctionRef<void(const std::string&)> opening) {
    std::int64_t bytes_left = kTrialBytes;
    for (const std::string& path : paths_) {
      opening(path);
      open(path, rows);
      for (const Hdf5Dataset* const data : {&part_->features, part_->labels ? &*part_->labels : nullptr})
        if (data != nullptr) bytes_left -= try_values(*data, ranges_.back(), bytes_left);
    }
  }

  /// Opens and checks all files. The values are left to the store.
  DatasetParts open_all(const std::optional<RowRange>& rows, const Shape* feature_shape) && {
    for (const std::string& path : paths_) open(path, rows);
    checked_rows(rows, total_rows_, dataset_name());
    std::vector<Hdf5Store::File> files;
    for (std::size_t i = 0; i < paths_.size(); ++i)
      if (ranges_[i].first < ranges_[i].last) files.push_back({paths_[i], ranges_[i]});
    say_axes_once(part_->features);
    if (part_->labels) say_axes_once(*part_->labels);
    if (parts_.num_label_columns > 0)
      parts_.label_kind = float_labels_ ? LabelKind::rows : LabelKind::indices;
    Hdf5Form form{.features_name = o_.features,
                  .labels_name = std::nullopt,
                  .channels_first = o_.channels_first,
                  .samples_last = o_.samples_last,
                  .netcdf = netcdf_,
                  .feature_dtype = parts_.feature_dtype,
                  .feature_shape = parts_.feature_shape,
                  .label_columns = parts_.num_label_columns,
                  .sequence = sequence_,
                  .channels = o_.channels,
                  .classes = classes_,
                  .columns = o_.columns};
    if (labels_name_ != nullptr) form.labels_name = *labels_name_;
    parts_.store = std::make_shared<Hdf5Store>(std::move(form), std::move(files), rows_per_chunk_);
    if (o_.window)
      cut_windows(parts_, *o_.window, feature_shape == nullptr || part_->labels.has_value(), times_);
    if (feature_shape != nullptr) check_feature_shape(parts_.feature_shape, *feature_shape, first_where_);
    return std::move(parts_);
  }

 private:
  /// Opens and checks a file, and adds its rows.
  void open(const std::string& path, const std::optional<RowRange>& rows) {
    if (&path == &paths_.front() && labels_may_miss_ && labels_name_ != nullptr &&
        !has_hdf5_link(hdf5_open_file(path, hdf5_data_context(path)).get(), *labels_name_))
      labels_name_ = nullptr;
    part_.emplace(path, o_.features, labels_name_, netcdf_, o_.columns, o_.samples_last);
    if (&path == &paths_.front())
      begin();
    else
      check_alike();
    add(path, rows);
  }

  /// Reads slabs of up to `bytes` in memory, but at least the first and the last one; none if `bytes` is 0.
  static std::int64_t try_values(const Hdf5Dataset& data, const RowRange& rows, std::int64_t bytes) {
    if (bytes > 0 && data.file_class == H5T_VLEN) return try_sequences(data, rows, bytes);
    if (holds_texts(data)) return try_texts(data, rows);
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

  /// The same of sequences, from the first one on.
  static std::int64_t try_sequences(const Hdf5Dataset& data, const RowRange& rows, std::int64_t bytes) {
    constexpr std::int64_t kTogether = 256;
    std::int64_t done = 0;
    for (std::int64_t row = rows.first; row < rows.last && done <= bytes; row += kTogether)
      read_sequences(data, row, std::min(kTogether, rows.last - row),
                     [&](std::int64_t, std::span<const float> values) {
                       done += static_cast<std::int64_t>(values.size_bytes() + sizeof(hvl_t));
                     });
    return done;
  }

  /// All of them: the classes are found by reading all, too.
  static std::int64_t try_texts(const Hdf5Dataset& data, const RowRange& rows) {
    std::int64_t done = 0;
    read_texts(data, rows, [&](std::int64_t, std::string_view text) {
      done += static_cast<std::int64_t>(text.size() + sizeof(char*));
    });
    return done;
  }

  DType feature_type() const { return part_->sequences ? DType::f32 : part_->feature_numbers.meaning.type(); }
  std::string dataset_name() const { return fmt::format("{}, dataset {}", parts_.source, o_.features); }
  bool float_labels() const { return part_->float_labels(); }
  std::int64_t label_columns() const {
    return has_one_text(*part_->labels) ? 1 : part_->labels->values_per_row();
  }

  /// The first file says what a sample is.
  void begin() {
    first_where_ = part_->features.where;
    check_sequences();
    if (sequence_)
      sequence_->set_step(parts_);
    else
      parts_.feature_shape = sample_shape(part_->features, o_.channels_first, o_.channels);
    parts_.feature_dtype = feature_type();
    rows_per_chunk_ = static_cast<std::int64_t>(part_->features.rows_per_chunk);
    if (!part_->labels) return;
    parts_.num_label_columns = label_columns();
    float_labels_ = float_labels();
    text_labels_ = part_->text_labels();
    if (o_.classes && !text_labels_)
      throw params_.error("classes",
                          fmt::format("is given, but the labels of {} are {}", part_->labels->where,
                                      kind_of_labels(false, float_labels_)),
                          "Leave it out, or name the classes of numbers by class_names.");
    parts_.class_names = text_labels_ ? classes_ : class_names();
  }

  void check_sequences() const {
    if (part_->sequences && !sequence_)
      throw Error(ErrorKind::data, "its records are sequences of different lengths", part_->features.where,
                  "Give pad_to, the largest number of steps.");
    if (!part_->sequences && sequence_)
      throw Error(
          ErrorKind::data,
          "its records all have one length, but pad_to is for a variable-length type (h5py.vlen_dtype)",
          part_->features.where, "Leave out pad_to.");
  }

  /// The attribute that `lockstep convert` writes; empty without one.
  std::vector<std::string> class_names() const {
    return text_list_attribute(part_->labels->id.get(), "class_names", part_->labels->context());
  }

  void check_alike() const {
    const std::string& first = paths_.front();
    const auto fail = [](std::string what, const std::string& where) {
      throw Error(ErrorKind::data, std::move(what), where,
                  "All files of a data set need samples and labels of the same form.");
    };
    const Hdf5Dataset& features = part_->features;
    check_sequences();
    if (const Shape shape =
            sequence_ ? parts_.feature_shape : sample_shape(features, o_.channels_first, o_.channels);
        !(shape == parts_.feature_shape))
      fail(fmt::format("its samples have the shape {}, but those of {} have {}", shape.to_string(), first,
                       parts_.feature_shape.to_string()),
           features.where);
    if (const DType type = feature_type(); type != parts_.feature_dtype)
      fail(fmt::format("its features are {}, but those of {} are {}", name_of(type), first,
                       name_of(parts_.feature_dtype)),
           features.where);
    if (!part_->labels) return;
    if (label_columns() != parts_.num_label_columns)
      fail(fmt::format("has {} labels per sample, but {} has {}", label_columns(), first,
                       parts_.num_label_columns),
           part_->labels->where);
    if (float_labels() != float_labels_ || part_->text_labels() != text_labels_)
      fail(fmt::format("its labels are {}, but those of {} are {}",
                       kind_of_labels(part_->text_labels(), float_labels()), first,
                       kind_of_labels(text_labels_, float_labels_)),
           part_->labels->where);
    if (!text_labels_ && class_names() != parts_.class_names)
      fail(fmt::format("its class_names are not those of {}", first), part_->labels->where);
  }
  static const char* kind_of_labels(bool texts, bool floats) {
    return texts ? "texts" : floats ? "floating-point numbers" : "integers";
  }

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
    if (part_->labels) check_stored(*part_->labels, range, o_.allow_fill);
    check_stored(part_->features, range, o_.allow_fill);
    if (o_.window && o_.window->time) add_times(path, range);
  }

  void add_times(const std::string& path, const RowRange& range) {
    const Hdf5Dataset data = open_hdf5_dataset(part_->file.get(), path, *o_.window->time);
    if (data.rows() != part_->features.rows() || data.values_per_row() != 1 ||
        (data.file_class != H5T_INTEGER && data.file_class != H5T_FLOAT))
      throw Error(ErrorKind::data, fmt::format("is no time of each of {} steps", part_->features.rows()),
                  data.where, "window.time names a dataset with one number per step.");
    const std::size_t before = times_.size(), count = static_cast<std::size_t>(range.last - range.first);
    times_.resize(before + count);
    read_slab(data, range.first, range.last - range.first, H5T_NATIVE_DOUBLE, times_.data() + before);
  }

  std::vector<std::string> paths_;
  const Hdf5Options o_;
  const std::string* labels_name_;  ///< null: none are read
  bool labels_may_miss_, float_labels_ = false, text_labels_ = false;
  std::vector<std::string> classes_;
  NetcdfOptions netcdf_;
  const Params& params_;
  std::optional<SequenceRows> sequence_;
  const Hdf5Lock lock_;
  std::optional<Hdf5Part> part_;  ///< the open file
  std::string first_where_;       ///< the features of the first file
  std::vector<RowRange> ranges_;  ///< of each file
  std::vector<double> times_;     ///< of the steps of a window
  std::int64_t total_rows_ = 0;
  std::int64_t rows_per_chunk_ = 1;  ///< of the first file's features
  DatasetParts parts_;
};

/// Samples that are groups, or windows of them; `request`: those to predict.
DatasetParts parts_of_groups(const Params& params, const std::vector<std::string>& paths,
                             const std::optional<RowRange>& rows, const InputRequest* request) {
  DatasetParts parts =
      open_hdf5_groups(params, paths, rows, request == nullptr || request->labels, request != nullptr);
  if (const auto window = params.as<Hdf5Options>().window)
    cut_windows(parts, *window, request == nullptr || parts.num_label_columns > 0, {});
  if (request != nullptr) check_feature_shape(parts.feature_shape, request->feature_shape, parts.source);
  return parts;
}

DatasetParts make_with(const Params& params, const std::string& base_directory,
                       std::vector<std::string> classes) {
  if (params.as<Hdf5Options>().groups)
    return parts_of_groups(params, files_of_path(params, base_directory), rows_option(params), nullptr);
  return Hdf5Files(params, files_of_path(params, base_directory), Hdf5Files::Labels::needed,
                   std::move(classes))
      .open_all(rows_option(params), nullptr);
}

DatasetParts make(const Params& params, const std::string& base_directory) {
  return make_with(params, base_directory, hdf5_classes(params, base_directory));
}

DatasetParts make_evaluation(const Params& params, const Params& train, const std::string& base_directory) {
  return make_with(params, base_directory,
                   hdf5_classes(params.as<Hdf5Options>().classes ? params : train, base_directory));
}

DatasetParts make_as_trained(const Params& params, const ReaderDataset& trained,
                             const std::string& base_directory) {
  return make_with(params, base_directory, params.as<Hdf5Options>().classes.value_or(trained.class_names()));
}

DatasetParts make_input(const Params& params, const InputRequest& request) {
  using Labels = Hdf5Files::Labels;
  if (params.as<Hdf5Options>().groups) return parts_of_groups(params, request.paths, std::nullopt, &request);
  return Hdf5Files(params, request.paths, request.labels ? Labels::if_there : Labels::none,
                   params.as<Hdf5Options>().classes.value_or(request.class_names))
      .open_all(std::nullopt, &request.feature_shape);
}

void trial(const Params& params, const std::string& base_directory, const std::vector<std::string>* inputs,
           FunctionRef<void(const std::string&)> opening) {
  if (params.as<Hdf5Options>().groups) {
    for (const std::string& path : inputs != nullptr ? *inputs : files_of_path(params, base_directory)) {
      opening(path);
      try_hdf5_groups(params, path);
    }
    return;
  }
  if (inputs != nullptr)
    Hdf5Files(params, *inputs, Hdf5Files::Labels::if_there).try_all(std::nullopt, opening);
  else
    Hdf5Files(params, files_of_path(params, base_directory), Hdf5Files::Labels::needed)
        .try_all(rows_option(params), opening);
}

/// HDF5 looks for other files next to the one that names them, where a copy has none.
void check_alone(const Params& params, const std::string& path) {
  if (params.as<Hdf5Options>().groups) return;
  const Hdf5Lock lock;
  const Hdf5Part part = hdf5_part(path, params);
  for (const Hdf5Dataset* const data : {&part.features, part.labels ? &*part.labels : nullptr}) {
    if (data == nullptr) continue;
    const Hdf5Context context = data->context();
    const Hdf5Handle creation(
        hdf5_checked(H5Dget_create_plist(data->id.get()), context, "read how values are stored"), H5Pclose);
    const char* const why =
        file_name_of(data->id.get(), context) != file_name_of(part.file.get(), context)
            ? "lies in another file (external link)"
        : H5Pget_layout(creation.get()) == H5D_VIRTUAL ? "takes values from other files (virtual)"
        : H5Pget_external_count(creation.get()) > 0    ? "has its values in other files (external storage)"
                                                       : nullptr;
    if (why != nullptr)
      throw Error(ErrorKind::config, fmt::format("{}, which data.stage_to does not copy", why), data->where,
                  "Leave out data.stage_to, or store the values in this file (h5repack).");
  }
}

}  // namespace

extern const ReaderEntry kHdf5Reader = {.name = "hdf5",
                                        .help = "datasets of HDF5 files",
                                        .table = hdf5_table(),
                                        .make = make,
                                        .make_input = make_input,
                                        .trial = trial,
                                        .files = files_of_path,
                                        .check_alone = check_alone,
                                        .make_evaluation = make_evaluation,
                                        .make_as_trained = make_as_trained};

}  // namespace lockstep
