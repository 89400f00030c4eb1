// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which reader reads a table, and with which options, by what its columns hold.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/message_lines.h"
#include "core/name_list.h"
#include "core/shell_word.h"
#include "data/readers/csv_look.h"
#include "data/table_info.h"
#include "tools/new/data_guess.h"
#include "tools/new/label_form.h"
#include "tools/new/separate_labels.h"
#include "tools/new/table_contents.h"
#include "tools/new/table_label.h"
#include "tools/new/usual_names.h"

namespace lockstep {

namespace {

constexpr std::size_t kMostCategories = 50, kMostClasses = 100;

/// The values of a split column that mean the training and the evaluation set.
struct SplitValues {
  std::string train, eval, unused;
};
SplitValues split_values(const ColumnContents& column) {
  SplitValues values;
  for (const SetKind wanted : {SetKind::train, SetKind::validation, SetKind::test})
    for (const std::string& value : column.values)
      if (set_of(value)->set == wanted)
        (wanted == SetKind::train ? values.train : values.eval.empty() ? values.eval : values.unused) = value;
  return values;
}

std::string note_of(const SplitValues& values) {
  return fmt::format("lines of '{}' are not used: evaluations are of '{}'", values.unused, values.eval);
}

/// Next to prose: one with a usual name, or that of the fewest values.
std::size_t label_of_texts(const TableContents& table, std::size_t text, std::size_t split,
                           std::vector<std::string>& assumed) {
  const std::size_t none = table.columns.size();
  std::size_t best = none, candidates = 0;
  for (std::size_t i = 0; i < none; ++i) {
    if (i == text || i == split) continue;
    const ColumnContents& column = table.columns[i];
    if (label_rank(column.name, false)) return i;
    if (column.counts_rows || names_rows(column.name)) continue;
    ++candidates;
    if (best == none || column.values.size() < table.columns[best].values.size()) best = i;
  }
  if (candidates > 1)
    assumed.push_back(fmt::format("the label is {}, which has the fewest values; otherwise: --labels {}",
                                  column_title(table, best), table.header ? "NAME" : "NUMBER"));
  return best;
}

/// Lines with a column of prose: a text for each label.
DataGuess guess_texts(const DataQuestion& question, const TableContents& table, std::size_t text) {
  DataGuess guess{"text_tsv",
                  fmt::format("a table with texts in column {}", table.name(text)),
                  {{"path", yaml_quoted(question.path)}}};
  if (table.header) guess.common.push_back({"header", "true"});
  guess.is_text = guess.knows_labels = true;
  guess.assumed = table.assumed;
  std::size_t split = table.columns.size();
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    if (i != text && is_split(table.columns[i])) split = i;
  const std::size_t label = question.labels.empty()
                                ? label_of_texts(table, text, split, guess.assumed)
                                : label_of(table, question, guess.assumed).columns.front();
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
    const SplitValues values = split_values(table.columns[split]);
    guess.common.push_back({"vocabulary_split", quoted_name(values.train)});
    guess.train = {{"split", quoted_name(values.train)}};
    guess.eval = {{"split", quoted_name(values.eval)}};
    guess.has_eval = true;
    if (!values.unused.empty()) guess.notes.push_back(note_of(values));
  }
  return guess;
}

/// Height and width, if the values of a row may be the pixels of a square picture; otherwise 0.
std::size_t side_of_picture(const TableContents& table, const TableLabel& label) {
  const auto features = table.columns.size() - label.columns.size();
  const auto side = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(features))));
  if (table.header || side < 8 || side * side != features) return 0;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const ColumnContents& column = table.columns[i];
    if (!label.has(i) && (column.whole != table.rows || column.least < 0 || column.most > 255)) return 0;
  }
  return side;
}

/// Numbers to predict, or classes that are numbers. What may be wrong is said.
bool is_measured(const TableContents& table, const ColumnContents& labels, const DataQuestion& question,
                 std::vector<std::string>& assumed) {
  if (labels.texts > 0 || question.classes) return false;
  if (question.numbers || labels.whole < labels.numbers) return true;
  const auto values = static_cast<std::int64_t>(labels.values.size());
  constexpr std::int64_t kMostSmall = 20;
  const std::size_t most_classes = names_classes(labels.name) ? kMostColumnValues : kMostClasses;
  const bool measured =
      labels.values.size() > most_classes ||
      (values > kMostSmall ? !repeats_as_classes(values, table.rows) : values * 2 > table.rows) ||
      (labels.least < 0 && values > 2);
  const bool counted =
      labels.least == 0 && labels.most == static_cast<double>(values - 1) && values <= kMostSmall;
  const bool plain = values == 2 || (!measured && (names_classes(labels.name) || counted));
  if (measured && values <= static_cast<std::int64_t>(kMostColumnValues))
    assumed.push_back(fmt::format(
        "the label is a number to predict, of {} different values; otherwise: --task classes", values));
  else if (!plain)
    assumed.push_back(fmt::format(
        "the {} different values of the label, {:g} to {:g}, are classes; otherwise: --task numbers", values,
        labels.least, labels.most));
  return measured;
}

