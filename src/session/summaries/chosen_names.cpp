// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/summaries/chosen_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/name_choice.h"

namespace lockstep {

std::vector<bool> chosen_names(const Params& options, std::string_view option,
                               std::span<const std::string> names) {
  if (!options.has(option)) return std::vector<bool>(names.size(), true);
  std::vector<bool> chosen(names.size());
  for (const std::string& text : options.strings(option)) {
    const NamePattern pattern = [&] {
      try {
        return NamePattern(text);
      } catch (const Error& error) {
        throw options.error(option, error.what_happened(), error.advice());
      }
    }();
    bool any = false;
    for (std::size_t i = 0; i < names.size(); ++i)
      if (matches_path(pattern, names[i])) any = chosen[i] = true;
    if (!any)
      throw options.error(option, fmt::format("'{}' matches none of the {}", text, option),
                          advice_for_names(text, names, option));
  }
  return chosen;
}

std::string chosen_text(std::span<const std::string> chosen, std::size_t of, std::string_view things) {
  constexpr std::size_t kShown = 8;
  if (chosen.size() == of) return fmt::format("all {} {}", of, things);
  const std::string names = fmt::format("{}", fmt::join(chosen.first(std::min(kShown, chosen.size())), ", "));
  const std::string more =
      chosen.size() > kShown ? fmt::format(" and {} more", chosen.size() - kShown) : std::string();
  return fmt::format("{} of {} {} ({}{})", chosen.size(), of, things, names, more);
}

std::vector<VariableId> chosen_variables(const Params& options, const VariableStore& store,
                                         bool trained_only) {
  std::vector<VariableId> candidates;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < store.variables().size(); ++i) {
    const Variable& variable = store.variables()[i];
    if (trained_only && !variable.trainable) continue;
    candidates.push_back(static_cast<VariableId>(i));
    names.push_back(variable.name);
  }
  const std::vector<bool> chosen = chosen_names(options, "variables", names);
  std::vector<VariableId> variables;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (chosen[i]) variables.push_back(candidates[i]);
  return variables;
}

}  // namespace lockstep
