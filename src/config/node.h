// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A parsed text with positions, of which config/yaml_node.h makes one from YAML, and programs one from C++
// values. Its special members are compiled once: every program with options copies nodes.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

/// A value as written: null, scalar text, list or map, with its position ("file.yaml:3:5").
struct Node {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  std::string where;
  std::string text;                                   ///< scalar; "null" of a null that is written out
  bool quoted = false;                                ///< scalar in quotes: always a string
  bool key_quoted = false;                            ///< value of a map: its key is in quotes, a name
  std::vector<Node> items;                            ///< list
  std::vector<std::pair<std::string, Node>> entries;  ///< map, in written order
  std::vector<std::string> entry_where;               ///< positions of the keys
  std::string overridden;  ///< the last option of the command line that changed something in it, or empty

  Node();
  Node(const Node&);
  Node(Node&&) noexcept;
  Node& operator=(const Node&);
  Node& operator=(Node&&) noexcept;
  ~Node();

  const Node* find(std::string_view key) const;
  static Node scalar(std::string text, std::string where = {});
};

/// True for null and for unquoted text that means null ("~", "null").
bool is_null(const Node& node);

}  // namespace lockstep