/// The option that says what is predicted, and how.
void add_label(DataGuess& guess, const TableContents& table, const TableLabel& columns,
               const DataQuestion& question) {
  if (columns.columns.size() > 1) {
    std::vector<std::string> names;
    for (const std::size_t column : columns.columns) names.push_back(table.name(column));
    guess.predicts = columns.name;
    guess.common.push_back({"labels", fmt::format("[{}]", fmt::join(names, ", ")),
                            "what to predict: a column for each class or label, with 0 or 1"});
    return;
  }
  const std::size_t label = columns.columns.front();
  const ColumnContents& labels = table.columns[label];
  if (labels.missing > 0)
    throw Error(ErrorKind::data,
                fmt::format("{} has no value in {} of {} rows", column_title(table, label), labels.missing,
                            table.rows),
                question.place,
                "Labels have no replacement: remove these rows, or name another column with --labels.");
  guess.predicts = table.header ? labels.name : column_title(table, label);
  guess.knows_labels = true;
  guess.is_measured = is_measured(table, labels, question, guess.assumed);
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

/// Texts in a column of numbers: probably mistakes, which must not cost the column.
void check_numbers(const TableContents& table, std::size_t index, const std::string& place) {
  constexpr double kMostTexts = 0.05;
  const ColumnContents& column = table.columns[index];
  const std::string title = column_title(table, index);
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

/// A column of csv chooses no rows: sets that lie one after the other are rows of the file.
void add_split(DataGuess& guess, const TableContents& table, const ColumnContents& column) {
  const SplitValues values = split_values(column);
  if (column.runs.size() != column.values.size() || values.train.empty() || values.eval.empty()) {
    guess.assumed.push_back(
        "a part of all rows is held out, not those that a column says: its sets are mixed; otherwise write "
        "each set "
        "to a file, train.csv and test.csv");
    return;
  }
  const auto rows = [&](const std::string& value) {
    const auto run = std::ranges::find_if(column.runs, [&](const auto& r) { return r.first == value; });
    const std::int64_t last = run + 1 == column.runs.end() ? table.rows : (run + 1)->second;
    return std::vector<Setting>{{"rows", fmt::format("[{}, {}]", run->second, last)}};
  };
  guess.train = rows(values.train);
  guess.eval = rows(values.eval);
  guess.has_eval = true;
  if (!values.unused.empty()) guess.notes.push_back(note_of(values));
}

/// The options of features: texts, what is left out, missing values.
void add_features(DataGuess& guess, const TableContents& table, const TableLabel& label,
                  const std::string& place) {
  std::vector<std::string> categories, ignored, fills;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (label.has(i)) continue;
    const ColumnContents& column = table.columns[i];
    std::string why = useless(table, i);
    if (std::ranges::find(label.known_from, i) != label.known_from.end())
      why = "gives the label away: it is 1 for one value of the same category";
    const bool few = column.values.size() <= kMostCategories &&
                     static_cast<std::int64_t>(column.values.size()) * 2 <= table.rows;
    if (why.empty() && column.texts > 0 && !few) {
      check_numbers(table, i, place);
      why = "texts of too many values";
    }
    if (is_split(column)) {
      add_split(guess, table, column);
      why = "says for which set a row is";
    }
    if (!why.empty()) {
      ignored.push_back(table.name(i));
      guess.notes.push_back(fmt::format("left out: {}: {}", column_title(table, i), why));
      continue;
    }
    if (column.texts > 0) categories.push_back(fmt::format("{}: auto", table.name(i)));
    if (column.missing > 0)
      fills.push_back(column.texts > 0 ? fmt::format("{}: missing", table.name(i))
                                       : fmt::format("{}: {:.4g}", table.name(i), column.mean()));
  }
  if (ignored.size() + label.columns.size() == table.columns.size())
    throw error_of_lines(
        ErrorKind::data, "no column has numbers or categories to predict from", place,
        fmt::format("Texts are read from lines with tabs. Run: python3 -c \"import csv; open('{0}.tsv', "
                    "'w').writelines('\\t'.join(' '.join(c.split()) for c in r) + '\\n' for r in "
                    "csv.reader(open('{0}')))\"\n  Then: lockstep new {1}",
                    name_in_quotes(place), shell_word(name_in_quotes(place) + ".tsv")));
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
  const TableContents table = table_contents(question);
  if (table.delimiter == '\t')
    for (std::size_t i = 0; i < table.columns.size(); ++i)
      if (table.columns[i].texts * 2 > table.rows && table.columns[i].words > 5 * table.rows)
        return guess_texts(question, table, i);
  check_separate_labels(question, table);

  DataGuess guess{
      "csv",
      fmt::format("a table of {} columns, {} names", table.columns.size(), table.header ? "with" : "without"),
      {{"path", yaml_quoted(question.path)}}};
  if (table.header) guess.common.push_back({"header", "true"});
  const std::string ending = ending_of(question.place);
  if (table.skip_lines > 0)
    guess.common.push_back({"skip_lines", std::to_string(table.skip_lines), "before the table"});
  if (table.delimiter != (ending == ".tsv" || ending == ".tab" ? '\t' : ',')) {
    const std::string text = delimiter_text(table.delimiter);
    guess.common.push_back({"delimiter", text.substr(text.find(' ') + 1)});
  }
  if (table.decimal != '.') guess.common.push_back({"decimal", fmt::format("\"{}\"", table.decimal)});
  guess.assumed = table.assumed;
  const TableLabel label = label_of(table, question, guess.assumed);
  add_label(guess, table, label, question);
  add_features(guess, table, label, question.place);
  if (const std::size_t side = side_of_picture(table, label); side > 0)
    guess.common.push_back(
        {"shape", fmt::format("[{0}, {0}, 1]", side), "the numbers are taken as the pixels of a picture"});
  return guess;
}

}  // namespace lockstep
