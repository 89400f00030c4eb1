// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which columns of a table became the features and labels of a data set: so that another file of the same
// form is read the same way, whatever else it holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

struct TableInfo {
  struct Column {
    std::int64_t index = 0;           ///< in the file, from 0
    std::string name;                 ///< empty: the file names no columns
    std::vector<std::string> values;  ///< of a category; empty: the column holds numbers
    bool operator==(const Column&) const = default;
  };
  std::int64_t num_columns = 0;  ///< of the file
  std::vector<Column> features;  ///< in the order of their values
  std::vector<Column> labels;
  /// Of each sample, the hash of its text in the column key_column (split_keys.h); empty without one.
  std::vector<std::uint64_t> keys;

  /// A line "column <tab> value" per value of a category, in their order; empty if there are none.
  std::string categories_text() const;
};

/// "column 3 (age)".
std::string name_of(const TableInfo::Column& column);

}  // namespace lockstep
