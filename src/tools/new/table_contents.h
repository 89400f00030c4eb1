// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep new`: what the columns of a table hold, in all its rows.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace lockstep {

struct ColumnContents {
  std::string name;  ///< empty: the table names none
  std::int64_t numbers = 0, whole = 0, missing = 0, texts = 0;
  std::int64_t words = 0;        ///< of all rows together
  std::int64_t least_words = 0;  ///< of the row that has fewest
  double least = 0, most = 0, sum = 0;
  bool counts_rows = true;       ///< each number is that of the row before plus 1
  std::set<std::string> values;  ///< at most kMostColumnValues + 1
  std::string first_text;        ///< that is neither a number nor missing
  std::int64_t first_text_line = 0;
  bool has_decimal_commas = true;  ///< all its texts are such as 0,5

  double mean() const { return numbers == 0 ? 0 : sum / static_cast<double>(numbers); }
};

constexpr std::size_t kMostColumnValues = 1000;

struct TableContents {
  char delimiter = ',';
  bool header = false;
  std::int64_t rows = 0;  ///< without the header
  std::vector<ColumnContents> columns;

  /// The name by which the configuration means a column, in YAML: its name in quotes, or its number.
  std::string name(std::size_t index) const;
};

/// Reads all rows. `path`: .csv or .tsv, also with .gz. Throws Error(data).
TableContents table_contents(const std::string& path);

/// A text in double quotes, as YAML.
std::string quoted_yaml(const std::string& text);

}  // namespace lockstep
