// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/unicode_classes.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "data/unicode_classes_table.h"

namespace lockstep {

namespace {

constexpr CharacterClass ascii_class(char32_t c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return CharacterClass::letter;
  if (c >= '0' && c <= '9') return CharacterClass::number;
  if (c == ' ' || (c >= 0x9 && c <= 0xD)) return CharacterClass::space;
  return CharacterClass::other;
}

constexpr auto kAscii = [] {
  std::array<CharacterClass, 0x80> classes{};
  for (char32_t c = 0; c < classes.size(); ++c) classes[c] = ascii_class(c);
  return classes;
}();

bool is_space_beyond_ascii(char32_t c) {
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

}  // namespace

CharacterClass class_of(char32_t c) {
  if (c < kAscii.size()) return kAscii[c];
  const auto after = std::ranges::upper_bound(kClassRanges, c, {}, &ClassRange::first);
  if (after != std::begin(kClassRanges) && c <= std::prev(after)->last) return std::prev(after)->is;
  return is_space_beyond_ascii(c) ? CharacterClass::space : CharacterClass::other;
}

}  // namespace lockstep
