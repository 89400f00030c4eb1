// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "reference/explanation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "config/plain_text.h"
#include "config/synonyms.h"
#include "core/error.h"
#include "reference/documentation.h"
#include "reference/option_catalogue.h"
#include "reference/option_explanation.h"

namespace lockstep {

namespace {

constexpr std::size_t kMostWhole = 3;  ///< more matches are a list with a line each

std::vector<std::string> parts_of(std::string_view key) {
  std::vector<std::string> parts;
  for (; !key.empty(); key.remove_prefix(std::min(key.size(), parts.back().size() + 1)))
    parts.emplace_back(key.substr(0, key.find('.')));
  return parts;
}

/// A part of a path that stands for several tables: "model.layers.conv1.filters".
bool is_word_for(std::string_view word, const CatalogueEntry& entry) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {{"layers", "layer"},
                                                                      {"layers", "every layer"},
                                                                      {"layer", "every layer"},
                                                                      {"metric", "every metric"},
                                                                      {"schedule", "every schedule"},
                                                                      {"metrics", "metric"},
                                                                      {"metrics", "every metric"},
                                                                      {"hooks", "hook"},
                                                                      {"transforms", "transform"},
                                                                      {"exports", "export"},
                                                                      {"heads", "head"},
                                                                      {"groups", "group"},
                                                                      {"sources", "source"},
                                                                      {"optimizer", "optimizer"},
                                                                      {"data", "reader"},
                                                                      {"data", "data"},
                                                                      {"regularization", "regularization"},
                                                                      {"loss", "loss"},
                                                                      {"learning_rate", "schedule"},
                                                                      {"learning_rate", "every schedule"},
                                                                      {"warmup", "warm-up"},
                                                                      {"average", "average"},
                                                                      {"inputs", "reader"},
                                                                      {"targets", "reader"}};
  const std::string simple = plain_word(word);
  for (const auto& [name, kind] : kWords)
    if (plain_word(name) == simple && kind == entry.kind) return true;
  return plain_word(entry.kind) == simple;
}

bool is_called(const CatalogueEntry& entry, std::string_view word) {
  const std::string simple = plain_word(word);
  if (simple.empty()) return false;
  if (plain_word(entry.title) == simple) return true;
  // Section data stands for the tables of all data sets.
  return entry.kind != "data" && plain_word(owner_of(entry)) == simple;
}

/// "dense2" is a layer of kind dense.
std::string without_number(std::string word) {
  const auto end = word.find_last_not_of("0123456789");
  return end == std::string::npos ? word : word.substr(0, end + 1);
}

std::vector<ExplainedOption> options_called(const std::vector<CatalogueEntry>& catalogue,
                                            std::string_view name, auto wanted) {
  std::vector<ExplainedOption> found;
  const std::string simple = plain_word(name);
  for (const CatalogueEntry& entry : catalogue)
    if (wanted(entry))
      for (const ParamSpec& option : entry.table)
        if (plain_word(option.name) == simple) found.push_back({&entry, &option});
  return found;
}

/// The options of a path: its parts before the last say of which table, the one next to the option first.
std::vector<ExplainedOption> options_at(const std::vector<CatalogueEntry>& catalogue,
                                        const std::vector<std::string>& parts) {
  for (std::size_t i = parts.size() - 1; i-- > 0;) {
    const std::string& owner = parts[i];
    std::vector<ExplainedOption> found = options_called(
        catalogue, parts.back(), [&](const CatalogueEntry& entry) { return is_called(entry, owner); });
    if (found.empty())
      found = options_called(catalogue, parts.back(),
                             [&](const CatalogueEntry& entry) { return is_word_for(owner, entry); });
    if (found.empty())
      found = options_called(catalogue, parts.back(), [&](const CatalogueEntry& entry) {
        return is_called(entry, without_number(owner));
      });
    if (!found.empty()) return found;
  }
  return {};
}

std::vector<ExplainedOption> matches_of(const std::vector<CatalogueEntry>& catalogue,
                                        const std::string& key) {
  std::vector<ExplainedOption> found;
  for (const CatalogueEntry& entry : catalogue)
    if (is_called(entry, key)) found.push_back({&entry, nullptr});
  const std::vector<std::string> parts = parts_of(key);
  const std::vector<ExplainedOption> options =
      parts.size() > 1 ? options_at(catalogue, parts)
                       : options_called(catalogue, key, [](const CatalogueEntry&) { return true; });
  // A section is a key of the top level, and a part of the summary one of its section: the table says more.
  for (const ExplainedOption& match : options)
    if (std::ranges::none_of(found, [&](const ExplainedOption& table) {
          return plain_word(table.entry->name) == plain_word(match.option->name) &&
                 (match.entry->title == "Top level" || table.entry->kind == "summary");
        }))
      found.push_back(match);
  return found;
}

std::string texts_of(const std::vector<ExplainedOption>& matches,
                     const std::vector<CatalogueEntry>& catalogue) {
  std::string text;
  if (matches.size() <= kMostWhole) {
    for (const ExplainedOption& match : matches)
      text += (text.empty() ? "" : "\n") +
              (match.option == nullptr ? table_text(*match.entry, catalogue) : option_text(match));
    return text;
  }
  std::size_t width = 0;
  for (const ExplainedOption& match : matches) width = std::max(width, address(match).size());
  text = fmt::format("{} have this name:\n", matches.size());
  for (const ExplainedOption& match : matches)
    text += fmt::format(
        "  {:<{}}  {}\n", address(match), width,
        first_sentence(match.option == nullptr ? std::string_view(match.entry->help) : match.option->help));
  return text + fmt::format("One of them: lockstep explain {}\n", address(matches.front()));
}

/// Where a synonym is expected, in words: "layer", "option of section train".
std::string place_of(const Synonym& synonym) {
  std::string_view place = synonym.place;
  if (place.starts_with("key of ")) {
    place.remove_prefix(7);
    return place.empty() ? "an option" : fmt::format("an option of {}", place);
  }
  if (place.starts_with("value of ")) return fmt::format("a value of {}", place.substr(9));
  return std::string(place == "command line" ? "on the command line" : place);
}

/// What the tables of synonyms say; `known` finds what a name here means.
std::string synonyms_text(const std::string& key, const std::vector<CatalogueEntry>& catalogue) {
  std::string text;
  std::set<std::string> said;
  std::vector<Synonym> synonyms = synonyms_of(key);
  // Layers first, then other names, options, values.
  std::ranges::stable_sort(synonyms, {}, [](const Synonym& synonym) {
    if (synonym.place == "layer") return 0;
    return synonym.place.starts_with("key of ") ? 2 : synonym.place.starts_with("value of ") ? 3 : 1;
  });
  for (const Synonym& synonym : synonyms) {
    std::string line = fmt::format("'{}' ({})", key, place_of(synonym));
    line += synonym.name.empty() ? fmt::format(": {}", synonym.advice)
                                 : fmt::format(" is called '{}' here{}{}", synonym.name,
                                               synonym.advice.empty() ? "." : ": ", synonym.advice);
    if (!said.insert(fmt::format("{}: {}", synonym.name, synonym.advice)).second) continue;
    text += wrapped(line, 0);
    if (synonym.name.empty()) continue;
    std::string_view place = synonym.place;
    const bool is_key = place.starts_with("key of ");
    if (place.starts_with("value of ")) continue;
    if (is_key) place.remove_prefix(7);
    if (place == "data format") place = "reader";
    if (place.starts_with("section ")) place.remove_prefix(8);
    const auto fits = [&](const CatalogueEntry& entry) {
      return place.empty() || entry.kind == place || entry.kind == "every " + std::string(place) ||
             fmt::format("{} {}", entry.kind, entry.name) == place || is_called(entry, place) ||
             (place == "the configuration" && entry.title == "Top level") || is_word_for(place, entry);
    };
    std::vector<std::string> addresses;
    for (const ExplainedOption& match : matches_of(catalogue, std::string(synonym.name)))
      if ((match.option != nullptr) == is_key && fits(*match.entry)) addresses.push_back(address(match));
    if (addresses.size() > kMostWhole) addresses = {std::string(synonym.name)};
    for (const std::string& see : addresses) text += fmt::format("  See: lockstep explain {}\n", see);
  }
  return text;
}

/// What is called `key`. One of many is alone if this is how the index writes it: an option of the top level,
/// or of a section within a section, whose name has a point.
std::string texts_of(const std::vector<CatalogueEntry>& catalogue, const std::string& key) {
  const std::vector<ExplainedOption> found = matches_of(catalogue, key);
  std::vector<ExplainedOption> written;
  std::vector<std::string> others;
  for (const CatalogueEntry& entry : catalogue)
    for (const ParamSpec& option : entry.table)
      if (address({&entry, &option}) == key) written.push_back({&entry, &option});
  if (written.empty() || (!found.empty() && found.size() <= kMostWhole)) return texts_of(found, catalogue);
  for (const ExplainedOption& match : found)
    if (match.option != written.front().option) others.push_back(address(match));
  std::string text = texts_of(written, catalogue);
  if (!others.empty()) text += fmt::format("\nAlso: {}\n", fmt::join(others, ", "));
  return text;
}

std::string cleaned(std::string_view key) {
  key = key.substr(0, key.find('='));
  std::string text;
  for (const char c : key)
    if (c != ' ' || (!text.empty() && text.back() != ' ')) text += c == '/' ? '.' : c;
  while (!text.empty() && (text.back() == ' ' || text.back() == ':' || text.back() == '.')) text.pop_back();
  return text;
}

}  // namespace

