// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "data/utf8.h"

namespace lockstep {

namespace {

struct CodeRange {
  char32_t first, last;
};
/// The code points beyond ASCII that separate words, by Unicode block or part of one.
constexpr std::array kSeparators = {
    CodeRange{0x0080, 0x00A9},    // controls, no-break space, signs up to the copyright sign
    CodeRange{0x00AB, 0x00B4},    // all but the ordinal indicators, the micro sign
    CodeRange{0x00B6, 0x00B9},    // pilcrow, middle dot, cedilla, superscript one
    CodeRange{0x00BB, 0x00BF},    // quotation mark, fractions, inverted question mark
    CodeRange{0x00D7, 0x00D7},    // multiplication sign
    CodeRange{0x00F7, 0x00F7},    // division sign
    CodeRange{0x1680, 0x1680},    // Ogham space mark
    CodeRange{0x2000, 0x206F},    // general punctuation, with all kinds of spaces
    CodeRange{0x20A0, 0x20CF},    // currency symbols
    CodeRange{0x2190, 0x2BFF},    // arrows, mathematical operators, shapes, dingbats
    CodeRange{0x2E00, 0x2E7F},    // supplemental punctuation
    CodeRange{0x3000, 0x3004},    // ideographic space, comma, full stop
    CodeRange{0x3008, 0x3020},    // brackets
    CodeRange{0xFE30, 0xFE6F},    // compatibility and small forms of punctuation
    CodeRange{0xFF01, 0xFF0F},    // full-width punctuation
    CodeRange{0xFF1A, 0xFF20},    // more full-width punctuation
    CodeRange{0xFF3B, 0xFF40},    // more full-width punctuation
    CodeRange{0xFF5B, 0xFF65},    // more full-width punctuation
    CodeRange{0x1F000, 0x1FAFF},  // pictographs
};

bool is_word_code_point(char32_t c) {
  if (c < 0x80) return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return std::none_of(kSeparators.begin(), kSeparators.end(),
                      [c](const CodeRange& range) { return c >= range.first && c <= range.last; });
}

bool is_apostrophe(char32_t c) { return c == '\'' || c == 0x2019; }

}  // namespace

char32_t lower_case_of(char32_t c) {
  const auto within = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
  if (within('A', 'Z')) return c + 32;
  if (c < 0xC0) return c;
  if (within(0xC0, 0xDE)) return c == 0xD7 ? c : c + 32;
  // Latin Extended-A consists of pairs. The capital is at the even code point, in three ranges at the odd
  // one.
  if (within(0x0100, 0x017F)) {
    if (c == 0x0130) return 'i';
    if (c == 0x0178) return 0xFF;
    if (within(0x0139, 0x0148) || within(0x0179, 0x017E)) return c % 2 == 1 ? c + 1 : c;
    if (within(0x0131, 0x0131) || c == 0x0138 || c == 0x0149 || c == 0x017F) return c;
    return c % 2 == 0 ? c + 1 : c;
  }
  if (c == 0x0386) return 0x03AC;
  if (within(0x0388, 0x038A)) return c + 37;
  if (c == 0x038C) return 0x03CC;
  if (c == 0x038E || c == 0x038F) return c + 63;
  if (within(0x0391, 0x03AB)) return c == 0x03A2 ? c : c + 32;
  if (within(0x0400, 0x040F)) return c + 80;
  if (within(0x0410, 0x042F)) return c + 32;
  return c;
}

void Tokenizer::for_each(std::string_view text, FunctionRef<void(std::string_view)> take) const {
  LOCKSTEP_CHECK(unit != TokenUnit::bpe);
  std::string token;
  const auto append = [&](char32_t c) { append_utf8(token, lower_case ? lower_case_of(c) : c); };
  if (unit == TokenUnit::characters) {
    while (!text.empty()) {
      token.clear();
      append(take_code_point(text));
      take(token);
    }
    return;
  }
  while (!text.empty()) {
    const char32_t c = take_code_point(text);
    if (is_word_code_point(c)) {
      append(c);
      continue;
    }
    if (token.empty()) continue;
    std::string_view after = text;
    if (is_apostrophe(c) && !text.empty() && is_word_code_point(take_code_point(after))) {
      append('\'');
      continue;
    }
    take(token);
    token.clear();
  }
  if (!token.empty()) take(token);
}

std::vector<std::string> Tokenizer::tokens(std::string_view text) const {
  std::vector<std::string> all;
  for_each(text, [&](std::string_view token) { all.emplace_back(token); });
  return all;
}

std::string Tokenizer::join(const std::vector<std::string>& tokens) const {
  std::string text;
  for (const std::string& token : tokens) {
    if (unit == TokenUnit::words && !text.empty()) text += ' ';
    text += token;
  }
  return text;
}

}  // namespace lockstep
