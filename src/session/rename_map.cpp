// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/rename_map.h"

#include <fmt/format.h>

#include "core/error.h"

namespace lockstep {

RenameMap rename_map(const Node& map) {
  RenameMap result;
  if (map.kind != Node::Kind::map)
    throw Error(ErrorKind::config, "is not a map", map.where,
                "The left side is a name of this model, the right side the name in the file: {conv1/: "
                "backbone/conv1/}.");
  for (const auto& [from, to] : map.entries) {
    if (is_null(to))
      result.left_out.push_back(from);
    else if (to.kind != Node::Kind::scalar)
      throw Error(ErrorKind::config, fmt::format("'{}' has no name on its right", from), to.where,
                  "Write one line for each rule: NAME OF THIS MODEL: NAME IN THE FILE.");
    else
      result.rules.emplace_back(from, to.text);
  }
  return result;
}

}  // namespace lockstep
