// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which fields of JSON lines are features and labels. A text is read as its bytes, for which no vocabulary is
// needed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/name_list.h"
#include "io/input_file.h"
#include "io/json.h"
#include "tools/new/data_guess.h"
#include "tools/new/table_contents.h"

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

/// The field that was named, or the first with a usual name; empty: none.
std::string field_of(const std::vector<std::string>& fields, const std::string& named,
                     std::initializer_list<const char*> usual) {
  if (!named.empty()) return named;
  for (const char* const name : usual)
    if (std::ranges::find(fields, name) != fields.end()) return name;
  return "";
}

/// What all records hold in the two fields.
struct Fields {
  std::size_t longest_text = 0;   ///< in bytes; 0: features are numbers
  std::set<std::string> classes;  ///< texts that are labels
};

void add_record(const Json& record, const std::string& features, const std::string& labels, Fields& seen,
                const std::string& place, std::int64_t line) {
  for (const std::string& field : {features, labels})
    if (!record.contains(field))
      fail(place, line, fmt::format("has no field '{}'", field),
           fmt::format("Name others with --features and --labels. Fields: {}", name_list(fields_of(record))));
  if (const Json& text = record[features]; text.is_string())
    seen.longest_text = std::max(seen.longest_text, text.string().size());
  if (const Json& label = record[labels]; label.is_string()) seen.classes.insert(label.get<std::string>());
  if (seen.classes.size() > kMostClasses)
    fail(place, line,
         fmt::format("field '{}' has more than {} different texts: these are no classes", labels,
                     kMostClasses),
         "Name another field with --labels.");
}

}  // namespace

DataGuess guess_jsonl(const DataQuestion& question) {
  InputFile file(question.place);
  LineReader lines(file);
  std::string features, labels;
  Fields seen;
  for (std::string_view line; lines.next(line);) {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const Json record = Json::parse_or_null(line);
    if (!record.is_object())
      fail(question.place, lines.line_number(), "is no JSON object",
           "Each line is an object: {\"x\": 1, \"label\": 0}.");
    if (features.empty()) {
      const std::vector<std::string> fields = fields_of(record);
      features =
          field_of(fields, question.features, {"text", "sentence", "content", "review", "features", "x"});
      labels = field_of(fields, question.labels,
                        {"label", "labels", "class", "target", "y", "category", "sentiment"});
      if (features.empty() || labels.empty())
        throw Error(ErrorKind::data, "JSON lines: the names of features and labels are not known",
                    question.place,
                    fmt::format("Give them: --features NAME --labels NAME. Fields: {}", name_list(fields)));
    }
    add_record(record, features, labels, seen, question.place, lines.line_number());
  }
  if (features.empty())
    throw Error(ErrorKind::data, "holds no records", question.place, "Give a file with an object per line.");
  DataGuess guess{"jsonl",
                  fmt::format("JSON lines: {} and {}", features, labels),
                  {{"path", quoted_yaml(question.path)},
                   {"features", quoted_yaml(features)},
                   {"labels", quoted_yaml(labels)}}};
  guess.predicts = labels;
  if (!seen.classes.empty()) {
    std::vector<std::string> names;
    for (const std::string& name : seen.classes) names.push_back(quoted_yaml(name));
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
