// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/summaries/chosen_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/name_choice.h"

namespace lockstep {

void set_member(ChosenNames& member, const Params& params, const ParamSpec& option) {
  member.patterns_.reset();
  if (params.has(option.name)) member.patterns_ = params.strings(option.name);
  member.name_ = option.name;
  member.where_ = params.where(option.name);
  member.subject_ = params.subject();
}

Error ChosenNames::error(const std::string& what_happened, std::string advice) const {
  return Error(ErrorKind::config, fmt::format("{}, {}: {}", subject_, name_, what_happened), where_,
               std::move(advice));
}

std::vector<bool> ChosenNames::among(std::span<const std::string> names) const {
  if (is_all()) return std::vector<bool>(names.size(), true);
  std::vector<bool> chosen(names.size());
  for (const std::string& text : *patterns_) {
    const NamePattern pattern = [&] {
      try {
        return NamePattern(text);
      } catch (const Error& wrong) {
        throw error(wrong.what_happened(), wrong.advice());
      }
    }();
    bool any = false;
    for (std::size_t i = 0; i < names.size(); ++i)
      if (matches_path(pattern, names[i])) any = chosen[i] = true;
    if (!any)
      throw error(fmt::format("'{}' matches none of the {}", text, name_),
                  advice_for_names(text, names, name_));
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

std::vector<VariableId> ChosenNames::among(const VariableStore& store, bool trained_only) const {
  std::vector<VariableId> candidates;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < store.variables().size(); ++i) {
    const Variable& variable = store.variables()[i];
    if (trained_only && !variable.trainable) continue;
    candidates.push_back(static_cast<VariableId>(i));
    names.push_back(variable.name);
  }
  const std::vector<bool> chosen = among(names);
  std::vector<VariableId> variables;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (chosen[i]) variables.push_back(candidates[i]);
  return variables;
}

}  // namespace lockstep
