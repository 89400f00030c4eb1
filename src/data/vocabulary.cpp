// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/vocabulary.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "core/hash.h"
#include "data/utf8.h"
#include "io/input_file.h"

namespace lockstep {

namespace {

constexpr std::string_view kEscaped = "\\\t\n\r", kLetters = "\\tnr";

std::string unescaped_word(std::string_view text, const std::string& where) {
  std::string word;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      word += text[i];
      continue;
    }
    const std::size_t letter = i + 1 < text.size() ? kLetters.find(text[i + 1]) : std::string_view::npos;
    if (letter == std::string_view::npos)
      throw Error(ErrorKind::data, "a backslash in a word must be followed by \\, t, n or r", where,
                  "Write a backslash as \\\\.");
    word += kEscaped[letter];
    ++i;
  }
  return word;
}

std::int64_t count_of(std::string_view text, const std::string& where) {
  std::int64_t count = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (failed != std::errc() || end != text.data() + text.size() || count < 0)
    throw Error(ErrorKind::data, fmt::format("'{}' is not a count", text.substr(0, 40)), where,
                "A line is a word, or a word, a tab and a whole number.");
  return count;
}

}  // namespace

std::string escaped_word(std::string_view word) {
  std::string text;
  for (char c : word) {
    const std::size_t found = kEscaped.find(c);
    if (found == std::string_view::npos) {
      text += c;
    } else {
      text += '\\';
      text += kLetters[found];
    }
  }
  return text;
}

Vocabulary::Vocabulary(const VocabularyOptions& options) {
  if (options.padding) add(std::string(kPaddingWord), 0);
  unknown_id_ = static_cast<std::int32_t>(size());
  add(std::string(kUnknownWord), 0);
}

Vocabulary::Vocabulary(const WordCounts& counts, const VocabularyOptions& options) : Vocabulary(options) {
  std::vector<std::pair<std::string_view, std::int64_t>> sorted(counts.begin(), counts.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::int64_t unknown = 0;
  for (const auto& [word, count] : sorted) {
    const bool known = count >= options.min_count && size() < options.max_size && !ids_.contains(word);
    if (known) {
      add(std::string(word), count);
    } else {
      unknown += count;
    }
  }
  words_[static_cast<std::size_t>(unknown_id_)].count = unknown;
}

Vocabulary Vocabulary::from_file(const std::string& path, const VocabularyOptions& options) {
  Vocabulary vocabulary(options);
  InputFile file(path);
  LineReader lines(file);
  for (std::string_view line; lines.next(line);) {
    require_utf8(line, path, lines.line_number());
    const std::string where = fmt::format("{}, line {}", path, lines.line_number());
    const std::size_t tab = line.find('\t');
    std::string word = unescaped_word(line.substr(0, tab), where);
    const std::int64_t count = tab == std::string_view::npos ? 0 : count_of(line.substr(tab + 1), where);
    if (word.empty()) throw Error(ErrorKind::data, "has no word", where, "Remove blank lines.");
    const bool at_front = lines.line_number() <= 2;
    if (at_front && word == kPaddingWord && !options.padding) continue;  // written by a reader that pads
    const auto known = vocabulary.ids_.find(word);
    if (known == vocabulary.ids_.end()) {
      vocabulary.add(std::move(word), count);
    } else if (vocabulary.is_special(known->second) && at_front) {
      vocabulary.words_[static_cast<std::size_t>(known->second)].count = count;
    } else {
      throw Error(ErrorKind::data, fmt::format("the word '{}' occurs twice", escaped_word(word)), where,
                  "Every word has one id; <pad> and <unk> are allowed only in the first two lines.");
    }
  }
  if (vocabulary.size() == vocabulary.unknown_id_ + 1)
    throw Error(ErrorKind::data, "holds no words", path, "A vocabulary has a word per line.");
  return vocabulary;
}

Vocabulary Vocabulary::of_run(const std::string& path) {
  InputFile file(path);
  LineReader lines(file);
  std::string_view first;
  const bool padding = lines.next(first) && first.substr(0, first.find('\t')) == kPaddingWord;
  return from_file(path, {.padding = padding});
}

Vocabulary Vocabulary::of_words(std::vector<Word> words) {
  Vocabulary vocabulary;
  for (Word& word : words) vocabulary.add(std::move(word.text), word.count);
  const auto unknown = vocabulary.ids_.find(kUnknownWord);
  if (unknown != vocabulary.ids_.end()) vocabulary.unknown_id_ = unknown->second;
  return vocabulary;
}

Vocabulary Vocabulary::of_tokens(const std::vector<std::string>& tokens) {
  Vocabulary vocabulary;
  for (const std::string& token : tokens) vocabulary.add(token, 0);
  vocabulary.unknown_id_ = -1;
  return vocabulary;
}

std::string Vocabulary::file_text() const {
  std::string text;
  for (const Word& word : words_) text += fmt::format("{}\t{}\n", escaped_word(word.text), word.count);
  return text;
}

void Vocabulary::add(std::string word, std::int64_t count) {
  ids_.emplace(word, static_cast<std::int32_t>(size()));
  words_.push_back({std::move(word), count});
}

std::int32_t Vocabulary::id(std::string_view word) const {
  const auto found = ids_.find(word);
  return found == ids_.end() ? unknown_id_ : found->second;
}

std::string Vocabulary::digest() const {
  Digest digest;
  for (const Word& word : words_) digest.add(std::string_view(word.text)).add(word.count);
  return digest.hex();
}

}  // namespace lockstep
