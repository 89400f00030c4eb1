// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "config/named_options.h"

#include "config/synonyms.h"
#include "config/table.h"

namespace lockstep {

NamedOptions named_options(const Node& node, std::string_view what) {
  if (node.kind == Node::Kind::scalar) {
    Node no_options;
    no_options.where = node.where;
    return {node.text, node.where, no_options};
  }
  if (node.kind == Node::Kind::map && node.entries.size() == 1)
    return {node.entries[0].first, node.entry_where.empty() ? node.where : node.entry_where[0],
            node.entries[0].second};
  throw Error(
      ErrorKind::config, fmt::format("expected the name of one {}, alone or with its options", what),
      node.overridden.empty() ? node.where : node.overridden,
      fmt::format("Write `NAME` or `NAME: {{option: value}}`; keep each {} under its own name.", what));
}

std::string_view option_to_blame(const Params& params, std::initializer_list<std::string_view> names) {
  const std::string_view* blamed = names.end() - 1;
  for (const std::string_view& name : names)
    if (params.where(name).starts_with("--")) blamed = &name;
  return *blamed;
}

void throw_unknown_name(const NamedOptions& named, std::string_view what,
                        std::span<const std::string_view> known) {
  throw Error(ErrorKind::config, fmt::format("unknown {} '{}'", what, named.name), named.where,
              advice_for_name(what, named.name, known));
}

void throw_name_taken(std::string_view what, std::string_view name) {
  const bool begins_with_vowel = std::string_view("aeiou").find(what.front()) != std::string_view::npos;
  throw Error(ErrorKind::config,
              fmt::format("{} {} named '{}' exists already", begins_with_vowel ? "an" : "a", what, name));
}

}  // namespace lockstep
