// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "config/name_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "config/params.h"

namespace lockstep {

bool matches_path(const NamePattern& pattern, std::string_view path) {
  for (std::size_t end = path.find('/'); end != std::string_view::npos; end = path.find('/', end + 1))
    if (pattern.matches(std::string(path.substr(0, end)))) return true;
  return pattern.matches(std::string(path));
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
  constexpr std::size_t kMost = 12;
  return advice + fmt::format("The {} are {}{}.", what,
                              fmt::join(names.first(std::min(kMost, names.size())), ", "),
                              names.size() > kMost ? ", ..." : "");
}

}  // namespace lockstep
