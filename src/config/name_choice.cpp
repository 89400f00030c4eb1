// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "config/name_choice.h"

#include <fmt/format.h>

#include "config/params.h"
#include "core/name_list.h"

namespace lockstep {

namespace {
constexpr std::string_view kRegex = "re:";
}

bool looks_ahead(const NamePattern& pattern) {
  const std::string& text = pattern.text();
  return text.starts_with(kRegex) &&
         (text.find("(?!") != std::string::npos || text.find("(?=") != std::string::npos);
}

bool matches_path(const NamePattern& pattern, std::string_view path) {
  const std::string whole(path);
  if (pattern.matches(whole)) return true;
  bool begins = false;
  for (std::size_t end = whole.find('/'); end != std::string::npos && !begins; end = whole.find('/', end + 1))
    begins = pattern.matches(whole.substr(0, end));
  if (!begins || !looks_ahead(pattern)) return begins;
  const std::string with_rest = fmt::format("re:(?:{})(?:/[^]*)?", pattern.text().substr(kRegex.size()));
  return with_rest.size() > NamePattern::kMostCharacters || NamePattern(with_rest).matches(whole);
}

std::string advice_for_names(const std::string& pattern, std::span<const std::string> names,
                             std::string_view what) {
  std::vector<std::string_view> known;
  for (const std::string& name : names) {
    known.emplace_back(name);
    for (std::size_t end = name.find('/'); end != std::string::npos; end = name.find('/', end + 1))
      known.push_back(std::string_view(name).substr(0, end));
  }
  const std::string suggestion = nearest(pattern, known), advice = advice_for_pattern(pattern);
  if (!suggestion.empty()) return advice + fmt::format("Did you mean '{}'?", suggestion);
  return advice + fmt::format("The {} are {}.", what, name_list(names));
}

}  // namespace lockstep
