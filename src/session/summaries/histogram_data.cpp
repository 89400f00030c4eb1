// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/summaries/histogram_data.h"

#include <algorithm>
#include <cfloat>

#include "io/histogram.h"

namespace lockstep {

static_assert(kHistogramEdges == kDistributionEdges && kHistogramBuckets == kDistributionBuckets);

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
  set_buckets(data, [&](std::size_t b) {
    return static_cast<double>(total.buckets[b]) +
           (b == kHistogramZeroBucket ? static_cast<double>(zeros) : 0.0);
  });
  return data;
}

void append_histogram(std::vector<SummaryValue>& to, const std::string& tag, const DistributionTotal& total,
                      std::int64_t zeros) {
  to.push_back({tag, histogram_data(total, zeros)});
  if (total.not_finite > 0) to.push_back({tag + "/not_finite", static_cast<float>(total.not_finite)});
}

}  // namespace lockstep
