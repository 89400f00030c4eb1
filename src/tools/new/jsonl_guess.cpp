// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which fields of JSON lines are features and labels. A text is read as its bytes, for which no vocabulary is
// needed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>

#include "core/error.h"
#include "core/name_list.h"
#include "io/input_file.h"
#include "io/json.h"
#include "tools/new/data_guess.h"
#include "tools/new/table_contents.h"
#include "tools/new/usual_names.h"

namespace lockstep {

namespace {

constexpr std::size_t kMostClasses = 1000;

[[noreturn]] void fail(const std::string& path, std::int64_t line, const std::string& what,
                       const std::string& advice) {
  throw Error(ErrorKind::data, what, fmt::format("{}, line {}", path, line), advice);
}

std::vector<std::string> fields_of(const Json& record) {
  std::vector<std::string> names;
  for (const auto& [name, value] : record.items()) names.push_back(name);
  return names;
}

bool is_numbers(const Json& value) {
  if (!value.is_array()) return value.is_number();
  for (std::size_t i = 0; i < value.size(); ++i)
    if (!is_numbers(value[i])) return false;
  return value.size() > 0;
}

/// Names of the fields, by the first record.
struct Choice {
  std::vector<std::string> features;  ///< several: their numbers are joined
  std::string labels;
};

Choice choice_of(const Json& record, const DataQuestion& question) {
  Choice choice{.features = {}, .labels = question.labels};
  if (!question.features.empty()) choice.features = {question.features};
  std::optional<std::size_t> best, best_feature;
  for (const auto& [name, value] : record.items()) {
    const auto rank = label_rank(name, false);
    if (question.labels.empty() && rank && (!best || *rank < *best)) choice.labels = name, best = rank;
  }
  if (!choice.features.empty()) return choice;
  for (const auto& [name, value] : record.items()) {
    const auto rank = feature_rank(name, false);
    const bool names_text = name == "text" || name == "sentence" || name == "content" || name == "review";
    if (name == choice.labels || !rank || !(is_numbers(value) || (value.is_string() && names_text))) continue;
    if (!best_feature || *rank < *best_feature) choice.features = {name}, best_feature = rank;
  }
  if (!choice.features.empty()) return choice;
  for (const auto& [name, value] : record.items())
    if (name != choice.labels && is_numbers(value) && !names_rows(name) && !names_axis(name))
      choice.features.push_back(name);
  return choice;
}

/// What all records hold in the two fields.
struct Fields {
  std::size_t longest_text = 0;   ///< in bytes; 0: features are numbers
  std::set<std::string> classes;  ///< texts that are labels
};

void add_record(const Json& record, const Choice& choice, Fields& seen, const std::string& place,
                std::int64_t line) {
  std::vector<std::string> fields = choice.features;
  fields.push_back(choice.labels);
  for (const std::string& field : fields)
    if (!record.contains(field))
      fail(place, line, fmt::format("has no field '{}'", field),
           fmt::format("Name others with --features and --labels. Fields: {}", name_list(fields_of(record))));
  if (const Json& text = record[choice.features[0]]; text.is_string())
    seen.longest_text = std::max(seen.longest_text, text.string().size());
  if (const Json& label = record[choice.labels]; label.is_string())
    seen.classes.insert(label.get<std::string>());
  if (seen.classes.size() > kMostClasses)
    fail(place, line,
         fmt::format("field '{}' has more than {} different texts: these are no classes", choice.labels,
                     kMostClasses),
         "Name another field with --labels.");
}

}  // namespace

namespace {

/// As YAML.
std::string list_of(std::vector<std::string> names) {
  for (std::string& name : names) name = yaml_quoted(name);
  return names.size() == 1 ? names[0] : fmt::format("[{}]", fmt::join(names, ", "));
}

}  // namespace

DataGuess guess_jsonl(const DataQuestion& question) {
  InputFile file(question.place);
  LineReader lines(file);
  Choice choice;
  Fields seen;
  for (std::string_view line; lines.next(line);) {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const Json record = Json::parse_or_null(line);
    if (!record.is_object())
      fail(question.place, lines.line_number(), "is no JSON object",
           "Each line is an object: {\"x\": 1, \"label\": 0}.");
    if (choice.features.empty()) {
      choice = choice_of(record, question);
      if (choice.features.empty() || choice.labels.empty())
        throw Error(ErrorKind::data, "JSON lines: the names of features and labels are not known",
                    question.place,
                    fmt::format("Give them: --features NAME --labels NAME. Fields: {}",
                                name_list(fields_of(record))));
    }
    add_record(record, choice, seen, question.place, lines.line_number());
  }
  if (choice.features.empty())
    throw Error(ErrorKind::data, "holds no records", question.place, "Give a file with an object per line.");
  DataGuess guess{"jsonl",
                  fmt::format("JSON lines: {} and {}", name_list(choice.features), choice.labels),
                  {{"path", yaml_quoted(question.path)},
                   {"features", list_of(choice.features)},
                   {"labels", yaml_quoted(choice.labels)}}};
  guess.predicts = choice.labels;
  if (choice.features.size() > 1)
    guess.assumed.push_back(fmt::format(
        "the input is all fields with numbers: {}; otherwise: --features NAME", name_list(choice.features)));
  if (!seen.classes.empty()) {
    std::vector<std::string> names;
    for (const std::string& name : seen.classes) names.push_back(yaml_quoted(name));
    guess.common.push_back({"classes", fmt::format("[{}]", fmt::join(names, ", "))});
  }
  if (seen.longest_text == 0) return guess;
  constexpr std::size_t kMostBytes = 1000;
  guess.common.push_back(
      {"pad_to", std::to_string(std::min(seen.longest_text, kMostBytes)), "bytes of a text that are read"});
  guess.common.push_back({"truncate", "back", "a longer text loses its end"});
  guess.is_text = guess.is_bytes = true;
  return guess;
}

}  // namespace lockstep
