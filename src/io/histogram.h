// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Histograms of event files from numbers, in the buckets of TensorFlow (kernels/distribution.h describes
// them): bucket b holds [limit(b - 1), limit(b)). NaN and infinities are in no bucket.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/function_ref.h"
#include "io/summary_value.h"

namespace lockstep {

inline constexpr std::size_t kHistogramEdges = 774;  ///< positive ones
inline constexpr std::size_t kHistogramBuckets = 2 * kHistogramEdges + 3;
/// The bucket that begins with 0.
inline constexpr std::size_t kHistogramZeroBucket = kHistogramEdges + 2;

/// The upper limit of each bucket, ascending.
std::span<const double, kHistogramBuckets> histogram_limits();
/// Fills limits and counts as TensorFlow writes them: a run of empty buckets is one bucket with the last
/// limit. `count` gives that of a bucket.
void set_buckets(HistogramData& data, FunctionRef<double(std::size_t bucket)> count);

/// The values of event files for these numbers: the histogram under `tag`, and `tag`/not_finite, the number
/// of NaN and infinities, if there are any. Sums are in double, in the order of the numbers.
std::vector<SummaryValue> histogram_values(const std::string& tag, std::span<const float> numbers);
std::vector<SummaryValue> histogram_values(const std::string& tag, std::span<const double> numbers);

}  // namespace lockstep
