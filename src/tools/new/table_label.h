// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep new`: which columns of a table are its label.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/new/data_guess.h"
#include "tools/new/table_contents.h"

namespace lockstep {

struct TableLabel {
  std::vector<std::size_t> columns;  ///< one; several: of 0 and 1, next to each other
  std::string name = {};             ///< of several together
  /// Columns that would give the label away: with it exactly one of them is 1 in each row.
  std::vector<std::size_t> known_from = {};

  bool has(std::size_t column) const;
};

/// By the question, by names, by contents, in this order. Throws Error(data) for a name that is none.
TableLabel label_of(const TableContents& table, const DataQuestion& question,
                    std::vector<std::string>& assumed);

/// "column 3 (age)" of a table with names.
std::string column_title(const TableContents& table, std::size_t index);
/// Each value is the name of a set.
bool is_split(const ColumnContents& column);
/// A column that tells nothing about the label; why, or empty.
std::string useless(const TableContents& table, std::size_t index);

}  // namespace lockstep
