// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/csv_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "data/table_info.h"

namespace lockstep {

namespace {

/// A field that does not end within this number of bytes has lost its closing quote.
constexpr std::size_t kLongestRow = std::size_t{1} << 24;

bool contains(std::string_view text, char c) {
  return !text.empty() && std::memchr(text.data(), c, text.size()) != nullptr;
}

}  // namespace

CsvFile::CsvFile(const std::string& path, const CsvFormat& format)
    : CsvRows(path, format), file_(path), lines_(file_) {
  std::string_view ignored;
  for (std::int64_t i = 0; i < format_.skip_lines && lines_.next(ignored); ++i) continue;
  if (format_.header) read_header();
}

void CsvRows::fail(std::int64_t line, std::string what, std::string advice) const {
  throw Error(ErrorKind::data, std::move(what), fmt::format("{}, line {}", path_, line), std::move(advice));
}

std::string CsvRows::column(std::int64_t index) const {
  const auto at = static_cast<std::size_t>(index);
  return column_text(index, at < names_.size() ? names_[at] : "");
}

void CsvFile::read_header() {
  CsvRow row;
  if (!next_text(row)) return;
  CsvFields fields;
  split(row, fields);
  names_.assign(fields.all().begin(), fields.all().end());
}

bool CsvFile::next_line(std::string_view& line) {
  do {
    if (!lines_.next(line)) return false;
  } while (is_comment(line));
  return true;
}

bool CsvFile::next_text(CsvRow& row) {
  std::string_view line;
  if (!next_line(line)) return false;
  row_line_ = lines_.line_number();
  row_begin_ = lines_.line_begin();
  row = row_of(
      line, [this](std::string_view& more) { return lines_.next(more); }, joined_);
  return true;
}

bool CsvFile::next_row(CsvRow& row) {
  if (!next_text(row)) return false;
  if (!is_blank(row.text)) return true;
  const std::int64_t blank = row_line_;
  while (next_text(row))
    if (!is_blank(row.text)) fail(blank, "is blank, but rows follow", "Remove the blank line.");
  return false;
}

/// Adds lines until the last quoted field is closed.
CsvRow CsvRows::row_of(std::string_view line, FunctionRef<bool(std::string_view&)> next_line,
                       std::string& joined) const {
  if (!format_.quote || !contains(line, *format_.quote)) return {line, false};
  const char quote = *format_.quote;
  joined.assign(line);
  enum class In { start, plain, quoted, closed };  // where in a field, as split() sees it
  In in = In::start;
  std::size_t at = 0;
  for (;;) {
    for (; at < joined.size(); ++at) {
      const char c = joined[at];
      if (in == In::quoted)
        in = c == quote ? In::closed : In::quoted;
      else if (c == delimiter_)
        in = In::start;
      else if (c == quote && in != In::plain)
        in = In::quoted;  // a doubled one closes the field and opens it again
      else if (in == In::start && !is_space(c))
        in = In::plain;
    }
    if (in != In::quoted) break;
    std::string_view more;
    if (joined.size() > kLongestRow || !next_line(more))
      fail(row_line_, "a quoted field does not end",
           "Close the quote; one inside a quoted field is doubled. If quotes mean nothing in the file, set "
           "quote: null.");
    joined += '\n';
    joined += more;
  }
  return {joined, true};
}

void CsvRows::split(const CsvRow& row, CsvFields& fields) const {
  fields.fields_.clear();
  fields.unquoted_.clear();
  if (row.has_quotes) fields.unquoted_.reserve(row.text.size());  // fields point into it
  const char *at = row.text.data(), *const end = at + row.text.size();
  for (;;) {
    while (at != end && is_space(*at)) ++at;
    if (row.has_quotes && at != end && *at == *format_.quote) {
      const std::size_t begin = fields.unquoted_.size();
      for (++at;; ++at) {
        const char* const quote = std::find(at, end, *format_.quote);
        fields.unquoted_.append(at, quote);
        at = quote == end ? end : quote + 1;
        if (at == end || *at != *format_.quote) break;
        fields.unquoted_ += *format_.quote;
      }
      fields.fields_.push_back(std::string_view(fields.unquoted_).substr(begin));
      while (at != end && is_space(*at)) ++at;
      if (at != end && *at != delimiter_)
        fail(
            row_line_,
            fmt::format("{}: text follows the closing quote",
                        column(static_cast<std::int64_t>(fields.fields_.size()) - 1)),
            "A quote inside a quoted field is doubled. If quotes mean nothing in the file, set quote: null.");
    } else {
      const char* const begin = at;
      at = std::find(at, end, delimiter_);
      const char* last = at;
      while (last != begin && is_space(last[-1])) --last;
      fields.fields_.emplace_back(begin, static_cast<std::size_t>(last - begin));
    }
    if (at == end) return;
    ++at;
  }
}

std::int64_t CsvRows::count_columns(const CsvRow& row) const {
  if (!row.has_quotes) return std::count(row.text.begin(), row.text.end(), delimiter_) + 1;
  CsvFields fields;
  split(row, fields);
  return static_cast<std::int64_t>(fields.size());
}

}  // namespace lockstep
