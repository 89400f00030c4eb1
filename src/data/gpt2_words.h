// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// GPT-2's pre-tokenizer: cuts a text into the words in which BPE merges bytes, by the regular expression
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// (Radford et al. 2019, encoder.py). Every byte belongs to one word.
#pragma once

#include <cstddef>
#include <string_view>

namespace lockstep {

/// The bytes of the first word of `text`, which is valid UTF-8 and not empty.
std::size_t gpt2_word_bytes(std::string_view text);

}  // namespace lockstep
