// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/gpt2_words.h"

#include "data/unicode_classes.h"
#include "data/utf8.h"

namespace lockstep {

namespace {

/// 's|'t|'re|'ve|'m|'ll|'d; 0: the text begins with none of them.
std::size_t contraction_bytes(std::string_view text) {
  if (text.size() < 2 || text[0] != '\'') return 0;
  const char first = text[1];
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  const std::string_view two = text.substr(1, 2);
  return two == "re" || two == "ve" || two == "ll" ? 3 : 0;
}

CharacterClass class_at(std::string_view text, std::size_t at) {
  std::string_view rest = text.substr(at);
  return class_of(take_code_point(rest));
}

/// Where the characters of the class `is` that begin at `at` end.
std::size_t end_of_run(std::string_view text, std::size_t at, CharacterClass is) {
  while (at < text.size() && class_at(text, at) == is) at += code_point_bytes(text.substr(at));
  return at;
}

}  // namespace

std::size_t gpt2_word_bytes(std::string_view text) {
  if (const std::size_t bytes = contraction_bytes(text); bytes > 0) return bytes;
  const std::size_t first = text.front() == ' ' ? 1 : 0;
  if (first < text.size())
    if (const CharacterClass is = class_at(text, first); is != CharacterClass::space)
      return end_of_run(text, first, is);
  // Blanks, but not the last one if a word comes next: it begins that word if it is a space.
  std::size_t last = 0, end = 0;
  while (end < text.size() && class_at(text, end) == CharacterClass::space) {
    last = end;
    end += code_point_bytes(text.substr(end));
  }
  return end == text.size() || last == 0 ? end : last;
}

}  // namespace lockstep