std::string explanation(std::string_view word) {
  const std::string key = cleaned(word);
  const std::vector<CatalogueEntry> catalogue = option_catalogue();
  std::string text = texts_of(catalogue, key);
  // A path is Lockstep's own; a single word may be another program's, too.
  const std::vector<std::string> parts = parts_of(key);
  const bool is_path = parts.size() > 1 &&
                       (!text.empty() || !options_called(catalogue, parts.back(), [](const CatalogueEntry&) {
                                            return true;
                                          }).empty());
  if (const std::string others = is_path ? "" : synonyms_text(key, catalogue); !others.empty())
    text += text.empty() ? others : "\nIn other programs\n" + others;
  // tf.keras.layers.Dense, model.layers.conv2d: no table has the path, and no other program the word.
  if (text.empty() && parts.size() > 1) {
    std::vector<ExplainedOption> last;
    for (const CatalogueEntry& entry : catalogue)
      if (is_called(entry, parts.back())) last.push_back({&entry, nullptr});
    text = texts_of(last, catalogue);
  }
  if (!text.empty() && !key.empty()) return text;
  std::set<std::string> known;
  for (const CatalogueEntry& entry : catalogue) {
    known.insert(address({&entry, nullptr}));
    for (const ParamSpec& option : entry.table) {
      known.insert(std::string(option.name));
      known.insert(address({&entry, &option}));
    }
  }
  const std::vector<std::string_view> candidates(known.begin(), known.end());
  std::string close = nearest(key, candidates);
  if (close.empty() && parts.size() > 1) close = nearest(parts.back(), candidates);
  throw Error(ErrorKind::usage, fmt::format("nothing is called '{}'", word), "lockstep explain",
              fmt::format("{}`lockstep explain` alone lists what can be explained.",
                          close.empty() ? "" : fmt::format("Did you mean '{}'? ", close)));
}

std::string explanation_index() {
  std::string text = "Names that `lockstep explain NAME` explains; NAME.OPTION is one option of it.\n";
  std::string kind;
  std::vector<std::string> names;
  const auto flush = [&] {
    if (!names.empty())
      text += fmt::format("\n{}\n", kind) + wrapped(fmt::format("{}", fmt::join(names, ", ")), 2);
    names.clear();
  };
  for (const std::string_view wanted :
       {"section", "reader", "transform", "whitening", "layer", "initializer", "loss", "metric", "optimizer",
        "schedule", "warm-up", "average", "summary", "hook", "export"}) {
    kind = wanted;
    for (const CatalogueEntry& entry : option_catalogue())
      if (entry.kind == wanted && !entry.name.empty()) names.push_back(entry.name);
    flush();
  }
  return text + "\nWords of other frameworks are understood, too: lockstep explain nn.Linear\n";
}

}  // namespace lockstep
