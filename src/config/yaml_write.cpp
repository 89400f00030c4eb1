// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "config/yaml_node.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <vector>

#include "config/yaml_quoted.h"
#include "core/scalar.h"
#include "core/shown_text.h"

namespace lockstep {

namespace {

// Plain scalars only where every YAML reader sees the same text, also one of version 1.1, where `on` is true.
bool plain_is_safe(const std::string& text) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '/';
  };
  const auto is_inner = [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+';
  };
  if (text.empty() || !is_letter(text[0]) || !std::all_of(text.begin(), text.end(), is_inner)) return false;
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  static constexpr std::array<std::string_view, 6> kOldBooleans{"y", "n", "yes", "no", "on", "off"};
  return std::find(kOldBooleans.begin(), kOldBooleans.end(), lower) == kOldBooleans.end() &&
         kind_of_scalar(text) == ScalarKind::text;
}

std::string scalar_text(const std::string& text, bool is_text) {
  if (!is_text && kind_of_scalar(text) != ScalarKind::text) return text.empty() ? "null" : text;
  return plain_is_safe(text) ? text : yaml_quoted(text);
}

bool fits_on_a_line(const Node& node) {
  return node.kind != Node::Kind::map &&
         std::all_of(node.items.begin(), node.items.end(), [](const Node& item) {
           return item.kind == Node::Kind::scalar || item.kind == Node::Kind::null;
         });
}

std::string on_a_line(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return "null";
    case Node::Kind::scalar:
      return scalar_text(node.text, node.quoted);
    case Node::Kind::map:
      return "{}";
    case Node::Kind::list:
      break;
  }
  std::vector<std::string> items;
  for (const Node& item : node.items) items.push_back(on_a_line(item));
  return fmt::format("[{}]", fmt::join(items, ", "));
}

// `indent`: indentation of the node's lines; that of the first line is already written.
void write(std::string& out, const Node& node, int indent) {
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  const auto write_child = [&](const Node& child, bool in_list) {
    if (fits_on_a_line(child) || (child.kind == Node::Kind::map && child.entries.empty())) {
      out += ' ' + on_a_line(child) + '\n';
    } else if (in_list) {
      out += ' ';
      write(out, child, indent + 2);
    } else {
      out += '\n' + margin + "  ";
      write(out, child, indent + 2);
    }
  };
  bool first = true;
  for (const auto& [key, child] : node.entries) {
    out += (first ? "" : margin) + scalar_text(key, child.key_quoted) + ':';
    write_child(child, false);
    first = false;
  }
  for (const Node& item : node.items) {
    out += (first ? "" : margin) + '-';
    write_child(item, true);
    first = false;
  }
}

}  // namespace

std::string yaml_quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t bytes = utf8_bytes(text);
    const std::string_view one = text.substr(0, std::max<std::size_t>(bytes, 1));
    if (one == "\"" || one == "\\") out += '\\';
    out += bytes == 0 ? std::string(one) : shown_text(one);
    text.remove_prefix(one.size());
  }
  return out + '"';
}

std::string to_yaml(const Node& node) {
  if (fits_on_a_line(node) || (node.entries.empty() && node.items.empty())) return on_a_line(node) + '\n';
  std::string out;
  write(out, node, 0);
  return out;
}

}  // namespace lockstep
