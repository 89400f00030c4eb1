// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Files of byte-level BPE tokenizers: tokenizer.json of Hugging Face, and GPT-2's vocab.json with merges.txt.
// Of tokenizer.json is read what BytePairs can do with the same ids; all else is refused by its name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "data/byte_pairs.h"

namespace lockstep {

/// Reads tokenizer.json, or vocab.json together with `merges`. Of the latter, <|endoftext|> is a special
/// token if the vocabulary has it. Throws Error(data) with the file.
BytePairs read_byte_pairs(const std::string& path, const std::optional<std::string>& merges);

/// Of the text of a tokenizer.json. Throws Error(data) at `where`.
BytePairs byte_pairs_from(std::string_view text, const std::string& where);
/// The text of a tokenizer.json, a line per token and per merge.
std::string tokenizer_json(const BytePairTable& table);

}  // namespace lockstep
