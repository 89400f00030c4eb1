// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the reader csv: the rows of one file, and the fields of a row. A row is a line, or several
// lines if a quoted field contains line ends.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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
  friend class CsvFile;
  std::vector<std::string_view> fields_;
  std::string unquoted_;  ///< fields that contain quotes
};

class CsvFile {
 public:
  /// Reads the header, if there is one.
  CsvFile(const std::string& path, const CsvFormat& format);

  /// Sets `row` to the next data row, valid until the next call; false at the end. A blank line is an error
  /// only if a row follows it.
  bool next_row(CsvRow& row);
  /// Throws Error(data) for text after a closing quote.
  void split(const CsvRow& row, CsvFields& fields) const;
  std::int64_t count_columns(const CsvRow& row) const;

  char delimiter() const { return delimiter_; }
  bool is_space(char c) const { return (c == ' ' || c == '\t') && c != delimiter_; }
  /// Of the header; empty without one.
  const std::vector<std::string>& names() const { return names_; }
  const std::string& path() const { return file_.path(); }
  /// In which the last row began, from 1.
  std::int64_t line_number() const { return row_line_; }
  [[noreturn]] void fail(std::int64_t line, std::string what, std::string advice) const;
  /// "column 3 (age)".
  std::string column(std::int64_t index) const;

 private:
  bool next_line(std::string_view& line);
  bool next_text(CsvRow& row);
  void join(CsvRow& row);
  void read_header();
  bool is_blank(std::string_view line) const {
    return line.find_first_not_of(" \t") == std::string_view::npos;
  }

  const CsvFormat format_;
  InputFile file_;
  LineReader lines_;
  const char delimiter_;
  std::vector<std::string> names_;
  std::string joined_;  ///< a row of several lines
  std::int64_t row_line_ = 0;
};

}  // namespace lockstep
