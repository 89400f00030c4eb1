// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep new`: what the columns of a table hold, in all its rows.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/yaml_quoted.h"
#include "core/function_ref.h"
#include "tools/new/data_guess.h"

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
  /// The first rows of consecutive equal values, at most kMostRuns + 1 of them.
  std::vector<std::pair<std::string, std::int64_t>> runs;
  bool has_decimal_commas = true;  ///< all its texts are such as 0,5

  double mean() const { return numbers == 0 ? 0 : sum / static_cast<double>(numbers); }
};

constexpr std::size_t kMostColumnValues = 1000, kMostRuns = 3;

struct TableContents {
  char delimiter = ',';
  char decimal = '.';           ///< the mark of numbers
  std::int64_t skip_lines = 0;  ///< before the table
  bool header = false;
  std::int64_t rows = 0;  ///< without the header
  std::vector<ColumnContents> columns;
  std::vector<std::string> assumed;  ///< for the user: what is not plain to see

  /// The name by which the configuration means a column, in YAML: its name in quotes, or its number.
  std::string name(std::size_t index) const;
};

/// The delimiter of a file that is a table whatever its ending (.txt, .data), as the option has it
/// (kCsvBlanks for any number of blanks); nothing: it is none.
std::optional<char> table_delimiter(const std::string& path);
/// Reads all rows of question.place, a table that the reader csv reads. Throws Error(data).
TableContents table_contents(const DataQuestion& question);
/// Calls use(fields) for each row of `path`, whose contents are `table`.
void for_each_table_row(const std::string& path, const TableContents& table,
                        FunctionRef<void(std::span<const std::string_view>)> use);

/// A name, as YAML: in quotes where it would be something else without them.
std::string quoted_name(const std::string& name);

}  // namespace lockstep
