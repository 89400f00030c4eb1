// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What the samples of a data set look like, in numbers. For `lockstep data`.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "data/reader_dataset.h"
#include "data/used_dataset.h"

namespace lockstep {

/// Some of the samples that are used, evenly spread over them; all if `most` is not below their number.
std::vector<std::int64_t> spread_samples(const UsedDataset& data, std::int64_t most);

/// The statistics of one channel, or of all.
struct ValueStatistics {
  double least = 0, most = 0, mean = 0, deviation = 0;
};
struct FeatureStatistics {
  ValueStatistics all;
  std::vector<ValueStatistics> channels;  ///< the last axis; empty if it has 1 or more than 16
};
/// The statistics of the features as the model gets them: transformed, with random transforms in their form
/// for `training`.
FeatureStatistics feature_statistics(const ReaderDataset& data, std::span<const std::int64_t> samples,
                                     std::uint64_t seed);

struct LabelStatistics {
  /// The counts by class, with class indices in one column.
  std::map<std::int64_t, std::int64_t> counts;
  /// The statistics of all label values otherwise.
  ValueStatistics values;
  std::int64_t columns = 0;
};
LabelStatistics label_statistics(const Dataset& data, std::span<const std::int64_t> samples);

/// The statistics of a target's values: by class, if it has one whole number per sample; otherwise empty.
LabelStatistics target_statistics(const Dataset& target, std::span<const std::int64_t> samples);

/// Samples of `second` whose features occur in `first`, bit by bit: pairs (of first, of second).
std::vector<std::pair<std::int64_t, std::int64_t>> equal_samples(const Dataset& first,
                                                                 std::span<const std::int64_t> of_first,
                                                                 const Dataset& second,
                                                                 std::span<const std::int64_t> of_second);

}  // namespace lockstep
