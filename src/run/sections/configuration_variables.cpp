// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdlib>

#include "core/error.h"
#include "run/sections/configuration_file.h"

namespace lockstep {

namespace {

bool is_name(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (name.empty() || !is_letter(name[0])) return false;
  for (const char c : name)
    if (!is_letter(c) && !is_digit(c)) return false;
  return true;
}

std::string replaced(const std::string& text, const std::string& where) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (text.compare(at, 3, "$${") == 0) {
      out += "${";
      at += 3;
      continue;
    }
    if (text.compare(at, 2, "${") != 0) {
      out += text[at++];
      continue;
    }
    const std::size_t end = text.find('}', at);
    if (end == std::string::npos)
      throw Error(ErrorKind::config, fmt::format("'{}' has a ${{ without a }}", text), where,
                  "Write ${NAME} or ${NAME:-default}; $${ stands for the characters ${.");
    const std::string inside = text.substr(at + 2, end - at - 2);
    const std::size_t mark = inside.find(":-");
    const std::string name = inside.substr(0, mark);
    if (!is_name(name))
      throw Error(ErrorKind::config, fmt::format("'{}' is no name of a variable of the environment", name),
                  where, "Write ${NAME} or ${NAME:-default}; $${ stands for the characters ${.");
    const char* const value = std::getenv(name.c_str());
    const bool is_set = value != nullptr && *value != '\0';
    if (!is_set && mark == std::string::npos)
      throw Error(
          ErrorKind::config, fmt::format("the environment variable {} is not set", name), where,
          fmt::format("Set it (on several hosts: mpirun -x {0}), or give a default: ${{{0}:-default}}.",
                      name));
    out += is_set ? std::string(value) : inside.substr(mark + 2);
    at = end + 1;
  }
  return out;
}

/// Calls `use` with each scalar but data.stage_to.
void for_each_text(Node& node, auto use, int depth = 0, bool in_data = false) {
  if (node.kind == Node::Kind::scalar) return use(node);
  for (auto& [key, value] : node.entries)
    if (!in_data || key != "stage_to") for_each_text(value, use, depth + 1, depth == 0 && key == "data");
  for (Node& item : node.items) for_each_text(item, use, depth + 1);
}

}  // namespace

void replace_variables(Node& root) {
  for_each_text(root, [](Node& scalar) {
    if (scalar.text.find("${") != std::string::npos) scalar.text = replaced(scalar.text, scalar.where);
  });
}

void escape_variables(Node& root) {
  for_each_text(root, [](Node& scalar) {
    if (scalar.text.find("${") == std::string::npos) return;
    std::string escaped;
    for (std::size_t at = 0; at < scalar.text.size(); ++at) {
      if (scalar.text.compare(at, 2, "${") == 0) escaped += '$';
      escaped += scalar.text[at];
    }
    scalar.text = escaped;
  });
}

}  // namespace lockstep
