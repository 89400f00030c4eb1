// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "config/plain_text.h"

#include <algorithm>

namespace lockstep {

namespace {
constexpr std::size_t kWidth = 88;
}

std::string wrapped(std::string_view text, std::size_t indent) {
  std::string out(indent, ' ');
  std::size_t column = indent;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    if (column > indent && column + 1 + word.size() > kWidth) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  return out + '\n';
}

std::string indented(std::string_view lines, std::size_t indent) {
  std::string out;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    out += std::string(indent, ' ') + std::string(line) + '\n';
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
  }
  return out;
}

std::string_view first_sentence(std::string_view text) {
  for (std::size_t at = text.find_first_of(".;:"); at != std::string_view::npos;
       at = text.find_first_of(".;:", at + 1))
    if (at + 1 == text.size() || text[at + 1] == ' ') return text.substr(0, at);
  return text;
}

}  // namespace lockstep
