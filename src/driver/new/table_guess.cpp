// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a table holds, by its first lines: names of columns, numbers, categories, texts, labels.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"
#include "core/scalar.h"
#include "driver/new/data_guess.h"
#include "io/input_file.h"

namespace lockstep {

namespace {

constexpr std::size_t kMostLines = 500, kMostCategories = 50, kMostClasses = 100;

using Row = std::vector<std::string>;

/// The fields of a line; quotes (RFC 4180) enclose separators.
Row fields_of(std::string_view line, char separator) {
  Row fields(1);
  bool in_quotes = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && separator != '\t')
      in_quotes = !in_quotes;
    else if (line[i] == separator && !in_quotes)
      fields.emplace_back();
    else
      fields.back() += line[i];
  }
  return fields;
}

struct Column {
  std::string name;  ///< empty without a header
  std::size_t numbers = 0, whole = 0, empty = 0, words = 0;
  std::set<std::string> values;
  double least = 0, most = 0;

  std::size_t texts(std::size_t rows) const { return rows - numbers - empty; }
};

Column column_of(const std::vector<Row>& rows, std::size_t index) {
  Column column;
  for (const Row& row : rows) {
    const std::string& field = row[index];
    const auto number = parse_real(field);
    if (field.empty() || field == "NA" || field == "?") {
      ++column.empty;
    } else if (number) {
      column.least = column.numbers == 0 ? *number : std::min(column.least, *number);
      column.most = column.numbers == 0 ? *number : std::max(column.most, *number);
      ++column.numbers;
      if (*number == std::floor(*number)) ++column.whole;
    }
    column.words += static_cast<std::size_t>(std::ranges::count(field, ' ')) + 1;
    if (column.values.size() <= kMostLines) column.values.insert(field);
  }
  return column;
}

std::vector<Row> first_rows(const std::string& path, char separator) {
  InputFile file(path);
  LineReader lines(file);
  std::vector<Row> rows;
  for (std::string_view line; rows.size() < kMostLines && lines.next(line);) {
    if (line.empty()) continue;
    rows.push_back(fields_of(line, separator));
    if (rows.back().size() != rows.front().size())
      throw Error(
          ErrorKind::data,
          fmt::format("{} columns, but the first line has {}", rows.back().size(), rows.front().size()),
          fmt::format("{}, line {}", path, lines.line_number()),
          "A table has as many columns in each line. docs/data.md describes the reader csv.");
  }
  if (rows.size() < 3)
    throw Error(ErrorKind::data, "a table of fewer than 3 lines", path,
                "Give a file of samples, one per line.");
  return rows;
}

/// The first line names the columns: a text stands above numbers.
bool has_header(const std::vector<Row>& rows) {
  const std::vector<Row> below(rows.begin() + 1, rows.end());
  for (std::size_t i = 0; i < rows[0].size(); ++i)
    if (!rows[0][i].empty() && !parse_real(rows[0][i]) && column_of(below, i).numbers * 2 > below.size())
      return true;
  return false;
}

std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

struct Table {
  std::vector<Row> rows;
  std::vector<Column> columns;
  bool header = false;

  /// As the reader names a column.
  std::string name(std::size_t index) const {
    return header ? fmt::format("\"{}\"", columns[index].name) : std::to_string(index);
  }
};

std::size_t label_of(const Table& table, const DataQuestion& question) {
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    if (!question.labels.empty() &&
        (table.columns[i].name == question.labels || std::to_string(i) == question.labels))
      return i;
  if (!question.labels.empty()) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < table.columns.size(); ++i)
      names.push_back(table.header ? table.columns[i].name : std::to_string(i));
    throw Error(ErrorKind::data, fmt::format("has no column '{}'", question.labels), question.place,
                fmt::format("Columns: {}", fmt::join(names, ", ")));
  }
  for (const char* const usual : {"label", "labels", "class", "target", "y", "species"})
    for (std::size_t i = 0; i < table.columns.size(); ++i)
      if (lower_case(table.columns[i].name) == usual) return i;
  return table.columns.size() - 1;
}

bool is_split(const Column& column) {
  return column.values.size() <= 3 && std::ranges::all_of(column.values, [](const std::string& value) {
           return value == "train" || value == "test" || value == "valid" || value == "dev" ||
                  value == "eval";
         });
}

