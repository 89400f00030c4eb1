// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The gradient of what a server holds on its way there (cluster.ps): of a table only the rows that are not
// zero, with their numbers. What arrives is what was sent, bit for bit. Pure arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/range.h"
#include "model/variable_store.h"

namespace lockstep {

class TableRows {
 public:
  /// A table among the elements of a server: `rows` of `width` elements from element `first`.
  struct Table {
    std::int64_t first, rows, width;
  };

  /// The tables of a server that holds `elements`; `tables` are in ascending order.
  TableRows(std::int64_t elements, std::vector<Table> tables);
  /// The tables among the variables that lie in `ranges`, the elements of a server one range after the other.
  TableRows(const VariableStore& variables, std::span<const Range> ranges);

  /// Whether it is a table whose gradient travels as rows.
  static bool holds(const Variable& variable) {
    return variable.row_bound && variable.trainable && variable.sparse_index < 0;
  }
  bool has_tables() const { return !tables_.empty(); }
  /// Writes the packed form of `values` to `to`, which has room for all elements. Returns its bytes; 0 if it
  /// would not be shorter than the values.
  std::size_t pack(const float* values, std::byte* to) const;
  /// The reverse of pack(). Throws Error(bug) if `from` is not the packed form of all elements.
  void unpack(const std::byte* from, std::size_t bytes, float* values) const;

 private:
  std::int64_t elements_;
  std::vector<Table> tables_;
};

}  // namespace lockstep
