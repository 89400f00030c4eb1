// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Words and their ids: special words first, then the others by descending frequency, ties by the bytes of the
// word. A function of the text and the options, so every rank and every command computes the same one.
//
// The file (vocabulary.txt) has a line per id: word <tab> count. In words "\\", "\t", "\n" and "\r" stand for
// a backslash, a tab and line ends.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lockstep {

inline constexpr std::string_view kPaddingWord = "<pad>", kUnknownWord = "<unk>";

/// A hash for look-ups without a temporary std::string.
struct WordHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view word) const { return std::hash<std::string_view>()(word); }
};
using WordCounts = std::unordered_map<std::string, std::int64_t, WordHash, std::equal_to<>>;

struct VocabularyOptions {
  bool padding = false;        ///< <pad> is id 0; <unk> is the next one
  std::int64_t min_count = 1;  ///< rarer words become unknown
  /// The maximum number of ids, including special ones.
  std::int64_t max_size = std::numeric_limits<std::int32_t>::max();
};

class Vocabulary {
 public:
  struct Word {
    std::string text;
    std::int64_t count;  ///< occurrences in the text; for <unk>: of all words without an id
  };

  /// Creates a vocabulary from the words of a text and their counts.
  Vocabulary(const WordCounts& counts, const VocabularyOptions& options);
  /// Reads a file: its words in its order (a missing count means 0), preceded by the special words unless it
  /// contains them. Throws Error(data) with the line.
  static Vocabulary from_file(const std::string& path, const VocabularyOptions& options);
  /// Reads the vocabulary of the run that wrote `path`: with <pad> if that is its first line.
  static Vocabulary of_run(const std::string& path);
  /// The words of another vocabulary, in their order, special ones among them.
  static Vocabulary of_words(std::vector<Word> words);
  /// The tokens of a tokenizer that has one for every text: none of them is special or unknown.
  static Vocabulary of_tokens(const std::vector<std::string>& tokens);
  /// The text that from_file() reads.
  std::string file_text() const;

  std::int64_t size() const { return static_cast<std::int64_t>(words_.size()); }
  const std::vector<Word>& words() const { return words_; }
  const Word& word(std::int64_t id) const { return words_[static_cast<std::size_t>(id)]; }
  /// -1: every text has tokens.
  std::int32_t unknown_id() const { return unknown_id_; }
  bool is_special(std::int64_t id) const { return id <= unknown_id_; }
  /// The id of a word; unknown_id() if it has none.
  std::int32_t id(std::string_view word) const;
  /// 32 hexadecimal digits over words and counts.
  std::string digest() const;

 private:
  Vocabulary() = default;
  explicit Vocabulary(const VocabularyOptions& options);
  void add(std::string word, std::int64_t count);

  std::vector<Word> words_;
  std::unordered_map<std::string, std::int32_t, WordHash, std::equal_to<>> ids_;
  std::int32_t unknown_id_ = 0;
};

/// A word as shown in files and messages: "\n" for a line end.
std::string escaped_word(std::string_view word);

}  // namespace lockstep
