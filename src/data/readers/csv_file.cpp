// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/csv_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "data/readers/csv_look.h"
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
    : CsvRows(path, format), file_(path), lines_(file_, LineEnds::any) {
  look_at_first_rows();
  if (format_.header) read_header();
}

/// Sets the separator and the decimal mark, and passes over the lines before the first row.
void CsvFile::look_at_first_rows() {
  const std::string_view head = lines_.ahead();
  const std::vector<std::string_view> rows = first_csv_rows(head, lines_.ahead_is_all(), format_);
  likely_delimiter_ = likely_delimiter(rows, format_);
  const std::optional<char> written = separator_line(head.substr(0, cut_line(head, LineEnds::any).length));
  if (written && format_.delimiter && format_.delimiter != written)
    fail(1, fmt::format("says that '{}' separates columns, but the option delimiter is another", *written),
         fmt::format("Leave the option out, or set {}.", delimiter_text(*written)));
  const std::optional<char> given = format_.delimiter ? format_.delimiter
                                    : written         ? written
                                                      : delimiter_by_name(path_);
  const char chosen = given ? *given : likely_delimiter_.value_or(',');
  are_blanks_ = chosen == kCsvBlanks;
  delimiter_ = are_blanks_ ? ' ' : chosen;
  if (likely_delimiter_ == chosen) likely_delimiter_.reset();
  // A quoted "1,5" between commas may be a list.
  const auto commas = [&] {
    return format_.thousands == '.' ||
           (format_.thousands != ',' && chosen != ',' && has_decimal_comma(rows, chosen, format_));
  };
  decimal_ = format_.decimal ? *format_.decimal : commas() ? ',' : '.';
  std::string_view ignored;
  const std::int64_t before = std::max<std::int64_t>(format_.skip_lines, written ? 1 : 0);
  for (std::int64_t i = 0; i < before && lines_.next(ignored); ++i) continue;
}

std::string CsvRows::delimiter_advice() const {
  if (!likely_delimiter_) return {};
  return fmt::format("Fields look separated by {}: set {}. ",
                     *likely_delimiter_ == kCsvBlanks ? "blanks"
                     : *likely_delimiter_ == '\t'     ? "tabs"
                                                      : fmt::format("'{}'", *likely_delimiter_),
                     delimiter_text(*likely_delimiter_));
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
  do {
    if (!next_text(row)) return;
  } while (is_blank(row.text));
  first_line_ = row_line_;
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
  std::int64_t blank = 0;
  while (next_text(row)) {
    if (is_blank(row.text)) {
      if (blank == 0) blank = row_line_;
      continue;
    }
    if (blank != 0 && first_line_ != 0 && count_columns(row) == 1)
      fail(blank, "is blank, but rows follow",
           "In a table of one column it may be a missing value: write NA, or remove the line.");
    if (first_line_ == 0) first_line_ = row_line_;
    return true;
  }
  return false;
}

/// Adds lines until the last quoted field is closed.
CsvRow CsvRows::row_of(std::string_view line, FunctionRef<bool(std::string_view&)> next_line,
                       std::string& joined) const {
  const bool has_quotes = format_.quote && contains(line, *format_.quote);
  if (has_quotes) {
    add_lines(line, next_line, joined);
    line = joined;
  }
  if (!are_blanks_) return {line, has_quotes};
  joined = with_single_blanks(line);
  return {joined, has_quotes};
}

void CsvRows::add_lines(std::string_view line, FunctionRef<bool(std::string_view&)> next_line,
                        std::string& joined) const {
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
      else if (c == delimiter_ || (are_blanks_ && is_space(c)))
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
}

/// Blanks and tabs between fields become one blank; those before the first and after the last one are left
/// out.
std::string CsvRows::with_single_blanks(std::string_view row) const {
  std::string text;
  bool in_quotes = false, after_blank = false;
  for (const char c : row) {
    if (format_.quote && c == *format_.quote) in_quotes = !in_quotes;
    if (!in_quotes && (c == ' ' || c == '\t')) {
      after_blank = true;
      continue;
    }
    if (after_blank && !text.empty()) text += ' ';
    after_blank = false;
    text += c;
  }
  return text;
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
