// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the readers of text: the options of tokenizer and vocabulary, and storage of token ids in the
// smallest type that can hold them.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset_parts.h"
#include "data/reader_options.h"
#include "data/text_info.h"

namespace lockstep {

template <auto... kPath>
constexpr ParamSpec tokens_option() {
  return option<kPath..., &Tokenizer::unit>("tokens", "words", one_of("words|characters|bpe"),
                                            "unit of a token; words are runs of letters and digits; bpe: "
                                            "those of the tokenizer in the file vocabulary");
}
template <auto... kPath>
constexpr ParamSpec lower_case_option() {
  return option<kPath..., &Tokenizer::lower_case>("lower_case", "false", {},
                                                  "convert the text to lower case; not with tokens: bpe");
}
template <auto... kPath>
constexpr ParamSpec merges_option() {
  return option<kPath...>("merges", "null", {},
                          "with tokens: bpe and a vocab.json: the tokenizer's file merges.txt",
                          Change::place);
}
struct WrittenVocabulary {
  std::int64_t min_count = 0;
  std::optional<std::int64_t> max_vocabulary;
  std::optional<std::string> vocabulary, merges;
};
inline constexpr std::array kTextOptions{
    tokens_option<>(),
    lower_case_option<>(),
    option<&WrittenVocabulary::min_count>("min_count", "1", between(1, 1e12), "rarer tokens become unknown"),
    option<&WrittenVocabulary::max_vocabulary>(
        "max_vocabulary", "null", between(3, 2147483647).or_null(),
        "maximum number of ids, including special ones; the rarest tokens become unknown"),
    option<&WrittenVocabulary::vocabulary>(
        "vocabulary", "null", {},
        "file with one word per line, like vocabulary.txt of a run; null: created from the text. With "
        "tokens: bpe a tokenizer.json, or a vocab.json. min_count and max_vocabulary do not apply to it",
        Change::place),
    merges_option<&WrittenVocabulary::merges>(),
    rows_spec("samples to use, 0-based, last excluded; null: all")};

/// The options of a reader followed by those of all text readers.
template <std::size_t kCount>
constexpr auto with_text_options(const std::array<ParamSpec, kCount>& own) {
  return joined_options(own, kTextOptions);
}
/// Tokenizer and vocabulary: the latter from the file of the option `vocabulary`, or otherwise from the words
/// that `count` adds. `source`: the text, for messages. `rows`: samples are rows with padding, and the reader
/// has the option padding_token.
TextInfo text_option(const Params& params, const std::string& base_directory, const std::string& source,
                     bool rows, FunctionRef<void(WordCounts&)> count);
/// The tokenizer of tokens: bpe in its files. `padding`: the token that fills rows; null: there are no rows.
TextInfo byte_pair_text(const std::string& vocabulary, const std::optional<std::string>& merges,
                        const std::optional<std::string>* padding);
/// Adds the tokens of a text to `counts`.
void count_tokens(const Tokenizer& tokenizer, std::string_view text, WordCounts& counts);

/// The text of a file; lines end with "\n". `adds_end`: the last one, too, if the file ends without.
std::string whole_text(const std::string& path, bool adds_end);

/// Stores `ids` in parts.features as u8, u16 or i32, depending on the size of the vocabulary.
void set_ids(DatasetParts& parts, const std::vector<std::int32_t>& ids, std::int64_t vocabulary_size);

/// A whole text as one row of tokens.
struct TokenRow {
  std::vector<std::int32_t> ids;
  std::shared_ptr<TextInfo> info;
  std::string path;
};
/// A part of a text: [first, last) of its items, as shares of their number.
struct TextPart {
  double first, last;
  /// The items of `count`. Adjacent parts do not overlap.
  RowRange of(std::int64_t count) const;
};
/// For option_as(). Throws Error(config).
TextPart text_part(const Params& params, const ParamSpec& option);
/// Options of readers of one continuous text: its path, and the part of its tokens to use.
struct RunningText {
  std::string path;
  TextPart part{}, vocabulary_part{};
};
inline constexpr std::array kRunningTextOptions{
    option<&RunningText::path>("path", kRequired, {},
                               "the text, plain or gzip, UTF-8; relative to the config file's folder",
                               Change::place),
    option_as<text_part, &RunningText::part>(
        ParamType::reals, "part", "[0, 1]", between(0, 1).note("first, last"),
        "share of the tokens to use, such as [0, 0.9]; adjacent parts share no tokens"),
    option_as<text_part, &RunningText::vocabulary_part>(
        ParamType::reals, "vocabulary_part", "[0, 1]", between(0, 1).note("first, last"),
        "share of the lines from which the vocabulary is created; use the same for training and "
        "evaluation")};
/// Those options, a reader's own ones, and those of all text readers.
template <std::size_t kCount>
constexpr auto with_running_text_options(const std::array<ParamSpec, kCount>& own) {
  return joined_options(kRunningTextOptions, own, kTextOptions);
}
/// Reads the selected tokens of the file in `params`, and the vocabulary unless it is `known`. Lines end with
/// "\n", whatever the file uses.
TokenRow read_running_text(const Params& params, const std::string& base_directory,
                           const TextInfo* known = nullptr);
/// Reads all tokens of another file, with the ids of `info`.
std::vector<std::int32_t> read_tokens(const std::string& path, const TextInfo& info);

}  // namespace lockstep
