// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to data_options.cpp: maps of options on top of each other.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <unordered_map>

#include "config/params.h"

namespace lockstep {

/// The entries of a map whose keys are wanted.
template <typename Wanted>
Node filtered(const Node& section, Wanted wanted) {
  Node kept = section;
  kept.entries.clear();
  kept.entry_where.clear();
  for (std::size_t i = 0; i < section.entries.size(); ++i) {
    if (!wanted(section.entries[i].first)) continue;
    kept.entries.push_back(section.entries[i]);
    kept.entry_where.push_back(i < section.entry_where.size() ? section.entry_where[i] : section.where);
  }
  return kept;
}

/// A map of options in which later ones override earlier ones.
class MergedOptions {
 public:
  explicit MergedOptions(const std::string& where) {
    merged_.kind = Node::Kind::map;
    merged_.where = where;
  }
  /// All keys but those of `without`.
  void put(const Node& map, std::span<const ParamSpec> without) {
    for (std::size_t i = 0; i < map.entries.size(); ++i)
      if (const auto& [key, value] = map.entries[i];
          std::ranges::find(without, std::string_view(key), &ParamSpec::name) == without.end())
        put(key, value, i < map.entry_where.size() ? map.entry_where[i] : map.where);
  }
  Node take() { return std::move(merged_); }

 private:
  void put(const std::string& key, const Node& value, const std::string& where) {
    const auto [place, is_new] = places_.try_emplace(key, merged_.entries.size());
    if (is_new) {
      merged_.entries.emplace_back(key, value);
      merged_.entry_where.push_back(where);
    } else {
      merged_.entries[place->second].second = value;
      merged_.entry_where[place->second] = where;
    }
  }

  Node merged_;
  std::unordered_map<std::string, std::size_t> places_;
};

}  // namespace lockstep
