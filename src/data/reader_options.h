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

#include "config/params.h"
#include "data/reader_table.h"

namespace lockstep {

class OpenedSamples;

inline constexpr std::array kCommonReaderOptions{
    ParamSpec{"rows", ParamType::integers, "null", between(0, 1e15).note("first, last"),
              "data rows to use, 0-based, last excluded; null: all"},
    ParamSpec{"scale", ParamType::real, "1.0", between(-1e30, 1e30), "factor of the features, applied first"},
    ParamSpec{"offset", ParamType::real, "0.0", between(-1e30, 1e30), "added after scale"},
    ParamSpec{"mean", ParamType::reals, "null", between(-1e30, 1e30).note("one per channel, or one"),
              "subtracted after offset"},
    ParamSpec{"std", ParamType::reals, "null", above(0).up_to(1e30).note("one per channel, or one"),
              "divisor, applied last"},
    ParamSpec{
        "normalize", ParamType::string, "none", one_of("channels|all|none"),
        "mean and std are computed over the chosen samples of the training set when a run begins, of each "
        "channel or of all values; the run keeps them"},
    ParamSpec{"class_names",
              ParamType::string,
              "null",
              {},
              "a text file with the name of each class, a line per class, in the order of their indices; "
              "relative to the config file's folder; null: those of the files, if they have any",
              Change::place},
    ParamSpec{"bad_records", ParamType::string, "stop", one_of("stop|skip"),
              "records that cannot be decoded, or with values that are not finite: an error, or left out of "
              "the set and listed in the run directory"},
    ParamSpec{"max_bad_records", ParamType::real, "0.01",
              between(0, 1e15).note("below 1 a share of the samples"),
              "with bad_records: skip, more than these are an error", Change::free}};

/// Options of readers that give a store.
inline constexpr std::array kStoreOptions{
    ParamSpec{
        "memory_gb", ParamType::real, "null", above(0).up_to(1e9, "GB").or_null(),
        "a larger set is read while it is used, through so much memory of each rank; null: a quarter of "
        "the host's memory or of the job's limit; divided by the host's ranks if they cannot share it",
        Change::free},
    ParamSpec{"timeout_seconds", ParamType::real, "300", above(0).up_to(1e9, "seconds"),
              "a longer wait for data of such a set is an error", Change::free},
    ParamSpec{"reader_threads", ParamType::integer, "null", between(1, 256).or_null(),
              "threads of each rank that read a set, into memory or while it is used; null: two into memory; "
              "while it is used one, and more where batches have to wait and that helps, up to 8 or the "
              "cores of the rank",
              Change::free},
    ParamSpec{"block_samples", ParamType::integer, "null", between(1, 1e9).or_null(),
              "samples that are read together; null: whole chunks of the file, of about 256 KiB or more "
              "together; the "
              "order of train.shuffle: blocks depends on it"}};

/// The options of a reader followed by the common ones.
template <std::size_t Count>
constexpr std::array<ParamSpec, Count + kCommonReaderOptions.size()> with_common_options(
    const std::array<ParamSpec, Count>& own) {
  std::array<ParamSpec, Count + kCommonReaderOptions.size()> all{};
  std::copy(kCommonReaderOptions.begin(), kCommonReaderOptions.end(),
            std::copy(own.begin(), own.end(), all.begin()));
  return all;
}

/// The options of a reader that gives a store, followed by the common ones.
template <std::size_t Count>
constexpr std::array<ParamSpec, Count + kStoreOptions.size() + kCommonReaderOptions.size()>
with_store_options(const std::array<ParamSpec, Count>& own) {
  std::array<ParamSpec, Count + kStoreOptions.size()> all{};
  std::copy(kStoreOptions.begin(), kStoreOptions.end(), std::copy(own.begin(), own.end(), all.begin()));
  return with_common_options(all);
}

/// Threads that look through the files of a set.
int reader_threads(const Params& params);

/// Reads the options of a reader that gives a store.
DatasetMemory memory_options(const Params& params, const DatasetUse& use);

/// `path` relative to `base_directory`, or unchanged if it is absolute.
std::string resolved_path(const std::string& path, const std::string& base_directory);
/// Reads the option `rows`. Throws Error(config) unless it is two whole numbers with 0 <= first < last.
std::optional<RowRange> rows_option(const Params& params);
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
