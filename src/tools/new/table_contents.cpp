// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/new/table_contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "config/params.h"
#include "config/yaml_node.h"
#include "core/error.h"
#include "core/name_list.h"
#include "core/scalar.h"
#include "data/readers/csv_file.h"
#include "data/readers/csv_look.h"
#include "io/input_file.h"
#include "tools/new/table_header.h"
#include "tools/new/usual_names.h"

namespace lockstep {

namespace {

constexpr std::int64_t kHeaderRows = 500;  ///< that are looked at to tell a header

/// How a file is read, whatever its first line is.
struct TableForm {
  std::string path;
  std::int64_t skip_lines = 0;
  std::optional<char> delimiter;  ///< empty: not known yet
};

/// The reader's options, as the configuration will have them.
Params reader_options(const TableForm& form, bool header) {
  std::string text =
      fmt::format("path: {}\nskip_lines: {}\nheader: {}\n", yaml_quoted(form.path), form.skip_lines, header);
  if (form.delimiter) text += delimiter_text(*form.delimiter) + '\n';
  if (form.delimiter == '\t') text += "quote: null\n";  // prose between tabs has quotes that mean nothing
  return Params(parse_yaml(text, "lockstep new"), csv_table(), "reader csv");
}

/// Outside of quotes.
std::int64_t count_of(std::string_view line, char delimiter) {
  std::int64_t count = 0;
  bool in_quotes = false;
  for (const char c : line) {
    if (c == '"') in_quotes = !in_quotes;
    if (c == delimiter && !in_quotes) ++count;
  }
  return count;
}

/// Lines before a table: comments, and what spreadsheets tell each other (sep=;). Names of columns may stand
/// after a #.
std::int64_t leading_lines(const std::string& path) {
  constexpr std::int64_t kMost = 100;
  InputFile file(path);
  LineReader lines(file);
  std::int64_t skipped = 0;
  std::string last;
  for (std::string_view line; lines.next(line); ++skipped) {
    if (skipped < kMost && (line.starts_with('#') || (skipped == 0 && line.starts_with("sep=")))) {
      last = line;
      continue;
    }
    for (const char delimiter : {';', '\t', ','}) {
      const std::int64_t count = count_of(line, delimiter);
      if (count > 0 && count == count_of(last, delimiter) && last.starts_with('#')) return skipped - 1;
    }
    break;
  }
  return skipped;
}

/// As the reader finds it, from lines after those that are skipped.
char delimiter_of(const std::string& path, std::int64_t skip_lines) {
  if (const std::string ending = ending_of(path); ending == ".tsv" || ending == ".tab") return '\t';
  const Params options = reader_options({path, skip_lines, std::nullopt}, false);
  const CsvFormat format = csv_format(options);
  InputFile file(path);
  LineReader lines(file);
  std::string_view first;
  lines.next(first);
  const std::string head = fmt::format("{}\n{}", first, lines.ahead());
  return likely_delimiter(first_csv_rows(head, lines.ahead_is_all(), format), format).value_or(',');
}

/// A number of a file whose decimal mark is `decimal`.
std::optional<double> number_of(std::string_view field, char decimal) {
  if (decimal == '.') return parse_real(field);
  std::string text(field);
  std::ranges::replace(text, decimal, '.');
  return field.find('.') == std::string_view::npos ? parse_real(text) : std::nullopt;
}

/// Of a column, row by row.
class Seen {
 public:
  Seen(ColumnContents& column, char decimal) : column_(column), decimal_(decimal) {}

  void add(std::string_view field, bool is_missing, std::int64_t row, std::int64_t line) {
    const std::int64_t words = std::ranges::count(field, ' ') + 1;
    column_.words += words;
    column_.least_words = row == 0 ? words : std::min(column_.least_words, words);
    if (column_.values.size() <= kMostColumnValues) column_.values.emplace(field);
    if (column_.runs.size() <= kMostRuns && (row == 0 || column_.runs.back().first != field))
      column_.runs.emplace_back(field, row);
    if (is_missing)
      ++column_.missing;
    else if (const auto number = number_of(field, decimal_); number && std::isfinite(*number))
      add_number(*number);
    else
      add_text(field, line);
    if (column_.numbers != row + 1) column_.counts_rows = false;
  }

