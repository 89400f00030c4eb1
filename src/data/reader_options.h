// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the readers: the options that all of them share, and how they are read.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "config/option.h"
#include "data/bad_records.h"
#include "data/reader_table.h"

namespace lockstep {

class OpenedSamples;

/// Two numbers, 0 <= first < last; nothing: null. For option_as(). Throws Error(config).
std::optional<RowRange> row_range(const Params& params, const ParamSpec& option);
/// Numbers of channels; none: null. For option_as(). Throws Error(config) for an empty list.
std::vector<float> channel_numbers(const Params& params, const ParamSpec& option);

/// For option_as().
NormalizeBy normalize_by(const Params& params, const ParamSpec& option);

/// What all readers have in addition to FeatureTransform and BadRecordOptions.
struct CommonOptions {
  std::optional<std::string> class_names;
};
struct RowsOption {
  std::optional<RowRange> rows;
};
constexpr ParamSpec rows_spec(std::string_view help) {
  return option_as<row_range, &RowsOption::rows>(ParamType::integers, "rows", "null",
                                                 between(0, 1e15).note("first, last"), help);
}

inline constexpr std::array kCommonReaderOptions{
    rows_spec("data rows to use, 0-based, last excluded; null: all"),
    option<&FeatureTransform::scale>("scale", "1.0", between(-1e30, 1e30),
                                     "factor of the features, applied first"),
    option<&FeatureTransform::offset>("offset", "0.0", between(-1e30, 1e30), "added after scale"),
    option_as<channel_numbers, &FeatureTransform::mean>(ParamType::reals, "mean", "null",
                                                        between(-1e30, 1e30).note("one per channel, or one"),
                                                        "subtracted after offset"),
    option_as<channel_numbers, &FeatureTransform::std>(ParamType::reals, "std", "null",
                                                       above(0).up_to(1e30).note("one per channel, or one"),
                                                       "divisor, applied last"),
    option_as<normalize_by, &FeatureTransform::normalize>(
        ParamType::string, "normalize", "none", one_of("channels|elements|all|none"),
        "mean and std are computed over the chosen samples of the training set when a run begins, of each "
        "channel, of each element of a sample (a channel in a grid cell), or of all values; the run keeps "
        "them"),
    option<&CommonOptions::class_names>(
        "class_names", "null", {},
        "a text file with the name of each class, a line per class, in the order of their indices; "
        "relative to the config file's folder; null: those of the files, if they have any",
        Change::place),
    option_as<is_second_choice, &BadRecordOptions::skip>(
        ParamType::string, "bad_records", "stop", one_of("stop|skip"),
        "records that cannot be decoded, or with values that are not finite: an error, or left out of "
        "the set and listed in the run directory"),
    option<&BadRecordOptions::limit>("max_bad_records", "0.01",
                                     between(0, 1e15).note("below 1 a share of the samples"),
                                     "with bad_records: skip, more than these are an error", Change::free)};

/// The option that files_of_path() reads (data_files.h).
constexpr ParamSpec path_spec(std::string_view help) {
  return {"path", ParamType::strings, kRequired, {}, help, Change::place};
}

/// Options of readers that give a store.
struct StoreOptions {
  std::optional<double> memory_gb;
  double timeout_seconds = 0;
  std::optional<int> reader_threads;
  std::optional<std::int64_t> block_samples;
};
inline constexpr std::array kStoreOptions{
    option<&StoreOptions::memory_gb>(
        "memory_gb", "null", above(0).up_to(1e9, "GB").or_null(),
        "a larger set is read while it is used, through so much memory of each rank; null: a quarter of "
        "the host's memory or of the job's limit; divided by the host's ranks if they cannot share it",
        Change::free),
    option<&StoreOptions::timeout_seconds>("timeout_seconds", "300", above(0).up_to(1e9, "seconds"),
                                           "a longer wait for data of such a set is an error", Change::free),
    option<&StoreOptions::reader_threads>(
        "reader_threads", "null", between(1, 256).or_null(),
        "threads of each rank that read a set, into memory or while it is used; null: two into memory; "
        "while it is used one, and more where batches have to wait and that helps, up to 8 or the "
        "cores of the rank",
        Change::free),
    option<&StoreOptions::block_samples>(
        "block_samples", "null", between(1, 1e9).or_null(),
        "samples that are read together; null: whole chunks of the file, of about 256 KiB or more "
        "together; the order of train.shuffle: blocks depends on it")};

/// Tables one after the other.
template <std::size_t... kCounts>
constexpr auto joined_options(const std::array<ParamSpec, kCounts>&... tables) {
  std::array<ParamSpec, (kCounts + ...)> all{};
  auto end = all.begin();
  ((end = std::copy(tables.begin(), tables.end(), end)), ...);
  return all;
}
/// The options of a reader followed by the common ones.
template <std::size_t kCount>
constexpr auto with_common_options(const std::array<ParamSpec, kCount>& own) {
  return joined_options(own, kCommonReaderOptions);
}
/// The options of a reader that gives a store, followed by the common ones.
template <std::size_t kCount>
constexpr auto with_store_options(const std::array<ParamSpec, kCount>& own) {
  return joined_options(own, kStoreOptions, kCommonReaderOptions);
}
template <auto... kPath>
constexpr ParamSpec layout_option() {
  return option_as<is_second_choice, kPath...>(
      ParamType::string, "layout", "channels_last", one_of("channels_last|channels_first"),
      "layout of a sample in the file; channels_first (C,H,W) is converted while reading");
}

/// Threads that look through the files of a set.
int reader_threads(const Params& params);

/// Reads the options of a reader that gives a store.
DatasetMemory memory_options(const Params& params, const DatasetUse& use);

/// `path` relative to `base_directory`, or unchanged if it is absolute.
std::string resolved_path(const std::string& path, const std::string& base_directory);
inline std::optional<RowRange> rows_option(const Params& params) { return params.as<RowsOption>().rows; }
/// Reads the options scale, offset, mean and std.
FeatureTransform transform_options(const Params& params);
/// Throws Error(data) unless samples of shape `found` in `source` match the shape `wanted` of a model.
void check_feature_shape(const Shape& found, const Shape& wanted, const std::string& source);
/// The file of a request to `reader`, which takes one. Throws Error(config) for several.
const std::string& only_file(const InputRequest& request, std::string_view reader);
/// A whole number in int32's range.
bool is_class_index(double label);
/// Names the classes of samples as the option class_names says. Throws Error(data)
/// about the file, and Error(config) if the reader names them, too. `table`: the reader's, which may lack it.
void name_classes(OpenedSamples& data, const Params& params, std::span<const ParamSpec> table,
                  const std::string& base_directory);
/// Stores labels in parts.label_indices if all are whole numbers in int32's range, otherwise in
/// parts.label_rows.
void set_labels_by_value(DatasetParts& parts, const std::vector<double>& labels);

}  // namespace lockstep