/// Lines with a column of prose: a text for each label.
DataGuess guess_texts(const DataQuestion& question, const Table& table, std::size_t text) {
  DataGuess guess{"text_tsv",
                  fmt::format("a table with texts in column {}", table.name(text)),
                  {{"path", "\"" + question.path + "\""}}};
  if (table.header) guess.common.push_back({"header", "true"});
  guess.is_text = true;
  std::size_t label = table.columns.size(), split = table.columns.size();
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (i == text) continue;
    if (is_split(table.columns[i]))
      split = i;
    else if (label == table.columns.size())
      label = i;
  }
  if (!question.labels.empty()) label = label_of(table, question);
  if (label == table.columns.size())
    throw Error(ErrorKind::data, "no column holds labels", question.place, "Name one with --labels.");
  guess.common.push_back({"text_column", table.name(text)});
  guess.common.push_back({"label_column", table.name(label)});
  guess.has_many_labels = std::ranges::any_of(table.columns[label].values, [](const std::string& value) {
    return value.find(',') != std::string::npos;
  });
  if (guess.has_many_labels)
    guess.common.push_back({"labels", "multi_label", "a text may have several, separated by commas"});
  guess.common.push_back({"lower_case", "true"});
  guess.common.push_back({"max_vocabulary", "10000", "rarer words become unknown"});
  guess.common.push_back({"max_length", "100", "words of a text that are read"});
  // The files are sorted by set as a rule: the first lines show one of them.
  if (split != table.columns.size()) {
    guess.common.push_back({"split_column", table.name(split)});
    guess.common.push_back({"vocabulary_split", "train"});
    guess.train = {{"split", "train"}};
    guess.eval = {{"split", "test"}};
    guess.has_eval = true;
  }
  return guess;
}

/// Height and width, if so many values may be the pixels of a square picture.
std::size_t side_of_picture(const Table& table, std::size_t label) {
  const auto features = table.columns.size() - 1;
  const auto side = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(features))));
  if (side < 8 || side * side != features) return 0;
  double most = 0;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (i == label) continue;
    if (table.columns[i].whole != table.rows.size() || table.columns[i].least < 0) return 0;
    most = std::max(most, table.columns[i].most);
  }
  return most <= 255 ? side : 0;
}

}  // namespace

DataGuess guess_table(const DataQuestion& question, char separator) {
  Table table;
  table.rows = first_rows(question.place, separator);
  if (separator == ',' && table.rows[0].size() == 1) {
    table.rows = first_rows(question.place, ';');
    if (table.rows[0].size() > 1) separator = ';';
  }
  table.header = has_header(table.rows);
  Row names;
  if (table.header) {
    names = table.rows.front();
    table.rows.erase(table.rows.begin());
  }
  for (std::size_t i = 0; i < table.rows[0].size(); ++i) {
    table.columns.push_back(column_of(table.rows, i));
    if (table.header) table.columns.back().name = names[i];
  }
  const std::size_t rows = table.rows.size();
  if (separator == '\t')
    for (std::size_t i = 0; i < table.columns.size(); ++i)
      if (table.columns[i].texts(rows) * 2 > rows && table.columns[i].words > 5 * rows)
        return guess_texts(question, table, i);

  const std::size_t label = label_of(table, question);
  const Column& labels = table.columns[label];
  DataGuess guess{
      "csv",
      fmt::format("a table of {} columns, {} names", table.columns.size(), table.header ? "with" : "without"),
      {{"path", "\"" + question.path + "\""}}};
  if (table.header) guess.common.push_back({"header", "true"});
  if (separator == ';') guess.common.push_back({"delimiter", "\";\""});
  const bool texts = labels.texts(rows) > 0;
  guess.is_measured = !texts && (question.numbers || labels.whole + labels.empty < rows || labels.least < 0 ||
                                 labels.values.size() > kMostClasses);
  if (guess.is_measured || texts)
    guess.common.push_back({"labels", fmt::format("[{}]", table.name(label)), "what to predict"});
  else
    guess.common.push_back({"label_column", std::to_string(label), "the class, a whole number from 0"});
  if (texts)
    guess.common.push_back(
        {"classes", "auto", "labels are names: the classes are those of the training set"});
  std::vector<std::string> categories, ignored;
  bool missing = false;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (i == label) continue;
    const Column& column = table.columns[i];
    missing = missing || column.empty > 0;
    if (column.texts(rows) == 0) continue;
    if (column.values.size() <= kMostCategories && column.values.size() * 2 <= rows)
      categories.push_back(fmt::format("{}: auto", table.name(i)));
    else
      ignored.push_back(table.name(i));
  }
  if (!categories.empty())
    guess.common.push_back(
        {"categories", fmt::format("{{{}}}", fmt::join(categories, ", ")), "0 or 1 for each value"});
  if (!ignored.empty())
    guess.common.push_back(
        {"ignore", fmt::format("[{}]", fmt::join(ignored, ", ")), "texts of too many values"});
  if (missing) guess.common.push_back({"missing", "0", "in place of a missing number"});
  if (const std::size_t side = side_of_picture(table, label); side > 0 && !table.header)
    guess.common.push_back(
        {"shape", fmt::format("[{0}, {0}, 1]", side), "the numbers are taken as the pixels of a picture"});
  return guess;
}

}  // namespace lockstep
