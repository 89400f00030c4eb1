// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep new`: columns of a table that are one category, such as kind_a, kind_b and kind_c of
// pandas.get_dummies(): each has 0 and 1 alone, and exactly one of them is 1 in each row.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/new/table_contents.h"

namespace lockstep {

struct IndicatorColumns {
  std::size_t first = 0, count = 0;
  /// What their names begin with, without the separator after it; empty: they share no name, and are the last
  /// columns.
  std::string name = {};
  bool one_each = false;  ///< exactly one is 1 in each row; otherwise several, or none
  bool none_two = true;   ///< no row has two

  bool has(std::size_t column) const { return column >= first && column < first + count; }
};

/// All groups that are a category, and those of names such as label_1 and label_2 that are several labels at
/// once. Reads the rows of the file again if columns may be one.
std::vector<IndicatorColumns> indicator_columns(const std::string& path, const TableContents& table);

}  // namespace lockstep
