// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The text-specific part of a data set: the tokenizer and the vocabulary. The same for the
// training and the evaluation set; part of the data set's fingerprint.
#pragma once

#include <memory>
#include <span>

#include "data/tokenizer.h"
#include "data/vocabulary.h"

namespace lockstep {

class BytePairs;

struct TextInfo {
  Tokenizer tokenizer;
  Vocabulary vocabulary;
  bool next_token_labels = false;  ///< features are windows of text, labels the token after each
  std::shared_ptr<const BytePairs> byte_pairs{};  ///< of TokenUnit::bpe
  std::int32_t padding_id = 0;                    ///< follows the end of a text in a row of max_length ids

  /// Calls `take` for each id of `text` (valid UTF-8), in order.
  void for_each_id(std::string_view text, FunctionRef<void(std::int32_t id)> take) const;
  /// The text of ids of the vocabulary; U+FFFD for what is no character.
  std::string text_of(std::span<const std::int32_t> ids) const;
  /// A token that no text has: padding, unknown, or special in the tokenizer's file.
  bool is_special(std::int64_t id) const;
  /// The only token of a text that has none in a row: unknown, or padding.
  std::int32_t empty_text_id() const { return byte_pairs != nullptr ? padding_id : vocabulary.unknown_id(); }
  /// 32 hexadecimal digits over all that decides which ids a text has.
  std::string digest() const;
};

/// Of a tokenizer that comes from a file.
TextInfo text_info_of(std::shared_ptr<const BytePairs> byte_pairs);

}  // namespace lockstep
