// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace lockstep {

/// Numbers in addition to a metric's value: one per class, or a matrix.
struct MetricTable {
  std::string_view name;
  std::int64_t columns = 0;  ///< of a matrix, stored row by row; 0: a list
  std::vector<double> values;
};

}  // namespace lockstep
