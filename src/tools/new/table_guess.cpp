// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which reader reads a table, and with which options, by what its columns hold.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/name_list.h"
#include "data/table_info.h"
#include "tools/new/data_guess.h"
#include "tools/new/table_contents.h"

namespace lockstep {

namespace {

constexpr std::size_t kMostCategories = 50, kMostClasses = 100;

std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

std::string title_of(const TableContents& table, std::size_t index) {
  return column_text(static_cast<std::int64_t>(index), table.header ? table.columns[index].name : "");
}

std::size_t label_of(const TableContents& table, const DataQuestion& question) {
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    if (!question.labels.empty() &&
        (table.columns[i].name == question.labels || std::to_string(i) == question.labels))
      return i;
  if (!question.labels.empty()) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < table.columns.size(); ++i)
      names.push_back(table.header ? table.columns[i].name : std::to_string(i));
    throw Error(ErrorKind::data, fmt::format("has no column '{}'", question.labels), question.place,
                fmt::format("Columns: {}", name_list(names)));
  }
  for (const char* const usual : {"label", "labels", "class", "target", "y", "species"})
    for (std::size_t i = 0; i < table.columns.size(); ++i)
      if (lower_case(table.columns[i].name) == usual) return i;
  return table.columns.size() - 1;
}

bool is_split(const ColumnContents& column) {
  return column.values.size() <= 3 && std::ranges::all_of(column.values, [](const std::string& value) {
           return value == "train" || value == "test" || value == "valid" || value == "dev" ||
                  value == "eval";
         });
}

/// Lines with a column of prose: a text for each label.
DataGuess guess_texts(const DataQuestion& question, const TableContents& table, std::size_t text) {
  DataGuess guess{"text_tsv",
                  fmt::format("a table with texts in column {}", table.name(text)),
                  {{"path", quoted_yaml(question.path)}}};
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

/// Height and width, if the values of a row may be the pixels of a square picture; otherwise 0.
std::size_t side_of_picture(const TableContents& table, std::size_t label) {
  const auto features = table.columns.size() - 1;
  const auto side = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(features))));
  if (table.header || side < 8 || side * side != features) return 0;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const ColumnContents& column = table.columns[i];
    if (i != label && (column.whole != table.rows || column.least < 0 || column.most > 255)) return 0;
  }
  return side;
}

bool is_measured(const TableContents& table, const ColumnContents& labels, const DataQuestion& question) {
  if (labels.texts > 0 || question.classes) return false;
  const auto values = static_cast<std::int64_t>(labels.values.size());
  constexpr std::int64_t kFew = 20, kRepeated = 5;
  const bool is_repeated = values <= kFew || values * kRepeated <= table.rows;
  return question.numbers || labels.whole < labels.numbers || labels.values.size() > kMostClasses ||
         !is_repeated || (labels.least < 0 && values > 2);
}

/// The option that says what is predicted, and how.
void add_label(DataGuess& guess, const TableContents& table, std::size_t label,
               const DataQuestion& question) {
  const ColumnContents& labels = table.columns[label];
  if (labels.missing > 0)
    throw Error(
        ErrorKind::data,
        fmt::format("{} has no value in {} of {} rows", title_of(table, label), labels.missing, table.rows),
        question.place,
        "Labels have no replacement: remove these rows, or name another column with --labels.");
  guess.predicts = table.header ? labels.name : title_of(table, label);
  guess.is_measured = is_measured(table, labels, question);
  const bool counts_from_0 = labels.texts == 0 && labels.least == 0 && labels.whole == table.rows &&
                             static_cast<double>(labels.values.size()) == labels.most + 1;
  if (!guess.is_measured && counts_from_0) {
    guess.common.push_back({"label_column", std::to_string(label), "the class, a whole number from 0"});
    return;
  }
  guess.common.push_back({"labels", fmt::format("[{}]", table.name(label)), "what to predict"});
  if (guess.is_measured) return;
  guess.common.push_back({"classes", "auto",
                          labels.texts > 0 ? "labels are names: the classes are those of the training set"
                                           : "the classes are the numbers that the training set has"});
}

/// A column that tells nothing about the label; why, or empty.
std::string useless(const TableContents& table, std::size_t index) {
  const ColumnContents& column = table.columns[index];
  if (column.missing == table.rows) return "no values";
  if (column.texts > 0) return column.values.size() == 1 ? "one text in all rows" : "";
  const std::string name = lower_case(column.name);
  const bool is_number_of_row = name.empty() || name == "id" || name == "index" || name == "unnamed: 0" ||
                                name == "row" || name == "nr" || name == "no" || name.ends_with("_id") ||
                                column.name.ends_with("Id") || column.name.ends_with("ID");
  constexpr std::int64_t kCertain = 20;
  const bool may_count = table.header ? is_number_of_row : index == 0;
  return column.counts_rows && may_count && table.rows >= kCertain ? "numbers the rows" : "";
}

