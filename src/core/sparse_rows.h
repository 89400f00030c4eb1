// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Some rows of a table with their numbers: the gradient of a large table of which a step uses few rows.
#pragma once

#include <cstdint>

namespace lockstep {

/// Memory of the caller's, on the device, or where it is said the count in host memory. Rows ascend, each
/// once; values[k] are the numbers of row rows[k].
struct SparseRows {
  std::int32_t* count = nullptr;
  std::int32_t* rows = nullptr;
  float* values = nullptr;  ///< count x the table's row length
};

/// How many rows of a table a layer can touch: bounds that the shapes give.
struct RowBound {
  std::int64_t per_sample = 0;
  std::int64_t per_step = 0;  ///< beside those of the samples, the same for all microshards
};

}  // namespace lockstep
