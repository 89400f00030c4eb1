// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/dataset_parts.h"

#include <limits>

#include "core/error.h"
#include "core/memory_limit.h"

namespace lockstep {

std::int64_t StoredForm::size_bytes() const {
  constexpr std::int64_t kLabelBytes = 4;
  std::int64_t bytes = 0;  // damaged files may claim any extents
  if (__builtin_add_overflow(feature_bytes(), size * label_step * kLabelBytes, &bytes))
    return std::numeric_limits<std::int64_t>::max();
  return bytes;
}

std::int64_t channels_of(const Shape& shape, bool is_sequence) {
  return is_sequence && shape.rank() == 1 ? 1 : shape.last();
}

void check_memory(const std::string& source, std::int64_t rows, double bytes_per_row) {
  const double needed = static_cast<double>(rows) * bytes_per_row;
  const auto available = static_cast<double>(usable_memory_bytes());
  if (available > 0 && needed > available)
    throw Error(ErrorKind::data,
                fmt::format("{} records take {:.1f} GB of memory, but this process may use {:.1f} GB", rows,
                            needed * 1e-9, available * 1e-9),
                source, "Read fewer with the option rows: [first, last].");
}

RowRange checked_rows(const std::optional<RowRange>& rows, std::int64_t available,
                      const std::string& source) {
  if (!rows) return {0, available};
  if (rows->first >= 0 && rows->first < rows->last && rows->last <= available) return *rows;
  throw Error(
      ErrorKind::data,
      fmt::format("rows [{}, {}) were requested, but there are {} rows", rows->first, rows->last, available),
      source, "Give rows as [first, last): 0-based, the last one not included.");
}

}  // namespace lockstep
