// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads arrays of NumPy's files .npy and .npz: opens and checks all files. npy_store.cpp reads the values.
#include <algorithm>
#include <span>

#include "data/data_files.h"
#include "data/reader_dataset.h"
#include "data/reader_options.h"
#include "data/reader_table.h"
#include "data/readers/npy_store.h"
#include "data/readers/text_classes.h"
#include "data/readers/zip_directory.h"

namespace lockstep {

namespace {

struct Options {
  std::optional<std::vector<std::string>> path, labels;
  std::vector<std::string> features;
  std::optional<std::vector<std::string>> classes;
  bool channels_first = false;
};
constexpr std::array kOptions = with_store_options(std::array{
    option<&Options::path>(
        "path", "null", {},
        "npz files, whose arrays features and labels name: a file, a list, a pattern (part*.npz) or a "
        "folder; relative to the config file's folder; null: features and labels are npy files",
        Change::place),
    option<&Options::features>(
        "features", kRequired, {},
        "npy files: a file, a list, a pattern or a folder, read as one; with path: the name of an array",
        Change::place),
    option<&Options::labels>(
        "labels", "null", {},
        "the same for labels: integers are class indices, floats targets, texts the names of classes; null: "
        "none",
        Change::place),
    option_as<class_list, &Options::classes>(ParamType::strings, "classes", "null", {},
                                             "names of the classes, in the order of their indices, if labels "
                                             "are texts; null or auto: all texts of "
                                             "the training set, sorted by their bytes"),
    layout_option<&Options::channels_first>()});

/// An array that was found in a file.
struct Found {
  std::shared_ptr<ByteSource> source;
  NpyHeader header;
};

/// Reads the header, and checks that the file is as long as it says.
Found found_in(std::shared_ptr<ByteSource> source) {
  NpyHeader header = read_npy_header(*source);
  const std::int64_t row_bytes = header.row_bytes();
  const std::int64_t room = source->max_bytes() - header.data_offset;
  const std::int64_t whole_rows = row_bytes == 0 ? header.rows() : room / row_bytes;
  const std::string& where = source->where();
  if (header.rows() > whole_rows)
    throw Error(ErrorKind::data,
                fmt::format("the file ends early, its header announces {} rows: truncated?", header.rows()),
                fmt::format("{}, record {}", where, whole_rows), "Copy or make the file again.");
  if (source->has_random_access() && header.rows() * row_bytes != room)
    throw Error(ErrorKind::data,
                fmt::format("continues after the {} rows that its header announces", header.rows()), where,
                "The file may be damaged, or holds several arrays: save each in a file of its own.");
  return {std::move(source), std::move(header)};
}

std::vector<Found> npy_files(const std::vector<std::string>& paths) {
  std::vector<Found> arrays;
  for (const std::string& path : paths) arrays.push_back(found_in(file_bytes(path)));
  return arrays;
}

const std::string& only_name(const std::vector<std::string>& names, const Params& params,
                             std::string_view option) {
  if (names.size() != 1)
    throw params.error(option, "must be the name of one array",
                       "With path, it is an array of the npz files.");
  return names.front();
}

/// numpy.savez adds the ending.
std::string member_of(const ZipDirectory& zip, const std::string& name) {
  return zip.has(name) ? name : name + ".npy";
}

/// The arrays of all files, and what they have in common.
class NpyFiles {
 public:
  /// `classes`: of labels that are texts.
  NpyFiles(const Params& params, std::vector<std::string> classes)
      : params_(params),
        o_(params.as<Options>()),
        channels_first_(o_.channels_first),
        classes_(std::move(classes)) {
    parts_.record_word = "record";
    parts_.transform = transform_options(params);
  }

  bool are_npz() const { return o_.path.has_value(); }

  void open_npz(const std::vector<std::string>& paths, bool labels, bool may_miss) {
    const std::string& features_name =
        only_name(o_.features, params_, option_name<&Options::features>(params_));
    const std::string* labels_name =
        labels && o_.labels ? &only_name(*o_.labels, params_, option_name<&Options::labels>(params_))
                            : nullptr;
    parts_.source = name_of_files(paths);
    for (const std::string& path : paths) {
      const ZipDirectory zip(file_bytes(path));
      if (&path == &paths.front() && labels_name != nullptr && may_miss &&
          !zip.has(member_of(zip, *labels_name)))
        labels_name = nullptr;
      features_.push_back(found_in(zip.open(member_of(zip, features_name))));
      if (labels_name == nullptr) continue;
      labels_.push_back(found_in(zip.open(member_of(zip, *labels_name))));
      check_rows({&labels_.back(), 1}, {&features_.back(), 1});
    }
  }

  void open_npy(const std::vector<std::string>& features, const std::vector<std::string>& labels) {
    parts_.source = name_of_files(features);
    features_ = npy_files(features);
    labels_ = npy_files(labels);
    if (!labels.empty()) check_rows(labels_, features_);
  }

