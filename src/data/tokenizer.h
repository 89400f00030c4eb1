// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Splits text into tokens. Independent of the locale: the same on every machine.
//
// Characters: every code point is a token. Words: a word is a run of letters and digits; an apostrophe
// between two of them belongs to it ("don't"); everything else separates words. Beyond ASCII all code points
// are letters, except those in kSeparators (tokenizer.cpp): spaces, punctuation, symbols.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/function_ref.h"

namespace lockstep {

/// bpe: tokens of a tokenizer's file, which TextInfo finds (byte_pairs.h).
enum class TokenUnit { words, characters, bpe };

struct Tokenizer {
  TokenUnit unit = TokenUnit::words;
  bool lower_case = false;  ///< see lower_case_of()

  /// Calls `take` for each token of `text` (valid UTF-8), in order. The view is valid only during the call.
  /// Words and characters only.
  void for_each(std::string_view text, FunctionRef<void(std::string_view token)> take) const;
  std::vector<std::string> tokens(std::string_view text) const;
  /// Joins tokens to a readable text: words with spaces between them.
  std::string join(const std::vector<std::string>& tokens) const;
};

/// The simple lower case of Latin, Greek and Cyrillic letters; other code points are unchanged.
char32_t lower_case_of(char32_t code_point);

}  // namespace lockstep
