// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// "One of these, with options": a name alone (`relu`), or a map of one name to its options (`dropout: {rate:
// 0.2}`). Layers, losses, optimizers, schedules and initialisers are all written so, and all live in tables
// of entries with `name`, `help` and `table`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/params.h"

namespace lockstep {

struct NamedOptions {
  std::string name;
  std::string where;
  Node options;  ///< a map, or null
};

/// Throws Error(config) if `node` is neither form; `what` is "layer", "optimizer", ...
NamedOptions named_options(const Node& node, std::string_view what);

/// Error(config): no such name; suggests the nearest.
[[noreturn]] void throw_unknown_name(const NamedOptions& named, std::string_view what,
                                     std::span<const std::string_view> known);

/// The entry of `table` with this name.
template <typename Entry>
const Entry& find_entry(std::span<const Entry> table, const NamedOptions& named, std::string_view what) {
  for (const Entry& entry : table)
    if (entry.name == named.name) return entry;
  std::vector<std::string_view> known;
  for (const Entry& entry : table) known.push_back(entry.name);
  throw_unknown_name(named, what, known);
}

}  // namespace lockstep
