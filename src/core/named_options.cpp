// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/named_options.h"

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
      node.where,
      fmt::format("Write `NAME` or `NAME: {{option: value}}`; keep each {} under its own name.", what));
}

void throw_unknown_name(const NamedOptions& named, std::string_view what,
                        std::span<const std::string_view> known) {
  const std::string suggestion = nearest(named.name, known);
  throw Error(
      ErrorKind::config, fmt::format("unknown {} '{}'", what, named.name), named.where,
      fmt::format("{}Known: {}.", suggestion.empty() ? "" : fmt::format("Did you mean '{}'? ", suggestion),
                  fmt::join(known, ", ")));
}

}  // namespace lockstep
