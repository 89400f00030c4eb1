// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/layer_name.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {

namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-.+@").find(c) != std::string_view::npos;
}

}  // namespace

std::string wrong_in_layer_name(std::string_view name) {
  if (name.empty()) return "it is empty";
  if (name.size() > kLongestName) return fmt::format("it has {} characters", name.size());
  int parts = 0;
  for (std::size_t begin = 0; begin <= name.size(); ++parts) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part.empty()) return "a part of it is empty";
    if (part == "." || part == "..") return fmt::format("a part of it is '{}'", part);
    for (const char c : part)
      if (!is_name_character(c))
        return fmt::format("it has the character '{}'", printable(std::string_view(&c, 1)));
    begin = end + 1;
  }
  return parts > kMostNameParts ? fmt::format("it has {} parts", parts) : std::string();
}

std::string printable(std::string_view text) {
  constexpr std::size_t kMost = 80;
  std::string out;
  for (const char c : text.substr(0, kMost)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return text.size() > kMost ? out + "..." : out;
}

}  // namespace lockstep
