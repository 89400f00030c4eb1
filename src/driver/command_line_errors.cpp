// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/command_line_errors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "config/params.h"
#include "config/synonyms.h"

namespace lockstep {

Error usage_error(std::string what, std::string advice) {
  return Error(ErrorKind::usage, std::move(what), "lockstep", std::move(advice));
}

std::string with_suggestion(std::string_view word, const std::vector<std::string>& known,
                            const std::string& otherwise) {
  if (const std::string found = advice_for_command_line(word); !found.empty())
    return fmt::format("{} {}", found, otherwise);
  const std::vector<std::string_view> views(known.begin(), known.end());
  const std::string close = nearest(word, views);
  return close.empty() ? otherwise : fmt::format("Did you mean '{}'? {}", close, otherwise);
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(sub->get_name());
  return names;
}

namespace {
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}
}  // namespace

std::string full_name(const CLI::App& sub) {
  const CLI::App* parent = sub.get_parent();
  return parent == nullptr || parent->get_parent() == nullptr ? sub.get_name()
                                                              : full_name(*parent) + " " + sub.get_name();
}

std::string name_above(const CLI::App& sub) {
  const CLI::App* parent = sub.get_parent();
  return parent->get_parent() == nullptr ? "" : " " + full_name(*parent);
}

CLI::App* chosen_command(const CLI::App& app) {
  CLI::App* chosen = nullptr;
  for (std::vector<CLI::App*> next = app.get_subcommands(); !next.empty(); next = chosen->get_subcommands())
    chosen = next.front();
  return chosen;
}

Error leftover_error(const CLI::App& sub) {
  const std::vector<std::string> rest = sub.remaining();
  std::string word = rest.empty() ? "" : rest.front();
  for (const std::string& candidate : rest)
    if (candidate.starts_with('-')) {
      word = candidate.substr(0, candidate.find('='));
      break;
    }
  const std::string help = fmt::format("See: lockstep {} --help", full_name(sub));
  if (!word.starts_with('-')) {
    const bool many_files = full_name(sub) == "predict";  // the shell has replaced a pattern
    return usage_error(
        fmt::format("{}: one argument too many: '{}'", full_name(sub), word),
        many_files ? "Repeat --input for each file, or put the pattern in quotes. " + help : help);
  }
  return usage_error(fmt::format("{}: unknown option '{}'", full_name(sub), word),
                     with_suggestion(word, option_names(sub), help));
}

Error missing_below(const CLI::App& group, const std::vector<std::string>& below) {
  const std::string name = full_name(group);
  const std::string all = fmt::format("Commands: {}. See: lockstep {} --help", fmt::join(below, ", "), name);
  const std::vector<std::string> rest = group.remaining();
  if (rest.empty()) return usage_error(fmt::format("{}: a command is missing", name), all);
  return usage_error(fmt::format("{}: unknown command '{}'", name, rest.front()),
                     with_suggestion(rest.front(), below, all));
}

}  // namespace lockstep
