// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/new/usual_names.h"

#include <algorithm>
#include <array>

namespace lockstep {

namespace {

constexpr std::array<std::string_view, 12> kLabels{"label",    "labels",    "class",   "classes",
                                                   "target",   "targets",   "y",       "species",
                                                   "category", "sentiment", "outcome", "diagnosis"};
constexpr std::array<std::string_view, 14> kFeatures{"x",      "features", "data",    "images",   "image",
                                                     "inputs", "input",    "text",    "sentence", "content",
                                                     "review", "samples",  "spectra", "signals"};
constexpr std::array<std::string_view, 8> kClasses{"label",   "labels",   "class",     "classes",
                                                   "species", "category", "sentiment", "diagnosis"};
constexpr std::array<std::string_view, 17> kRows{"id",   "ids",  "index",    "indices", "idx",  "row",
                                                 "rows", "nr",   "no",       "uid",     "uuid", "key",
                                                 "keys", "name", "filename", "file",    "path"};
constexpr std::array<std::string_view, 16> kAxes{
    "time",     "times",     "timestamp", "date",      "datetime", "day",        "year",      "lat",
    "latitude", "latitudes", "lon",       "longitude", "level",    "wavelength", "frequency", "epoch"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

/// The words of "PersonId", "x_train" and "digits/test.csv", in lower case.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(lower_case(word));
    word.clear();
  };
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '_' || c == '-' || c == '.' || c == '/' || c == ' ' || c == ':') {
      end_word();
      continue;
    }
    if (is_upper(c) && i > 0 && is_letter(name[i - 1]) && !is_upper(name[i - 1])) end_word();
    word += c;
  }
  end_word();
  return words;
}

template <std::size_t Count>
std::optional<std::size_t> place_in(const std::array<std::string_view, Count>& list, std::string_view word) {
  const auto found = std::ranges::find(list, word);
  if (found == list.end()) return std::nullopt;
  return static_cast<std::size_t>(found - list.begin());
}

/// The name, its last word, or its first one: those come after all whole names.
template <std::size_t Count>
std::optional<std::size_t> rank_in(const std::array<std::string_view, Count>& list, std::string_view name,
                                   bool in_words) {
  if (const auto whole = place_in(list, lower_case(std::string(name)))) return whole;
  if (!in_words) return std::nullopt;
  const std::vector<std::string> words = words_of(name);
  if (words.empty()) return std::nullopt;
  if (const auto last = place_in(list, words.back())) return *last + Count;
  if (const auto first = place_in(list, words.front())) return *first + 2 * Count;
  return std::nullopt;
}

std::optional<SetKind> set_word(std::string_view word) {
  for (const std::string_view train : {"train", "training"})
    if (word == train) return SetKind::train;
  for (const std::string_view validation : {"val", "valid", "validation", "dev", "eval", "evaluation"})
    if (word == validation) return SetKind::validation;
  for (const std::string_view test : {"test", "testing"})
    if (word == test) return SetKind::test;
  return std::nullopt;
}

}  // namespace

std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

std::span<const std::string_view> usual_labels() { return kLabels; }
std::span<const std::string_view> usual_features() { return kFeatures; }

std::optional<std::size_t> label_rank(std::string_view name, bool in_words) {
  return rank_in(kLabels, name, in_words);
}

std::optional<std::size_t> feature_rank(std::string_view name, bool in_words) {
  return rank_in(kFeatures, name, in_words);
}

bool names_classes(std::string_view name) { return rank_in(kClasses, name, true).has_value(); }

bool names_outcome(std::string_view name) {
  constexpr std::array<std::string_view, 10> kOutcomes{"survived",  "churn", "churned", "exited",
                                                       "attrition", "fraud", "isfraud", "is_fraud",
                                                       "saleprice", "medv"};
  return std::ranges::find(kOutcomes, lower_case(std::string(name))) != kOutcomes.end();
}

bool names_rows(std::string_view name) {
  const std::vector<std::string> words = words_of(name);
  if (words.empty()) return false;
  if (words.size() == 1) return place_in(kRows, words[0]).has_value();
  // "unnamed: 0" is how pandas calls the numbers of its rows; "personID" ends with a word, too.
  return words.back() == "id" || words.back() == "ids" || words.back() == "index" || words.back() == "nr" ||
         words[0] == "unnamed" || words.back() == "filename" || words.back() == "path";
}

bool names_ids(std::string_view name) {
  const std::vector<std::string> words = words_of(name);
  return !words.empty() &&
         (words.back() == "id" || words.back() == "ids" || words.back() == "uid" || words.back() == "uuid");
}

bool names_axis(std::string_view name) {
  const std::vector<std::string> words = words_of(name);
  return !words.empty() && place_in(kAxes, words.back()).has_value();
}

std::optional<SetName> set_of(std::string_view name) {
  std::optional<SetKind> set;
  std::string rest;
  for (const std::string& word : words_of(name)) {
    std::string_view other = word;
    std::optional<SetKind> found = set_word(word);
    // "xtrain" as MATLAB's users write it.
    if (!found && word.size() > 4 && (word[0] == 'x' || word[0] == 'y'))
      if ((found = set_word(std::string_view(word).substr(1)))) other = std::string_view(word).substr(0, 1);
    if (found && !set) {
      set = found;
      if (other == word) continue;
    } else if (word == "set") {
      continue;
    }
    if (!rest.empty()) rest += '_';
    rest += other;
  }
  if (!set) return std::nullopt;
  return SetName{*set, rest};
}

std::optional<PartName> part_of(std::string_view name) {
  std::optional<PartName> part;
  std::string rest;
  for (const std::string& word : words_of(name)) {
    std::string other = word;
    std::string_view role = word;
    // "xtrain" as MATLAB's users write it.
    if (word.size() > 4 && (word[0] == 'x' || word[0] == 'y') && set_word(std::string_view(word).substr(1))) {
      role = std::string_view(word).substr(0, 1);
      other = word.substr(1);
    }
    const bool are_labels = label_rank(role, false).has_value();
    if (!part && (are_labels || feature_rank(role, false))) {
      part = PartName{are_labels, {}};
      if (role == word) continue;
    }
    if (!rest.empty()) rest += '_';
    rest += other;
  }
  if (part) part->rest = rest;
  return part;
}

const char* name_of(SetKind set) {
  return set == SetKind::train ? "train" : set == SetKind::validation ? "validation" : "test";
}

}  // namespace lockstep
