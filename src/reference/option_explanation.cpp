// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "reference/option_explanation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "config/plain_text.h"
#include "optim/scheduled_number.h"
#include "reference/documentation.h"

namespace lockstep {

namespace {

std::string_view page_of(const CatalogueEntry& entry) {
  constexpr std::pair<std::string_view, std::string_view> kPages[] = {
      {"reader", "data.md"},
      {"data", "data.md"},
      {"source", "data_selection.md"},
      {"transform", "augmentation.md"},
      {"whitening", "augmentation.md"},
      {"layer", "layers.md"},
      {"every layer", "layers.md"},
      {"loss", "losses.md"},
      {"head", "losses.md"},
      {"initializer", "layers.md"},
      {"metric", "metrics.md"},
      {"every metric", "metrics.md"},
      {"optimizer", "optimizers.md"},
      {"group", "optimizers.md"},
      {"schedule", "schedules.md"},
      {"every schedule", "schedules.md"},
      {"warm-up", "schedules.md"},
      {"average", "averages.md"},
      {"summary", "summaries.md"},
      {"hook", "hooks.md"},
      {"export", "estimator.md"},
      {"section checkpoint", "checkpoints.md"},
      {"section cluster", "cluster.md"},
      {"section warm_start", "warm_start.md"},
      {"section summary", "summaries.md"},
      {"section precision", "precision.md"},
      {"section gpu", "gpu.md"},
      {"section experiment", "estimator.md"},
      {"section eval", "metrics.md"}};
  const std::string whole = fmt::format("{} {}", entry.kind, entry.name);
  for (const auto& [kind, page] : kPages)
    if (kind == entry.kind || kind == whole) return page;
  return "config.md";
}

std::string more_about(const CatalogueEntry& entry) {
  const std::string index = documentation_path();
  const std::string folder =
      index.empty() ? "docs/" : index.substr(0, index.size() - std::string_view("index.md").size());
  return fmt::format("  More: {}{}\n", folder, page_of(entry));
}

std::string_view type_of(const ParamSpec& option) {
  return takes_schedule(option) ? "number or schedule" : name_of(option.type);
}

std::string default_of(const ParamSpec& option) {
  if (option.fallback == kRequired) return "none: it must be given";
  return option.fallback.empty() ? "\"\" (an empty text)" : std::string(option.fallback);
}

std::string_view effect_of(Change change) {
  switch (change) {
    case Change::result:
      return "another value is refused in a run that continues, unless --accept-changes is given";
    case Change::free:
      return "another value is taken in a run that continues: it cannot change the result";
    case Change::place:
      return "another value is taken in a run that continues, if the data are the same";
    case Change::fixed:
      return "a run keeps the value for its life";
  }
  return {};
}

/// The path that --set takes; empty where it depends on the names in a configuration.
std::string path_of(const ExplainedOption& match) {
  const CatalogueEntry& entry = *match.entry;
  if (entry.kind == "section") return address(match);
  if (entry.kind == "reader" || entry.kind == "data") return fmt::format("data.{}", match.option->name);
  if (entry.kind == "optimizer") return fmt::format("optimizer.{}", match.option->name);
  return {};
}

}  // namespace

std::string owner_of(const CatalogueEntry& entry) {
  if (!entry.name.empty() || entry.title == "Top level") return entry.name;
  return entry.kind.starts_with("every ") ? entry.kind.substr(6) : entry.kind;
}

std::string address(const ExplainedOption& match) {
  const std::string owner = owner_of(*match.entry);
  if (match.option == nullptr) return owner;
  return owner.empty() ? std::string(match.option->name) : fmt::format("{}.{}", owner, match.option->name);
}

std::string option_text(const ExplainedOption& match) {
  const ParamSpec& option = *match.option;
  const CatalogueEntry& entry = *match.entry;
  std::string text = address(match) + "\n" + wrapped(option.help, 2) + "\n";
  const auto row = [&](std::string_view name, std::string_view value) {
    text += fmt::format("  {:<9}{}\n", name, value);
  };
  row("type", type_of(option));
  if (const std::string range = option.range.text(); !range.empty()) row("range", range);
  row("default", default_of(option));
  row("where", place_in_words(entry));
  row("in a run", effect_of(option.change));
  text += "\n" + indented(example_lines(entry, &option), 4);
  if (const std::string path = path_of(match); !path.empty())
    text += fmt::format("\n  On the command line: --set '{}={}'\n", path, example_value(entry.title, option));
  return text + more_about(entry);
}

std::string table_text(const CatalogueEntry& entry, const std::vector<CatalogueEntry>& catalogue) {
  std::string text = fmt::format("{}: {}\n", address({&entry, nullptr}), entry.kind);
  if (!entry.help.empty()) text += wrapped(entry.help, 2);
  text += fmt::format("\n  {:<9}{}\n\n", "where", place_in_words(entry)) + indented(example_lines(entry), 4);
  std::size_t width = 0;
  for (const ParamSpec& option : entry.table) width = std::max(width, option.name.size());
  if (!entry.table.empty()) text += "\n  Options\n";
  for (const ParamSpec& option : entry.table)
    text += fmt::format("    {:<{}}  {:<18}  {}\n", option.name, width,
                        option.fallback == kRequired ? "must be given" : fmt::format("[{}]", option.fallback),
                        first_sentence(option.help));
  for (const CatalogueEntry& other : catalogue)
    if (other.kind == "every " + entry.kind ||
        (other.kind == "data" && (entry.kind == "reader" || entry.title == "Section data"))) {
      std::vector<std::string_view> names;
      for (const ParamSpec& option : other.table) names.push_back(option.name);
      text += wrapped(fmt::format("{}: {}.", other.title, fmt::join(names, ", ")), 2);
    }
  if (!entry.table.empty())
    text += fmt::format("\n  One option: lockstep explain {}\n", address({&entry, entry.table.data()}));
  return text + more_about(entry);
}

}  // namespace lockstep
