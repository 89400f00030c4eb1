// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Selected rows of a table with their indices: the gradient of a large table of which a step uses few rows.
#pragma once

#include <cstdint>

namespace lockstep {

/// Views into memory of the caller, in device memory; where documented, the count is in host memory. Row
/// indices ascend and are unique; values[k] is the start of the values of row rows[k]. Work on a device whose
/// count the host does not know is launched for `most` rows.
struct SparseRows {
  std::int32_t* count = nullptr;
  std::int32_t* rows = nullptr;
  float* values = nullptr;  ///< count x row length of the table
  std::int64_t most = 0;    ///< bound on the count, from shapes; for rows whose count is on a device
};

/// Upper bounds on the rows of a table that a layer can touch, derived from shapes.
struct RowBound {
  std::int64_t per_sample = 0;
  std::int64_t per_step = 0;  ///< in addition to those of the samples; the same for all microshards
};

}  // namespace lockstep
