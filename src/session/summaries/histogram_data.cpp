// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/summaries/histogram_data.h"

#include <algorithm>
#include <array>
#include <cfloat>

namespace lockstep {

namespace {

constexpr std::size_t kZeroBucket = kDistributionEdges + 2;

/// kernels/distribution.h describes them.
const std::array<double, kDistributionBuckets>& limits() {
  static const auto limits = [] {
    std::array<double, kDistributionBuckets> all{};
    double edge = 1e-12;
    for (std::size_t i = 0; i < kDistributionEdges; ++i, edge *= 1.1) {
      all[kZeroBucket + i] = edge;
      all[kZeroBucket - 2 - i] = -edge;
    }
    all.back() = DBL_MAX;
    all.front() = -DBL_MAX;
    return all;
  }();
  return limits;
}

}  // namespace

HistogramData histogram_data(const DistributionTotal& total, std::int64_t zeros) {
  const Distribution& moments = total.moments;
  HistogramData data;
  data.num = static_cast<double>(moments.finite + zeros);
  if (data.num == 0) {
    data.min = DBL_MAX;
    data.max = -DBL_MAX;
  } else {
    const double none = moments.finite == 0 ? 0.0 : moments.least;
    data.min = zeros > 0 ? std::min(0.0, none) : none;
    const double most = moments.finite == 0 ? 0.0 : moments.largest;
    data.max = zeros > 0 ? std::max(0.0, most) : most;
  }
  data.sum = moments.sum;
  data.sum_squares = moments.sum_squares;
  bool after_empty = false;
  for (std::size_t b = 0; b < total.buckets.size(); ++b) {
    const double count =
        static_cast<double>(total.buckets[b]) + (b == kZeroBucket ? static_cast<double>(zeros) : 0.0);
    if (count == 0 && after_empty) {
      data.limits.back() = limits()[b];
    } else {
      data.limits.push_back(limits()[b]);
      data.counts.push_back(count);
    }
    after_empty = count == 0;
  }
  return data;
}

void append_histogram(std::vector<SummaryValue>& to, const std::string& tag, const DistributionTotal& total,
                      std::int64_t zeros) {
  to.push_back({tag, histogram_data(total, zeros)});
  if (total.not_finite > 0) to.push_back({tag + "/not_finite", static_cast<float>(total.not_finite)});
}

}  // namespace lockstep
