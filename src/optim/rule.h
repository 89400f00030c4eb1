// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What the files of the rules share. A rule is one file: a class, its table of options, and the function that
// optimizer_table.cpp lists. Each file names the source of its formula.
#pragma once

#include "optim/optimizer.h"

namespace lockstep {

inline constexpr std::string_view kRateHelp = "a number, or a schedule with its options";
inline constexpr std::string_view kLazyHelp =
    "rows of tables (embeddings) that a step does not touch stay as they are, slots too";

/// The update of rows [rows.first, rows.last) of `table`. With `others`, rows without a gradient are updated
/// with a gradient of zero.
inline RowUpdate row_update(const Variable& table, const SparseRows& gradient, Range rows, bool others) {
  return {rows.first,      rows.last,     table.shape.num_elements() / table.shape[0],
          *gradient.count, gradient.rows, gradient.values,
          others};
}

}  // namespace lockstep
