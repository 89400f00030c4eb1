// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/summaries/chosen_names.h"

#include <fmt/format.h>

#include "core/name_choice.h"

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
