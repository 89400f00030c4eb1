// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the reader csv: the rows of one file, and the fields of a row. A row is a line, or several
// lines if a quoted field contains line ends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/function_ref.h"
#include "data/readers/csv_options.h"
#include "io/input_file.h"

namespace lockstep {

struct CsvRow {
  std::string_view text;  ///< without its line end
  bool has_quotes = false;
};

/// The fields of a row: without quotes, and without blanks around what is not quoted.
class CsvFields {
 public:
  std::size_t size() const { return fields_.size(); }
  std::string_view operator[](std::size_t i) const { return fields_[i]; }
  const std::vector<std::string_view>& all() const { return fields_; }

 private:
  friend class CsvRows;
  std::vector<std::string_view> fields_;
  std::string unquoted_;  ///< fields that contain quotes
};

/// How the text of a file is cut into rows and fields, and what messages call them.
class CsvRows {
 public:
  CsvRows(std::string path, const CsvFormat& format) : format_(format), path_(std::move(path)) {}

  /// Throws Error(data) for text after a closing quote.
  void split(const CsvRow& row, CsvFields& fields) const;
  std::int64_t count_columns(const CsvRow& row) const;
  /// The row that begins with `line`. Its further lines are those of `next_line`, which returns false at the
  /// end; then `joined` holds its text. Throws Error(data) if a quoted field does not end.
  CsvRow row_of(std::string_view line, FunctionRef<bool(std::string_view&)> next_line,
                std::string& joined) const;
  bool is_comment(std::string_view line) const {
    return format_.comment && line.starts_with(*format_.comment);
  }

  /// A line without text, which is passed over.
  bool is_blank(std::string_view line) const {
    return std::ranges::all_of(line, [&](char c) { return is_space(c) || (are_blanks_ && c == ' '); });
  }

  char delimiter() const { return delimiter_; }
  /// The decimal mark of numbers, and what separates their thousands.
  char decimal() const { return decimal_; }
  const std::optional<char>& thousands() const { return format_.thousands; }
  bool is_space(char c) const { return (c == ' ' || c == '\t') && c != delimiter_; }
  /// The names of the header; empty without one.
  const std::vector<std::string>& names() const { return names_; }
  const std::string& path() const { return path_; }
  /// The line in which the current row begins, from 1.
  std::int64_t line_number() const { return row_line_; }
  void set_line_number(std::int64_t line) { row_line_ = line; }
  /// The line of the first row, or of the header.
  std::int64_t first_line() const { return first_line_; }
  /// What to say first about a file that may be cut at the wrong separator; empty if it looks right.
  std::string delimiter_advice() const;
  [[noreturn]] void fail(std::int64_t line, std::string what, std::string advice) const;
  /// "column 3 (age)".
  std::string column(std::int64_t index) const;

 private:
  void add_lines(std::string_view line, FunctionRef<bool(std::string_view&)> next_line,
                 std::string& joined) const;
  std::string with_single_blanks(std::string_view row) const;

 protected:
  CsvFormat format_;
  std::string path_;
  char delimiter_ = ',';     ///< of blanks: one, after row_of()
  bool are_blanks_ = false;  ///< any number of blanks separates
  char decimal_ = '.';
  std::optional<char> likely_delimiter_;  ///< by the first rows
  std::vector<std::string> names_;
  std::int64_t row_line_ = 0, first_line_ = 0;
};

/// Reads them from the first to the last one.
class CsvFile : public CsvRows {
 public:
  /// Reads the header, if there is one.
  CsvFile(const std::string& path, const CsvFormat& format);

  /// Sets `row` to the next data row, valid until the next call; false at the end. Passes over blank lines:
  /// between the rows of one column they are an error, since they may be missing values.
  bool next_row(CsvRow& row);
  /// The first byte of the last row, and the one after its end.
  std::int64_t row_begin() const { return row_begin_; }
  std::int64_t row_end() const { return lines_.line_end(); }

 private:
  bool next_line(std::string_view& line);
  bool next_text(CsvRow& row);
  void look_at_first_rows();
  void read_header();

  InputFile file_;
  LineReader lines_;
  std::string joined_;  ///< a row of several lines
  std::int64_t row_begin_ = 0;
};

}  // namespace lockstep
