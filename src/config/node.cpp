// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "config/node.h"

#include "core/scalar.h"

namespace lockstep {

Node::Node() = default;
Node::Node(const Node&) = default;
Node::Node(Node&&) noexcept = default;
Node& Node::operator=(const Node&) = default;
Node& Node::operator=(Node&&) noexcept = default;
Node::~Node() = default;

const Node* Node::find(std::string_view key) const {
  for (const auto& [name, value] : entries)
    if (name == key) return &value;
  return nullptr;
}

Node Node::scalar(std::string text, std::string where) {
  Node node;
  node.kind = Kind::scalar;
  node.text = std::move(text);
  node.where = std::move(where);
  return node;
}

bool is_null(const Node& node) {
  return node.kind == Node::Kind::null ||
         (node.kind == Node::Kind::scalar && !node.quoted && kind_of_scalar(node.text) == ScalarKind::null);
}

}  // namespace lockstep
