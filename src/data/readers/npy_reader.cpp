// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads arrays of NumPy's files .npy and .npz: opens and checks all files. npy_store.cpp reads the values.
#include <algorithm>

#include "data/data_files.h"
#include "data/reader_options.h"
#include "data/reader_table.h"
#include "data/readers/npy_store.h"
#include "data/readers/zip_directory.h"

namespace lockstep {

namespace {

struct Options {
  std::optional<std::vector<std::string>> path, labels;
  std::vector<std::string> features;
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
    option<&Options::labels>("labels", "null", {},
                             "the same for labels: integers are class indices, floats targets; null: none",
                             Change::place),
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
  explicit NpyFiles(const Params& params)
      : params_(params), o_(params.as<Options>()), channels_first_(o_.channels_first) {
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
      check_rows(labels_.back().source->where(), labels_.back().header.rows(), features_name,
                 features_.back().header.rows());
    }
  }

  void open_npy(const std::vector<std::string>& features, const std::vector<std::string>& labels) {
    parts_.source = name_of_files(features);
    features_ = npy_files(features);
    labels_ = npy_files(labels);
    if (!labels.empty())
      check_rows(name_of_files(labels), total_rows(labels_), parts_.source, total_rows(features_));
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
    if (!labels_.empty()) {
      check_labels();
      label_dtype = labels_.front().header.type.type;
      parts_.label_kind = label_kind_of(label_dtype);
      parts_.num_label_columns = labels_.front().header.values_per_row();
      labels = arrays_of(labels_, rows_of_files(counts_of(labels_), chosen));
    }
    parts_.store = std::make_shared<NpyStore>(arrays_of(features_, ranges), parts_.feature_dtype,
                                              parts_.feature_shape.num_elements(), channels,
                                              std::move(labels), label_dtype, parts_.num_label_columns);
    return std::move(parts_);
  }

 private:
  static std::vector<std::int64_t> counts_of(const std::vector<Found>& arrays) {
    std::vector<std::int64_t> counts;
    for (const Found& array : arrays) counts.push_back(array.header.rows());
    return counts;
  }
  static std::int64_t total_rows(const std::vector<Found>& arrays) {
    return total_records(counts_of(arrays), arrays.front().source->where());
  }

  static void check_rows(const std::string& labels, std::int64_t label_rows, const std::string& features,
                         std::int64_t rows) {
    if (label_rows != rows)
      throw Error(ErrorKind::data,
                  fmt::format("holds {} labels, but {} holds {} samples", label_rows, features, rows), labels,
                  "Name the labels of the same samples.");
  }

  Shape shape_of(const Found& array) const {
    const std::vector<std::int64_t>& extents = array.header.extents;
    return sample_shape({extents.begin() + 1, extents.end()}, channels_first_, array.source->where());
  }

  void check_features() const {
    const Found& first = features_.front();
    for (const Found& array : features_)
      check_same_samples(array.source->where(), shape_of(array), array.header.type.type,
                         first.source->where(), shape_of(first), first.header.type.type);
  }
  void check_labels() const {
    const Found& first = labels_.front();
    for (const Found& array : labels_)
      if (array.header.values_per_row() != first.header.values_per_row() ||
          array.header.type.type != first.header.type.type)
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
  std::vector<Found> features_, labels_;
  DatasetParts parts_;
};

DatasetParts make(const Params& params, const std::string& base_directory) {
  NpyFiles files(params);
  if (files.are_npz())
    files.open_npz(files_of_path(params, base_directory), true, false);
  else
    files.open_npy(data_files(params, option_name<&Options::features>(params), base_directory),
                   params.as<Options>().labels
                       ? data_files(params, option_name<&Options::labels>(params), base_directory)
                       : std::vector<std::string>{});
  return std::move(files).parts(rows_option(params), nullptr);
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
  NpyFiles files(params);
  if (files.are_npz())
    files.open_npz(request.paths, request.labels, true);
  else
    files.open_npy(request.paths, {});
  return std::move(files).parts(std::nullopt, &request.feature_shape);
}

}  // namespace

extern const ReaderEntry kNpyReader = {
    "npy", "arrays of NumPy's .npy and .npz files", kOptions, make, make_input, nullptr, false, files};

}  // namespace lockstep
