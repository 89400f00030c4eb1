// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/histogram.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <cstdint>

namespace lockstep {

std::span<const double, kHistogramBuckets> histogram_limits() {
  static const auto limits = [] {
    std::array<double, kHistogramBuckets> all{};
    double edge = 1e-12;
    for (std::size_t i = 0; i < kHistogramEdges; ++i, edge *= 1.1) {
      all[kHistogramZeroBucket + i] = edge;
      all[kHistogramZeroBucket - 2 - i] = -edge;
    }
    all.back() = DBL_MAX;
    all.front() = -DBL_MAX;
    return all;
  }();
  return limits;
}

void set_buckets(HistogramData& data, FunctionRef<double(std::size_t)> count) {
  const auto limits = histogram_limits();
  bool after_empty = false;
  for (std::size_t b = 0; b < limits.size(); ++b) {
    const double here = count(b);
    if (here == 0 && after_empty) {
      data.limits.back() = limits[b];
    } else {
      data.limits.push_back(limits[b]);
      data.counts.push_back(here);
    }
    after_empty = here == 0;
  }
}

namespace {

template <typename T>
std::vector<SummaryValue> values_of(const std::string& tag, std::span<const T> numbers) {
  const auto limits = histogram_limits();
  std::array<double, kHistogramBuckets> counts{};
  HistogramData data{.min = DBL_MAX, .max = -DBL_MAX};
  std::int64_t not_finite = 0;
  for (const T number : numbers) {
    const auto value = static_cast<double>(number);
    if (!std::isfinite(value)) {
      ++not_finite;
      continue;
    }
    data.min = std::min(data.min, value);
    data.max = std::max(data.max, value);
    data.num += 1;
    data.sum += value;
    data.sum_squares += value * value;
    const auto bucket = std::upper_bound(limits.begin(), limits.end() - 1, value) - limits.begin();
    counts[static_cast<std::size_t>(bucket)] += 1;
  }
  set_buckets(data, [&](std::size_t b) { return counts[b]; });
  std::vector<SummaryValue> values;
  values.push_back({tag, std::move(data)});
  if (not_finite > 0) values.push_back({tag + "/not_finite", static_cast<float>(not_finite)});
  return values;
}

}  // namespace

std::vector<SummaryValue> histogram_values(const std::string& tag, std::span<const float> numbers) {
  return values_of(tag, numbers);
}
std::vector<SummaryValue> histogram_values(const std::string& tag, std::span<const double> numbers) {
  return values_of(tag, numbers);
}

}  // namespace lockstep