  DatasetParts parts(const std::optional<RowRange>& rows, const Shape* wanted) && {
    const RowRange chosen = checked_rows(rows, total_rows(features_), parts_.source);
    const NpyHeader& first = features_.front().header;
    parts_.feature_dtype = first.type.type;
    parts_.feature_shape = shape_of(features_.front());
    if (wanted != nullptr)
      check_feature_shape(parts_.feature_shape, *wanted, features_.front().source->where());
    const std::int64_t channels = channels_first_ ? first.extents[1] : 0;
    check_features();
    const std::vector<RowRange> ranges = rows_of_files(counts_of(features_), chosen);
    std::vector<std::string> names;
    for (const Found& array : features_) names.push_back(array.source->where());
    add_files(parts_, names, ranges);
    std::optional<NpyArrays> labels;
    DType label_dtype = DType::i32;
    std::optional<TextClasses> classes;
    if (!labels_.empty()) {
      check_labels();
      const NpyHeader& header = labels_.front().header;
      label_dtype = header.type.type;
      if (header.are_texts()) {
        classes.emplace(classes_);
        parts_.class_names = classes_;
      }
      parts_.label_kind = header.are_texts() ? LabelKind::indices : label_kind_of(label_dtype);
      parts_.num_label_columns = header.values_per_row();
      labels = arrays_of(labels_, rows_of_files(counts_of(labels_), chosen));
    }
    parts_.store = std::make_shared<NpyStore>(
        arrays_of(features_, ranges), parts_.feature_dtype, parts_.feature_shape.num_elements(), channels,
        std::move(labels), label_dtype, parts_.num_label_columns, std::move(classes));
    return std::move(parts_);
  }

 private:
  static std::vector<std::int64_t> counts_of(std::span<const Found> arrays) {
    std::vector<std::int64_t> counts;
    for (const Found& array : arrays) counts.push_back(array.header.rows());
    return counts;
  }
  static std::int64_t total_rows(std::span<const Found> arrays) {
    return total_records(counts_of(arrays), arrays.front().source->where());
  }

  /// "x.npy has the shape (5, 100)"; of several files the shape of all together.
  static std::string shape_text(std::span<const Found> arrays) {
    NpyHeader all = arrays.front().header;
    all.extents[0] = total_rows(arrays);
    const std::string files = arrays.size() > 1 ? fmt::format(" and {} more", arrays.size() - 1) : "";
    return fmt::format("{}{} has the shape {}", arrays.front().source->where(), files, all.shape_text());
  }

  /// Samples are the first axis of both. Another one that fits is a hint.
  static void check_rows(std::span<const Found> labels, std::span<const Found> features) {
    const std::int64_t rows = total_rows(features), label_rows = total_rows(labels);
    if (rows == label_rows) return;
    const std::vector<std::int64_t>&x = features.front().header.extents, &y = labels.front().header.extents;
    const auto axis_of = [](const std::vector<std::int64_t>& extents, std::int64_t wanted) {
      return std::find(extents.begin() + 1, extents.end(), wanted) - extents.begin();
    };
    std::string advice = "Name the labels of the same samples: the first axis counts them.";
    const auto suggest = [&](const Found& array, std::int64_t axis) {
      advice = fmt::format(
          "Does axis {} of {} count the samples, is it transposed? Save it with that axis first: "
          "numpy.save(file, {}).",
          axis, array.source->where(),
          array.header.extents.size() == 2 ? "array.T" : fmt::format("numpy.moveaxis(array, {}, 0)", axis));
    };
    if (const std::int64_t axis = axis_of(x, label_rows); features.size() == 1 && axis < std::ssize(x))
      suggest(features.front(), axis);
    else if (const std::int64_t other = axis_of(y, rows); labels.size() == 1 && other < std::ssize(y))
      suggest(labels.front(), other);
    throw Error(ErrorKind::data,
                fmt::format("holds {} labels for {} samples: {}, {}", label_rows, rows, shape_text(features),
                            shape_text(labels)),
                labels.front().source->where(), advice);
  }

  Shape shape_of(const Found& array) const {
    const std::vector<std::int64_t>& extents = array.header.extents;
    return sample_shape({extents.begin() + 1, extents.end()}, channels_first_, array.source->where());
  }

  void check_features() const {
    const Found& first = features_.front();
    for (const Found& array : features_) {
      if (array.header.are_texts())
        throw Error(
            ErrorKind::data, fmt::format("holds texts (type '{}')", array.header.descr),
            array.source->where(),
            "Features are numbers: array.astype('f4') makes numbers of texts such as '1.5'. A table with "
            "texts is written as CSV, where they are categories.");
      check_same_samples(array.source->where(), shape_of(array), array.header.type.type,
                         first.source->where(), shape_of(first), first.header.type.type);
    }
  }
  void check_labels() const {
    const Found& first = labels_.front();
    const bool texts = first.header.are_texts();
    if (texts && first.header.values_per_row() != 1)
      throw Error(ErrorKind::data,
                  fmt::format("has several texts per sample (shape {})", first.header.shape_text()),
                  first.source->where(), "Labels that are texts are one class per sample.");
    if (!texts && o_.classes)
      throw params_.error(option_name<&Options::classes>(params_),
                          fmt::format("is given, but the labels of {} are numbers (type '{}')",
                                      first.source->where(), first.header.descr),
                          "Leave it out, or name the classes of numbers by class_names.");
    for (const Found& array : labels_)
      if (array.header.values_per_row() != first.header.values_per_row() ||
          array.header.are_texts() != texts || array.header.type.type != first.header.type.type)
        throw Error(ErrorKind::data,
                    fmt::format("its labels are of another form than those of {}", first.source->where()),
                    array.source->where(),
                    "All files of a data set need samples and labels of the same form.");
  }

