// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/text_info.h"

#include "core/hash.h"
#include "data/byte_pair_file.h"
#include "data/utf8.h"

namespace lockstep {

void TextInfo::for_each_id(std::string_view text, FunctionRef<void(std::int32_t)> take) const {
  if (byte_pairs != nullptr) return byte_pairs->encode(text, take);
  tokenizer.for_each(text, [&](std::string_view token) { take(vocabulary.id(token)); });
}

std::string TextInfo::text_of(std::span<const std::int32_t> ids) const {
  if (byte_pairs != nullptr) {
    std::string bytes;
    for (const std::int32_t id : ids) bytes += byte_pairs->bytes_of(id);
    return with_replacements(bytes);
  }
  std::vector<std::string> tokens;
  for (const std::int32_t id : ids) tokens.push_back(vocabulary.word(id).text);
  return tokenizer.join(tokens);
}

bool TextInfo::is_special(std::int64_t id) const {
  return byte_pairs != nullptr ? byte_pairs->is_special(id) : vocabulary.is_special(id);
}

std::string TextInfo::digest() const {
  if (byte_pairs == nullptr) return vocabulary.digest();
  Digest digest;
  digest.add(std::string_view(tokenizer_json(byte_pairs->table()))).add(std::int64_t{padding_id});
  return digest.hex();
}

TextInfo text_info_of(std::shared_ptr<const BytePairs> byte_pairs) {
  return {.tokenizer = {.unit = TokenUnit::bpe},
          .vocabulary = Vocabulary::of_tokens(byte_pairs->table().tokens),
          .byte_pairs = std::move(byte_pairs)};
}

}  // namespace lockstep
