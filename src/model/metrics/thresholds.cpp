// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/metrics/thresholds.h"

namespace lockstep {

std::vector<float> thresholds_of(const Params& params, std::string_view option,
                                 const std::vector<double>& given, std::int64_t columns) {
  const auto count = static_cast<std::size_t>(columns);
  if (given.size() != 1 && given.size() != count)
    throw params.error(option, fmt::format("there are {} thresholds for {} labels", given.size(), columns),
                       "Give one threshold for all, or one per label.");
  std::vector<float> thresholds(given.begin(), given.end());
  if (given.size() == 1) thresholds.resize(count, thresholds.front());
  return thresholds;
}

}  // namespace lockstep