  static NpyArrays arrays_of(const std::vector<Found>& arrays, const std::vector<RowRange>& ranges) {
    NpyArrays rows;
    for (std::size_t i = 0; i < arrays.size(); ++i) rows.add(arrays[i].source, arrays[i].header, ranges[i]);
    return rows;
  }

  const Params& params_;
  const Options o_;
  const bool channels_first_;
  const std::vector<std::string> classes_;
  std::vector<Found> features_, labels_;
  DatasetParts parts_;
};

std::vector<std::string> label_paths(const Params& params, const std::string& base_directory) {
  if (!params.as<Options>().labels) return {};
  return data_files(params, option_name<&Options::labels>(params), base_directory);
}

/// The classes of labels that are texts: the option classes, or the texts of the labels of the option rows.
/// Empty if the labels are numbers.
std::vector<std::string> classes_of(const Params& params, const std::string& base_directory) {
  const auto o = params.as<Options>();
  if (o.classes) return *o.classes;
  if (!o.labels) return {};
  std::vector<Found> found;
  if (o.path)
    for (const std::string& path : files_of_path(params, base_directory)) {
      const ZipDirectory zip(file_bytes(path));
      const std::string& name = only_name(*o.labels, params, option_name<&Options::labels>(params));
      found.push_back(found_in(zip.open(member_of(zip, name))));
    }
  else
    found = npy_files(label_paths(params, base_directory));
  if (!std::ranges::all_of(found, [](const Found& array) { return array.header.are_texts(); })) return {};
  if (found.front().header.values_per_row() != 1) return {};  // an error when all is checked
  NpyArrays arrays;
  for (const Found& array : found) arrays.add(array.source, array.header, {0, array.header.rows()});
  const RowRange rows = checked_rows(rows_option(params), arrays.rows(), found.front().source->where());
  FoundClasses classes;
  constexpr std::int64_t kTogether = 65536;
  for (std::int64_t row = rows.first; row < rows.last; row += kTogether)
    arrays.read_texts(row, std::min(kTogether, rows.last - row),
                      [&](std::int64_t, std::string_view text) { classes.add(text); });
  return classes.names();
}

DatasetParts make_with(const Params& params, const std::string& base_directory,
                       std::vector<std::string> classes) {
  NpyFiles files(params, std::move(classes));
  if (files.are_npz())
    files.open_npz(files_of_path(params, base_directory), true, false);
  else
    files.open_npy(data_files(params, option_name<&Options::features>(params), base_directory),
                   label_paths(params, base_directory));
  return std::move(files).parts(rows_option(params), nullptr);
}

DatasetParts make(const Params& params, const std::string& base_directory) {
  return make_with(params, base_directory, classes_of(params, base_directory));
}

DatasetParts make_evaluation(const Params& params, const Params& train, const std::string& base_directory) {
  return make_with(params, base_directory,
                   classes_of(params.as<Options>().classes ? params : train, base_directory));
}

DatasetParts make_as_trained(const Params& params, const ReaderDataset& trained,
                             const std::string& base_directory) {
  return make_with(params, base_directory, params.as<Options>().classes.value_or(trained.class_names()));
}

std::vector<std::string> files(const Params& params, const std::string& base_directory) {
  std::vector<std::string> paths;
  for (const char* option : {"path", "features", "labels"}) {
    if (!params.has(option) || (params.has("path") && option != std::string_view("path"))) continue;
    const std::vector<std::string> found = data_files(params, option, base_directory);
    paths.insert(paths.end(), found.begin(), found.end());
  }
  return paths;
}

/// The labels of npy files are other files, which a request does not name.
DatasetParts make_input(const Params& params, const InputRequest& request) {
  NpyFiles files(params, params.as<Options>().classes.value_or(request.class_names));
  if (files.are_npz())
    files.open_npz(request.paths, request.labels, true);
  else
    files.open_npy(request.paths, {});
  return std::move(files).parts(std::nullopt, &request.feature_shape);
}

}  // namespace

extern const ReaderEntry kNpyReader = {.name = "npy",
                                       .help = "arrays of NumPy's .npy and .npz files",
                                       .table = kOptions,
                                       .make = make,
                                       .make_input = make_input,
                                       .files = files,
                                       .make_evaluation = make_evaluation,
                                       .make_as_trained = make_as_trained};

}  // namespace lockstep
