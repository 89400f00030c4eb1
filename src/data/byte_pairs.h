// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Byte-level BPE (byte pair encoding): Sennrich, Haddow, Birch 2016, "Neural Machine Translation of Rare
// Words with Subword Units" (arXiv:1508.07909); of bytes: Radford et al. 2019, GPT-2. Ids and texts are those
// of the package `tokenizers` of Hugging Face.
//
// Added tokens (<|endoftext|>) are found first. What lies between them is cut into words (gpt2_words.h). In a
// word each byte is a token at first. Then two neighbouring tokens become one, again and again: those whose
// merge comes first in the list of merges, and of equal ones the leftmost.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/function_ref.h"
#include "data/token_matcher.h"

namespace lockstep {

/// What files have of a tokenizer.
struct BytePairTable {
  struct Added {
    std::int32_t id;
    bool special;        ///< not part of a text that is generated
    bool normalized;     ///< found after all that are not
    bool in_vocabulary;  ///< of the model, too
  };
  /// By id. As files have them: a visible character stands for each byte ("Ġthe" is " the").
  std::vector<std::string> tokens;
  std::vector<std::pair<std::int32_t, std::int32_t>>
      merges;  ///< tokens that become one, the first merge first
  std::vector<Added> added;
  bool add_prefix_space = false;  ///< a text that does not begin with a space gets one
  bool ignore_merges = false;     ///< a word that is a token is that token
};

class BytePairs {
 public:
  /// Throws Error(data) at `where` if a byte has no token, or a merge's result has none.
  BytePairs(BytePairTable table, const std::string& where);

  const BytePairTable& table() const { return table_; }
  std::int64_t size() const { return static_cast<std::int64_t>(table_.tokens.size()); }
  /// A special token: added as such.
  bool is_special(std::int64_t id) const { return special_[static_cast<std::size_t>(id)]; }
  /// Of a text: not valid UTF-8 if the token is a part of a character.
  std::string_view bytes_of(std::int64_t id) const { return bytes_[static_cast<std::size_t>(id)]; }

  /// Calls `take` for each id of `text` (valid UTF-8), in order. Any number of threads.
  void encode(std::string_view text, FunctionRef<void(std::int32_t id)> take) const;

 private:
  using TokenIds = std::unordered_map<std::string, std::int32_t, WordHash, std::equal_to<>>;
  /// A map from pairs of tokens to the rank of their merge.
  class Ranks {
   public:
    static constexpr std::int32_t kNone = 2147483647;
    void reserve(std::size_t count);
    /// False: the pair is there already.
    bool add(std::int32_t left, std::int32_t right, std::int32_t rank);
    std::int32_t of(std::int32_t left, std::int32_t right) const;

   private:
    struct Slot {
      std::int32_t left = -1, right = -1, rank = kNone;
    };
    std::size_t first_slot(std::int32_t left, std::int32_t right) const;
    std::vector<Slot> slots_;  ///< open addressing; their number is a power of two
    int shift_ = 63;
  };
  struct Scratch;

  void set_bytes(const std::string& where);
  void set_merges(const std::string& where);
  void encode_between(std::string_view text, FunctionRef<void(std::int32_t)> take) const;
  void encode_word(std::string_view word, Scratch& scratch, FunctionRef<void(std::int32_t)> take) const;
  void merge_short(std::vector<std::int32_t>& ids, Scratch& scratch) const;
  void merge_long(std::vector<std::int32_t>& ids, Scratch& scratch) const;

  BytePairTable table_;
  std::vector<std::string> bytes_;
  std::vector<bool> special_;
  std::array<std::int32_t, 256> byte_ids_{};
  Ranks ranks_;
  std::vector<std::int32_t> merged_;  ///< the token that a merge makes
  TokenIds whole_words_;              ///< with ignore_merges: tokens of the model by their bytes
  TokenMatcher added_first_, added_then_;
};

/// The visible characters of bytes.
std::string visible_bytes(std::string_view bytes);

}  // namespace lockstep
