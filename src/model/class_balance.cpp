// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/class_balance.h"

#include <algorithm>
#include <numeric>

namespace lockstep {

std::vector<double> balanced_weights(std::span<const std::int64_t> counts) {
  const auto labels = static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  const auto classes = static_cast<double>(std::ranges::count_if(counts, [](auto n) { return n > 0; }));
  std::vector<double> weights;
  for (const std::int64_t count : counts)
    weights.push_back(count > 0 ? labels / (classes * static_cast<double>(count)) : 1.0);
  return weights;
}

}  // namespace lockstep
