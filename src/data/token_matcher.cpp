// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/token_matcher.h"

#include <algorithm>

namespace lockstep {

bool TokenMatcher::add(std::string_view token, std::int32_t id) {
  if (!ids_.emplace(token, id).second) return false;
  auto& lengths = lengths_[static_cast<unsigned char>(token.front())];
  if (lengths.empty()) first_bytes_ += token.front();
  const auto place = std::ranges::lower_bound(lengths, token.size(), std::greater());
  if (place == lengths.end() || *place != token.size()) lengths.insert(place, token.size());
  return true;
}

TokenMatcher::Match TokenMatcher::find(std::string_view text) const {
  const auto next = [&](std::size_t from) {
    return first_bytes_.size() == 1 ? text.find(first_bytes_.front(), from)
                                    : text.find_first_of(first_bytes_, from);
  };
  for (std::size_t at = next(0); at != std::string_view::npos; at = next(at + 1))
    for (const std::size_t bytes : lengths_[static_cast<unsigned char>(text[at])]) {
      if (bytes > text.size() - at) continue;
      const auto found = ids_.find(text.substr(at, bytes));
      if (found != ids_.end()) return {at, bytes, found->second};
    }
  return {text.size(), 0, 0};
}

}  // namespace lockstep