 private:
  void add_number(double number) {
    const bool is_first = column_.numbers++ == 0;
    column_.least = is_first ? number : std::min(column_.least, number);
    column_.most = is_first ? number : std::max(column_.most, number);
    column_.sum += number;
    if (number == std::floor(number)) ++column_.whole;
    if (!is_first && number != last_ + 1) column_.counts_rows = false;
    last_ = number;
  }

  void add_text(std::string_view field, std::int64_t line) {
    if (column_.texts++ == 0) {
      column_.first_text = field;
      column_.first_text_line = line;
    }
    if (!number_of(field, ',')) column_.has_decimal_commas = false;
  }

  ColumnContents& column_;
  char decimal_;
  double last_ = 0;
};

/// The columns of the first `most` rows. `header`: the first row has their names.
TableContents read_columns(const TableForm& form, bool header, std::int64_t most) {
  const Params options = reader_options(form, header);
  const CsvMissing missing(options.as<CsvOptions>().missing_values, options);
  CsvFile file(form.path, csv_format(options));
  TableContents table{.delimiter = form.delimiter.value_or(','),
                      .decimal = file.decimal(),
                      .skip_lines = form.skip_lines,
                      .header = header};
  std::vector<Seen> seen;
  CsvRow row;
  CsvFields fields;
  while (table.rows < most && file.next_row(row)) {
    file.split(row, fields);
    if (table.rows == 0) {
      table.columns.resize(header ? file.names().size() : fields.size());
      for (std::size_t i = 0; i < table.columns.size(); ++i) {
        if (header) table.columns[i].name = file.names()[i];
        seen.emplace_back(table.columns[i], file.decimal());
      }
    }
    if (fields.size() != table.columns.size())
      file.fail(file.line_number(),
                fmt::format("{} columns, but the first line has {}", fields.size(), table.columns.size()),
                "A table has as many columns in each line. docs/data.md describes the reader csv.");
    for (std::size_t i = 0; i < seen.size(); ++i)
      seen[i].add(fields[i], fields[i].empty() || missing.is_missing(fields[i]), table.rows,
                  file.line_number());
    ++table.rows;
  }
  return table;
}

/// The fields of the first lines, of which there are fewer in a wide table.
std::vector<std::vector<std::string>> first_lines(const TableForm& form) {
  constexpr std::size_t kMostFields = 2'000'000;
  const Params options = reader_options(form, false);
  CsvFile file(form.path, csv_format(options));
  std::vector<std::vector<std::string>> lines;
  CsvRow row;
  CsvFields fields;
  std::size_t seen = 0;
  while (std::ssize(lines) < kHeaderRows && seen < kMostFields && file.next_row(row)) {
    file.split(row, fields);
    seen += fields.size();
    std::vector<std::string>& line = lines.emplace_back(fields.all().begin(), fields.all().end());
    for (std::string& field : line)
      if (file.decimal() != '.' && number_of(field, file.decimal()))
        std::ranges::replace(field, file.decimal(), '.');
  }
  return lines;
}

/// "5.1, 3.5, red" of the first line.
std::string shown(const std::vector<std::string>& line) {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> fields;
  for (const std::string& field : line) fields.push_back(field.substr(0, 20));
  return name_list(fields, kMost);
}

HeaderGuess header_of(const DataQuestion& question, const TableForm& form,
                      std::vector<std::string>& assumed) {
  if (question.header) return {*question.header};
  const std::vector<std::vector<std::string>> lines = first_lines(form);
  const Params options = reader_options(form, false);
  const CsvMissing missing(options.as<CsvOptions>().missing_values, options);
  HeaderGuess guess = guess_header(lines, [&](std::string_view text) { return missing.is_missing(text); });
  if (guess.doubt.empty()) return guess;
  if (question.confirm) {
    guess.header = question.confirm(
        fmt::format("Does the first line of the table name its columns? ({})", shown(lines[0])),
        guess.header);
    return guess;
  }
  assumed.push_back(fmt::format("the first line ({}) {}: {}; otherwise: --header {}", shown(lines[0]),
                                guess.header ? "names the columns" : "is a sample, no names of columns",
                                guess.doubt, guess.header ? "no" : "yes"));
  return guess;
}

}  // namespace

std::string quoted_name(const std::string& name) {
  const bool plain = kind_of_scalar(name) == ScalarKind::text && std::ranges::all_of(name, [](char c) {
                       return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                              c == '_' || c == '/' || c == '.' || c == '-';
                     });
  return plain && !name.starts_with('-') ? name : yaml_quoted(name);
}

std::string TableContents::name(std::size_t index) const {
  return header && !columns[index].name.empty() ? yaml_quoted(columns[index].name) : std::to_string(index);
}

std::optional<char> table_delimiter(const std::string& path) {
  constexpr int kLines = 20;
  InputFile file(path);
  LineReader lines(file);
  std::map<char, std::int64_t> counts;
  std::int64_t fields = 0, numbers = 0, seen = 0;
  bool single_blanks = true;
  for (std::string_view line; seen < kLines && lines.next(line); ++seen) {
    for (const char delimiter : {'\t', ',', ';', ' '}) {
      const std::int64_t count = count_of(line, delimiter);
      const auto [known, is_first] = counts.try_emplace(delimiter, count);
      if (!is_first && known->second != count) known->second = 0;
    }
    single_blanks = single_blanks && !line.starts_with(' ') && line.find("  ") == std::string_view::npos;
    for (std::size_t at = 0; at < line.size();) {
      const std::size_t begin = line.find_first_not_of(" ,;\t\r", at);
      if (begin == std::string_view::npos) break;
      at = std::min(line.size(), line.find_first_of(" ,;\t\r", begin));
      ++fields;
      if (parse_real(line.substr(begin, at - begin))) ++numbers;
    }
  }
  constexpr std::int64_t kLeast = 3;
  if (seen < kLeast) return std::nullopt;
  if (counts['\t'] > 0) return '\t';
  if (numbers * 2 < fields || fields <= seen) return std::nullopt;
  for (const char delimiter : {',', ';'})
    if (counts[delimiter] > 0) return delimiter;
  return single_blanks && counts[' '] > 0 ? ' ' : kCsvBlanks;
}

void for_each_table_row(const std::string& path, const TableContents& table,
                        FunctionRef<void(std::span<const std::string_view>)> use) {
  const Params options = reader_options({path, table.skip_lines, table.delimiter}, table.header);
  CsvFile file(path, csv_format(options));
  CsvRow row;
  CsvFields fields;
  while (file.next_row(row)) {
    file.split(row, fields);
    if (fields.size() == table.columns.size()) use(fields.all());
  }
}

TableContents table_contents(const DataQuestion& question) {
  const std::string& path = question.place;
  TableForm form{.path = path, .skip_lines = leading_lines(path)};
  form.delimiter = delimiter_of(path, form.skip_lines);
  constexpr std::int64_t kAll = std::int64_t{1} << 62;
  std::vector<std::string> assumed;
  const bool header = header_of(question, form, assumed).header;
  TableContents table = read_columns(form, header, kAll);
  table.assumed = std::move(assumed);
  if (table.rows < (table.header ? 2 : 3))
    throw Error(ErrorKind::data, "a table of fewer than 3 lines", path,
                "Give a file of samples, one per line.");
  return table;
}

}  // namespace lockstep
