// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/csv_look.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/scalar.h"
#include "io/input_file.h"

namespace lockstep {

namespace {

constexpr std::size_t kMostRows = 20;

bool is_blank(char c) { return c == ' ' || c == '\t'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

/// The fields of a row, with their quotes; blanks: of runs of them.
std::vector<std::string_view> fields_of(std::string_view row, char delimiter, const CsvFormat& format) {
  if (delimiter == kCsvBlanks) row = trimmed(row);
  std::vector<std::string_view> fields;
  bool in_quotes = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (format.quote && row[i] == *format.quote) in_quotes = !in_quotes;
    const bool ends = delimiter == kCsvBlanks ? is_blank(row[i]) : row[i] == delimiter;
    if (!ends || in_quotes) continue;
    fields.push_back(row.substr(begin, i - begin));
    if (delimiter == kCsvBlanks)
      while (is_blank(row[i + 1])) ++i;  // the row ends in another character
    begin = i + 1;
  }
  fields.push_back(row.substr(begin));
  return fields;
}

std::string_view without_quotes(std::string_view field, const CsvFormat& format) {
  field = trimmed(field);
  if (format.quote && field.size() > 1 && field.front() == *format.quote && field.back() == *format.quote)
    field = trimmed(field.substr(1, field.size() - 2));
  return field;
}

enum class Comma { none, decimal, decimal_or_thousands, other };

/// What the comma in a field may be.
Comma comma_of(std::string_view field) {
  const std::size_t comma = field.find(',');
  if (comma == std::string_view::npos) return Comma::none;
  std::string with_point(field);
  with_point[comma] = '.';
  const bool digits_follow =
      comma + 1 < field.size() && std::isdigit(static_cast<unsigned char>(field[comma + 1])) != 0;
  if (!digits_follow || field.find_first_of(".,", comma + 1) != std::string_view::npos ||
      field.find('.') < comma || !parse_real(with_point))
    return Comma::other;
  std::string_view whole = field.substr(0, comma);
  if (whole.starts_with('-') || whole.starts_with('+')) whole.remove_prefix(1);
  const bool groups =
      !whole.empty() && whole.size() <= 3 && whole[0] != '0' && field.size() - comma == 4 &&
      std::ranges::all_of(field.substr(comma + 1), [](unsigned char c) { return std::isdigit(c) != 0; });
  return groups ? Comma::decimal_or_thousands : Comma::decimal;
}

/// The number of fields of all rows; 0 if it differs.
std::size_t columns_of(const std::vector<std::string_view>& rows, char delimiter, const CsvFormat& format) {
  if (format.quote == delimiter) return 0;
  std::size_t columns = 0;
  for (const std::string_view row : rows) {
    const std::size_t found = fields_of(row, delimiter, format).size();
    if (columns != 0 && found != columns) return 0;
    columns = found;
  }
  return columns;
}

/// Each row after the first one, which may be a header, has a number: texts have blanks, too.
bool has_numbers(const std::vector<std::string_view>& rows, const CsvFormat& format) {
  for (std::size_t i = rows.size() > 1 ? 1 : 0; i < rows.size(); ++i) {
    const auto fields = fields_of(rows[i], kCsvBlanks, format);
    if (std::ranges::none_of(fields, [](std::string_view field) {
          return parse_real(field).has_value() || comma_of(field) == Comma::decimal;
        }))
      return false;
  }
  return true;
}

}  // namespace

std::optional<char> separator_line(std::string_view line) {
  if (line.size() > 2 && line.front() == '"' && line.back() == '"') line = line.substr(1, line.size() - 2);
  constexpr std::string_view kBegin = "sep=";
  if (line.size() != kBegin.size() + 1) return std::nullopt;
  const bool is_one = std::ranges::equal(line.substr(0, kBegin.size()), kBegin, {},
                                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return is_one ? std::optional(line.back()) : std::nullopt;
}

std::vector<std::string_view> first_csv_rows(std::string_view head, bool is_all, const CsvFormat& format) {
  std::vector<std::string_view> rows;
  std::int64_t skipped = 0;
  while (!head.empty() && rows.size() < kMostRows) {
    // A quoted field may have line ends.
    std::size_t length = 0, next = 0;
    bool in_quotes = false;
    do {
      const LineCut cut = cut_line(head.substr(next), LineEnds::any);
      if (format.quote && skipped == format.skip_lines)
        in_quotes = (std::ranges::count(head.substr(next, cut.length), *format.quote) % 2 != 0) != in_quotes;
      length = next + cut.length;
      next += cut.next;
    } while (in_quotes && next < head.size());
    const bool is_whole = is_all || next < head.size();
    const std::string_view row = head.substr(0, length);
    head.remove_prefix(next);
    if (skipped < format.skip_lines) {
      ++skipped;
      continue;
    }
    if (!is_whole && !rows.empty()) break;
    if (trimmed(row).empty() || (format.comment && row.starts_with(*format.comment))) continue;
    if (rows.empty() && separator_line(row)) continue;
    rows.push_back(row);
  }
  return rows;
}

std::optional<char> likely_delimiter(const std::vector<std::string_view>& rows, const CsvFormat& format) {
  if (rows.empty()) return std::nullopt;
  const bool may_be_comma = columns_of(rows, ',', format) > 1;
  const auto has_commas_in_numbers_alone = [&](char delimiter) {
    for (const std::string_view row : rows)
      for (const std::string_view field : fields_of(row, delimiter, format)) {
        if (comma_of(without_quotes(field, format)) == Comma::other) return false;
      }
    return true;
  };
  for (const char delimiter : {'\t', ';', '|'})
    if (columns_of(rows, delimiter, format) > 1 && (!may_be_comma || has_commas_in_numbers_alone(delimiter)))
      return delimiter;
  if (may_be_comma) return ',';
  if (columns_of(rows, kCsvBlanks, format) > 1 && has_numbers(rows, format) &&
      has_commas_in_numbers_alone(kCsvBlanks))
    return kCsvBlanks;
  return std::nullopt;
}

bool has_decimal_comma(const std::vector<std::string_view>& rows, char delimiter, const CsvFormat& format) {
  bool has_one = false;
  for (const std::string_view row : rows)
    for (std::string_view field : fields_of(row, delimiter, format)) {
      field = without_quotes(field, format);
      if (field.find('.') != std::string_view::npos && parse_real(field)) return false;
      has_one = has_one || comma_of(field) == Comma::decimal;
    }
  return has_one;
}

std::string delimiter_text(char delimiter) {
  if (delimiter == kCsvBlanks) return "delimiter: blanks";
  return delimiter == '\t' ? "delimiter: \"\\t\"" : fmt::format("delimiter: \"{}\"", delimiter);
}

}  // namespace lockstep
