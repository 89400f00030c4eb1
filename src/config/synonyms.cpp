// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "config/synonyms.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/params.h"
#include "core/name_list.h"
#include "core/scalar.h"

namespace lockstep {

namespace {

constexpr std::size_t kLongestWord = 60;  // longer ones are no names, and slow to compare

bool is_known(std::string_view name, std::span<const std::string_view> known) {
  return std::find(known.begin(), known.end(), name) != known.end();
}

struct Suggestion {
  std::string name;  ///< empty if there is none
  std::string text;
};

/// What the table says; nothing if it says nothing, or names something that is not known here.
Suggestion from_table(const std::string& place, const std::string& word,
                      std::span<const std::string_view> known) {
  for (const Synonym& synonym : all_synonyms()) {
    if (synonym.word != word || !place.starts_with(synonym.place)) continue;
    if (synonym.name.empty()) return {{}, std::string(synonym.advice)};
    if (!is_known(synonym.name, known)) continue;
    return {std::string(synonym.name), fmt::format("It is called '{}' here{}{}", synonym.name,
                                                   synonym.advice.empty() ? "." : ": ", synonym.advice)};
  }
  return {};
}

/// The table first: the nearest name may mean something else ('adamw' is not 'adam').
Suggestion suggestion(const std::string& place, std::string_view word,
                      std::span<const std::string_view> known) {
  const auto meant = [](std::string_view name) {
    return Suggestion{std::string(name), fmt::format("Did you mean '{}'?", name)};
  };
  if (word.size() > kLongestWord) return {};
  const std::string simple = plain_word(word);
  for (const std::string_view name : known)
    if (plain_word(name) == simple) return meant(name);
  if (Suggestion found = from_table(place, simple, known); !found.text.empty()) return found;
  if (parse_real(word))
    if (Suggestion found = from_table(place, "number", known); !found.text.empty()) return found;
  // nn.Linear, tf.keras.layers.Dense
  if (const auto dot = word.rfind('.'); dot != std::string_view::npos && dot + 1 < word.size())
    return suggestion(place, word.substr(dot + 1), known);
  const std::string close = nearest(word, known);
  return close.empty() ? Suggestion{} : meant(close);
}

std::string place_of_key(std::string_view subject) { return fmt::format("key of {}", subject); }

/// How the program lists all keys of a subject: "section train", "layer conv2d", "section data (train, reader
/// csv)".
std::string explained(std::string_view subject) {
  std::vector<std::string_view> topics;
  const auto word_after = [&](std::string_view kind) {
    const std::size_t at = subject.find(kind);
    if (at == std::string_view::npos) return;
    const std::string_view rest = subject.substr(at + kind.size());
    topics.push_back(rest.substr(0, rest.find_first_of(" ,)")));
  };
  word_after("section ");
  word_after("reader ");
  for (const std::string_view kind :
       {"layer", "loss", "metric", "optimizer", "schedule", "initializer", "hook", "transform"})
    if (topics.empty() && subject.starts_with(kind)) word_after(fmt::format("{} ", kind));
  std::string text;
  for (const std::string_view topic : topics)
    text += fmt::format("{}`lockstep explain {}`", text.empty() ? "" : " and ", topic);
  return text.empty() ? "`lockstep explain`" : text;
}

/// `all`: the command that prints those beyond the first ten.
std::string with_list(std::string found, std::string_view title, std::span<const std::string_view> known,
                      const std::string& all) {
  if (!found.empty()) found += ' ';
  found += fmt::format("{}: {}", title, known.empty() ? "none" : name_list(known));
  return known.size() > kMostNamed ? fmt::format("{} (see {})", found, all) : found;
}

}  // namespace

// "Conv_2D" and "conv2d" are one word.
std::string plain_word(std::string_view word) {
  std::string text;
  for (const char c : word.substr(0, kLongestWord + 1))
    if (c != '_' && c != '-' && c != '.' && c != ' ')
      text += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
}

std::vector<Synonym> synonyms_of(std::string_view word) {
  std::vector<Synonym> found;
  const std::string simple = plain_word(word);
  for (const Synonym& synonym : all_synonyms())
    if (synonym.word == simple) found.push_back(synonym);
  if (const auto dot = word.rfind('.');
      found.empty() && dot != std::string_view::npos && dot + 1 < word.size())
    return synonyms_of(word.substr(dot + 1));
  return found;
}

std::string advice_for_key(std::string_view key, std::string_view subject,
                           std::span<const std::string_view> known) {
  return with_list(suggestion(place_of_key(subject), key, known).text, "Known keys", known,
                   explained(subject));
}

std::string name_for_key(std::string_view key, std::string_view subject,
                         std::span<const std::string_view> known) {
  return suggestion(place_of_key(subject), key, known).name;
}

std::string advice_for_name(std::string_view what, std::string_view name,
                            std::span<const std::string_view> known) {
  return with_list(suggestion(std::string(what), name, known).text, "Known", known, "`lockstep explain`") +
         ".";
}

std::string advice_for_command_line(std::string_view word) {
  return from_table("command line", plain_word(word), {}).text;
}

std::string advice_for_value(std::string_view subject, std::string_view value, std::string_view help) {
  const std::string place = fmt::format("value of {}", subject);
  std::string found = suggestion(place, value, {}).text;
  if (found.empty()) found = from_table(place, "anything", {}).text;
  return found.empty() ? std::string(help) : found;
}

std::string advice_for_choice(std::string_view key, std::string_view value,
                              std::span<const std::string_view> choices, std::string_view help) {
  const std::string found = suggestion(fmt::format("value of {}", key), value, choices).text;
  return found.empty() ? std::string(help) : found;
}

}  // namespace lockstep
