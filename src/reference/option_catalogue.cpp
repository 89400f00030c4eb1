// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "reference/option_catalogue.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/range.h"
#include "reference/config_reference.h"
#include "run/sections/config_tables.h"

namespace lockstep {

namespace {

// The titles of reference_sections() that are not "Kind name".
struct SpecialTitle {
  std::string_view title, kind;
};
constexpr SpecialTitle kSpecialTitles[] = {
    {"Copies on each node", "data"},
    {"Every data set", "data"},
    {"Samples of a set", "data"},
    {"Every training set", "data"},
    {"Source", "source"},
    {"Every layer", "every layer"},
    {"Head", "head"},
    {"Every metric", "every metric"},
    {"Regularization", "regularization"},
    {"Group", "group"},
    {"Every schedule", "every schedule"},
    {"Range of a sweep", "sweep_range"},
};

std::string lower_first(std::string_view text) {
  std::string lower(text);
  if (!lower.empty() && lower[0] >= 'A' && lower[0] <= 'Z')
    lower[0] = static_cast<char>(lower[0] - 'A' + 'a');
  return lower;
}

CatalogueEntry entry_of(const ReferenceSection& section) {
  for (const SpecialTitle& special : kSpecialTitles)
    if (special.title == section.title)
      return {section.title, std::string(special.kind), "", section.help, section.table};
  const auto blank = section.title.find(' ');
  LOCKSTEP_CHECK(blank != std::string::npos, "the title '{}' has no kind", section.title);
  return {section.title, lower_first(section.title.substr(0, blank)), section.title.substr(blank + 1),
          section.help, section.table};
}

// How an entry is written. In `lines`, NAME is its name and OPTIONS its options, "key: value, key: value";
// LINES are the same with a line each.
struct Place {
  std::string_view kind, words, lines;
};
constexpr Place kPlaces[] = {
    {"section", "section NAME", "NAME:\n  LINES"},
    {"data", "section data, beside format", "data:\n  LINES"},
    {"source", "an entry of data.sources", "data:\n  sources:\n    first: {OPTIONS}"},
    {"reader", "section data, with format: NAME", "data:\n  format: NAME\n  LINES"},
    {"transform", "an item of data.transforms", "data:\n  transforms:\n    - NAME: {OPTIONS}"},
    {"whitening", "data.whiten", "data:\n  whiten: {NAME: {OPTIONS}}"},
    {"every layer", "each item of model.layers", "model:\n  layers:\n    - dense: {units: 10, OPTIONS}"},
    {"layer", "an item of model.layers", "model:\n  layers:\n    - NAME: {OPTIONS}"},
    {"initializer", "the option kernel_initializer of a layer, and options like it",
     "model:\n  layers:\n    - dense: {units: 10, kernel_initializer: {NAME: {OPTIONS}}}"},
    {"head", "an item of model.heads", "model:\n  heads:\n    - {OPTIONS}"},
    {"loss", "model.loss, or the loss of a head", "model:\n  loss: {NAME: {OPTIONS}}"},
    {"every metric", "each item of eval.metrics", "eval:\n  metrics:\n    - accuracy: {OPTIONS}"},
    {"metric", "an item of eval.metrics", "eval:\n  metrics:\n    - NAME: {OPTIONS}"},
    {"regularization", "an item of model.regularization", "model:\n  regularization:\n    - {OPTIONS}"},
    {"optimizer", "section optimizer", "optimizer:\n  NAME: {OPTIONS}"},
    {"group", "an item of optimizer.groups",
     "optimizer:\n  adam: {learning_rate: 0.001}\n  groups:\n    - {OPTIONS}"},
    {"every schedule", "each schedule",
     "optimizer:\n  adam:\n    learning_rate: {constant: {value: 0.001, OPTIONS}}"},
    {"schedule", "in place of a number: the learning rate, a momentum, a dropout rate",
     "optimizer:\n  adam:\n    learning_rate: {NAME: {OPTIONS}}"},
    {"warm-up", "the option warmup of a schedule",
     "optimizer:\n  adam:\n    learning_rate: {constant: {value: 0.001, warmup: {NAME: {OPTIONS}}}}"},
    {"average", "average, at the top level", "average: {NAME: {OPTIONS}}"},
    {"summary", "section summary", "summary:\n  NAME: {OPTIONS}"},
    {"hook", "an item of hooks", "hooks:\n  - NAME: {OPTIONS}"},
    {"sweep_range", "a value of sweep.keys", "sweep:\n  keys:\n    train.batch_size: {OPTIONS}"},
    {"export", "an item of experiment.exports", "experiment:\n  exports:\n    - NAME: {OPTIONS}"},
};
// Sections that are not written like others.
constexpr Place kSectionPlaces[] = {
    {"", "the top level", "LINES"},
    {"data.mix", "data.mix, or data.train.mix", "data:\n  mix: {OPTIONS}"},
    {"data.window", "the option window of the reader hdf5", "data:\n  window: {OPTIONS}"},
    {"optimizer", "section optimizer, beside the rule", "optimizer: {adam: {learning_rate: 0.001}, OPTIONS}"},
    {"hooks", "hooks, at the top level", "hooks:\n  - logging: {every_steps: 100}"},
    {"experiment.exports", "section experiment", "experiment:\n  exports: [latest]"},
    {"sweep.halving", "sweep.halving", "sweep:\n  halving: {OPTIONS}"},
};

const Place& place_of(const CatalogueEntry& entry) {
  if (entry.kind == "section")
    for (const Place& place : kSectionPlaces)
      if (place.kind == entry.name) return place;
  const auto* const found = std::ranges::find(kPlaces, entry.kind, &Place::kind);
  LOCKSTEP_CHECK(found != std::end(kPlaces), "no place for tables of kind '{}'", entry.kind);
  return *found;
}

void replace(std::string& text, std::string_view word, std::string_view by) {
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + by.size()))
    text.replace(at, word.size(), by);
}

}  // namespace

std::vector<CatalogueEntry> option_catalogue() {
  std::vector<CatalogueEntry> entries;
  for (const ConfigSection& section : config_sections())
    entries.push_back({section.name.empty() ? "Top level" : fmt::format("Section {}", section.name),
                       "section", std::string(section.name), std::string(section.help), section.table});
  for (const ReferenceSection& section : reference_sections()) entries.push_back(entry_of(section));
  return entries;
}

std::string place_in_words(const CatalogueEntry& entry) {
  std::string words(place_of(entry).words);
  replace(words, "NAME", entry.name);
  return words;
}

std::string example_lines(const CatalogueEntry& entry, const ParamSpec* option) {
  std::vector<std::string> options;
  for (const ParamSpec& spec : entry.table)
    if (&spec == option || (spec.fallback == kRequired && entry.title != "Top level"))
      options.push_back(fmt::format("{}: {}", spec.name, example_value(entry.title, spec)));
  std::string lines(place_of(entry).lines);
  // One that needs no option is its name alone.
  if (options.empty()) {
    for (const std::string_view nothing : {": {OPTIONS}", ", OPTIONS", "\n  LINES"})
      replace(lines, nothing, "");
    replace(lines, "{NAME}", "NAME");
  }
  const std::string indent(entry.kind == "section" && entry.name.empty() ? 0 : 2, ' ');
  replace(lines, "OPTIONS", fmt::format("{}", fmt::join(options, ", ")));
  replace(lines, "LINES", fmt::format("{}", fmt::join(options, "\n" + indent)));
  replace(lines, "NAME", entry.name);
  return lines;
}

}  // namespace lockstep
