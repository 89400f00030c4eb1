// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Private to io: options that all readers share, and how readers read theirs.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "core/params.h"
#include "data/dataset.h"

namespace lockstep {

inline constexpr std::array kCommonReaderOptions{
    ParamSpec{"rows", ParamType::integers, "null", "first, last",
              "data rows to use, 0-based, last excluded; null: all"},
    ParamSpec{"scale", ParamType::real, "1.0", "", "features are multiplied by this first"},
    ParamSpec{"offset", ParamType::real, "0.0", "", "then this is added"},
    ParamSpec{"mean", ParamType::reals, "null", "one per channel, or one", "then this is subtracted"},
    ParamSpec{"std", ParamType::reals, "null", "> 0; one per channel, or one", "then it is divided by this"}};

/// A reader's own options followed by the common ones.
template <std::size_t Count>
constexpr std::array<ParamSpec, Count + kCommonReaderOptions.size()> with_common_options(
    const std::array<ParamSpec, Count>& own) {
  std::array<ParamSpec, Count + kCommonReaderOptions.size()> all{};
  std::copy(kCommonReaderOptions.begin(), kCommonReaderOptions.end(),
            std::copy(own.begin(), own.end(), all.begin()));
  return all;
}

/// `path` from `base_directory`, unless it is absolute.
std::string resolved_path(const std::string& path, const std::string& base_directory);
/// The option `rows`. Throws Error(config) unless it is two whole numbers, 0 <= first < last.
std::optional<RowRange> rows_option(const Params& params);
/// scale, offset, mean, std.
FeatureTransform transform_options(const Params& params);
/// Throws Error(data) unless samples of shape `found` in `source` are what a model takes that was made for
/// `wanted`.
void check_feature_shape(const Shape& found, const Shape& wanted, const std::string& source);
/// Labels that are all whole numbers of int32's range become parts.label_indices, others parts.label_rows.
void set_labels_by_value(DatasetParts& parts, const std::vector<double>& labels);

}  // namespace lockstep
