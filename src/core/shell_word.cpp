// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/shell_word.h"

#include <algorithm>
#include <cctype>

namespace lockstep {

namespace {

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || static_cast<signed char>(c) < 0 ||
         std::string_view("_./-+:,@%=").find(c) != std::string_view::npos;
}

bool breaks_quotes(char c) {
  return std::iscntrl(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("'\"$`\\!").find(c) != std::string_view::npos;
}

}  // namespace

std::string shell_word(const std::string& name) {
  const std::string word = name.starts_with('-') ? "./" + name : name;
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string name_in_quotes(const std::string& name) {
  return std::ranges::any_of(name, breaks_quotes) ? "FILE" : name;
}

}  // namespace lockstep