/// Texts in a column of numbers: probably mistakes, which must not cost the column.
void check_numbers(const TableContents& table, std::size_t index, const std::string& place) {
  constexpr double kMostTexts = 0.05;
  const ColumnContents& column = table.columns[index];
  const std::string title = title_of(table, index);
  if (column.has_decimal_commas && column.texts > 0)
    throw Error(ErrorKind::data, fmt::format("{}: '{}' has a decimal comma", title, column.first_text),
                fmt::format("{}, line {}", place, column.first_text_line),
                table.delimiter == ','
                    ? "Write numbers with a decimal point."
                    : "Write numbers with a decimal point, for example: sed 's/,/./g' FILE > NEW_FILE");
  const auto filled = static_cast<double>(column.numbers + column.texts);
  if (static_cast<double>(column.texts) > kMostTexts * filled) return;
  throw Error(ErrorKind::data,
              fmt::format("{}: '{}' is no number, but {} other rows have numbers", title,
                          column.first_text.substr(0, 60), column.numbers),
              fmt::format("{}, line {}", place, column.first_text_line),
              "Correct it; NA or nothing stands for a missing value.");
}

/// The options of features: texts, what is left out, missing values.
void add_features(DataGuess& guess, const TableContents& table, std::size_t label, const std::string& place) {
  std::vector<std::string> categories, ignored, fills;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (i == label) continue;
    const ColumnContents& column = table.columns[i];
    std::string why = useless(table, i);
    const bool few = column.values.size() <= kMostCategories &&
                     static_cast<std::int64_t>(column.values.size()) * 2 <= table.rows;
    if (why.empty() && column.texts > 0 && !few) {
      check_numbers(table, i, place);
      why = "texts of too many values";
    }
    if (!why.empty()) {
      ignored.push_back(table.name(i));
      guess.notes.push_back(fmt::format("left out: {}: {}", title_of(table, i), why));
      continue;
    }
    if (column.texts > 0) categories.push_back(fmt::format("{}: auto", table.name(i)));
    if (column.missing > 0)
      fills.push_back(column.texts > 0 ? fmt::format("{}: missing", table.name(i))
                                       : fmt::format("{}: {:.4g}", table.name(i), column.mean()));
  }
  if (ignored.size() + 1 == table.columns.size())
    throw Error(ErrorKind::data, "no column has numbers or categories to predict from", place,
                "Texts are read from a .tsv file with two columns, text and label, separated by a tab.");
  if (!categories.empty())
    guess.common.push_back(
        {"categories", fmt::format("{{{}}}", fmt::join(categories, ", ")), "0 or 1 for each value"});
  if (!ignored.empty())
    guess.common.push_back(
        {"ignore", fmt::format("[{}]", fmt::join(ignored, ", ")), "they tell nothing, or are free texts"});
  if (!fills.empty())
    guess.common.push_back({"missing", fmt::format("{{{}}}", fmt::join(fills, ", ")),
                            "in place of missing values: the mean, or a category of its own"});
}

}  // namespace

DataGuess guess_table(const DataQuestion& question) {
  const TableContents table = table_contents(question.place);
  if (table.delimiter == '\t')
    for (std::size_t i = 0; i < table.columns.size(); ++i)
      if (table.columns[i].texts * 2 > table.rows && table.columns[i].words > 5 * table.rows)
        return guess_texts(question, table, i);

  const std::size_t label = label_of(table, question);
  DataGuess guess{
      "csv",
      fmt::format("a table of {} columns, {} names", table.columns.size(), table.header ? "with" : "without"),
      {{"path", quoted_yaml(question.path)}}};
  if (table.header) guess.common.push_back({"header", "true"});
  if (table.delimiter == ';') guess.common.push_back({"delimiter", "\";\""});
  if (table.delimiter == '\t' && lower_case(question.place).find(".csv") != std::string::npos)
    guess.common.push_back({"delimiter", "\"\\t\""});
  add_label(guess, table, label, question);
  add_features(guess, table, label, question.place);
  if (const std::size_t side = side_of_picture(table, label); side > 0)
    guess.common.push_back(
        {"shape", fmt::format("[{0}, {0}, 1]", side), "the numbers are taken as the pixels of a picture"});
  return guess;
}

}  // namespace lockstep
