// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the reader csv: its options, and what they say about the form of a file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/params.h"

namespace lockstep {

std::span<const ParamSpec> csv_table();

/// Stands for a delimiter: any number of blanks and tabs.
inline constexpr char kCsvBlanks = '\0';
/// What the file's name suggests.
std::optional<char> delimiter_by_name(std::string_view path);

/// How a file is cut into rows and fields, and how its numbers are written.
struct CsvFormat {
  std::optional<char> delimiter;  ///< empty: what the file's name or its first rows suggest
  std::optional<char> decimal;    ///< empty: what the first rows suggest
  std::optional<char> thousands;
  std::optional<char> quote;    ///< empty: no character is special
  std::optional<char> comment;  ///< at the start of a line that is passed over
  bool header = false;
  std::int64_t skip_lines = 0;  ///< at the start of each file
};

/// Throws Error(config).
CsvFormat csv_format(const Params& params);

/// Which texts mean that a value is missing. An empty field always does.
class CsvMissing {
 public:
  /// Of the option missing_values.
  CsvMissing(const Node& node, const Params& params);
  bool is_missing(std::string_view text) const;
  /// One of the texts is a number: each field must be looked at before it is read as one.
  bool has_numbers() const { return has_numbers_; }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::vector<std::string> texts_;
  bool has_numbers_ = false;
};

/// A column as an option names it: a number from 0, a name, or a pattern of names.
struct CsvColumnName {
  std::string text;
  std::optional<std::int64_t> number;
  std::string where;  ///< in the configuration
};
/// The number of a column that a text without quotes is; nothing of a name.
std::optional<std::int64_t> csv_column_number(std::string_view text);
/// The columns of an option that is null, one column or a list of them: for option_as(). Throws
/// Error(config).
std::vector<CsvColumnName> csv_column_names(const Params& params, const ParamSpec& option);
/// The column of a key of a map, whose value is `value`. A key in quotes is a name.
CsvColumnName csv_column_name(const std::string& key, const Node& value);

/// All but the form of a file.
struct CsvOptions {
  std::vector<CsvColumnName> columns, ignore, labels, key_column;
  std::optional<std::int64_t> label_column;
  Node classes, categories, missing, missing_values;
  std::optional<std::vector<std::int64_t>> shape;
};

}  // namespace lockstep
