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

#include "config/params.h"
#include "data/dataset_parts.h"
#include "data/text_info.h"

namespace lockstep {

inline constexpr std::array kTextOptions{
    ParamSpec{"tokens", ParamType::string, "words", one_of("words|characters"),
              "unit of a token; words are runs of letters and digits"},
    ParamSpec{"lower_case", ParamType::boolean, "false", {}, "convert the text to lower case"},
    ParamSpec{"min_count", ParamType::integer, "1", between(1, 1e12), "rarer tokens become unknown"},
    ParamSpec{"max_vocabulary", ParamType::integer, "null", between(3, 2147483647).or_null(),
              "maximum number of ids, including special ones; the rarest tokens become unknown"},
    ParamSpec{"vocabulary",
              ParamType::string,
              "null",
              {},
              "file with one word per line, like vocabulary.txt of a run; null: created from the text. "
              "min_count and max_vocabulary do not apply to it",
              Change::place},
    ParamSpec{"rows", ParamType::integers, "null", between(0, 1e15).note("first, last"),
              "samples to use, 0-based, last excluded; null: all"}};

/// The options of a reader followed by those of all text readers.
template <std::size_t Count>
constexpr std::array<ParamSpec, Count + kTextOptions.size()> with_text_options(
    const std::array<ParamSpec, Count>& own) {
  std::array<ParamSpec, Count + kTextOptions.size()> all{};
  for (std::size_t i = 0; i < Count; ++i) all[i] = own[i];
  for (std::size_t i = 0; i < kTextOptions.size(); ++i) all[Count + i] = kTextOptions[i];
  return all;
}

Tokenizer tokenizer_option(const Params& params);
/// The vocabulary from the file of the option `vocabulary`, or otherwise from the words that `count` adds.
Vocabulary vocabulary_option(const Params& params, const std::string& base_directory, bool padding,
                             FunctionRef<void(WordCounts&)> count);
/// Adds the tokens of a text to `counts`.
void count_tokens(const Tokenizer& tokenizer, std::string_view text, WordCounts& counts);

/// Stores `ids` in parts.features as u8, u16 or i32, depending on the size of the vocabulary.
void set_ids(DatasetParts& parts, const std::vector<std::int32_t>& ids, std::int64_t vocabulary_size);

/// A whole text as one row of tokens.
struct TokenRow {
  std::vector<std::int32_t> ids;
  std::shared_ptr<TextInfo> info;
};
/// Options of readers of one continuous text: its path, and the part of its tokens to use.
inline constexpr std::array kRunningTextOptions{
    ParamSpec{"path",
              ParamType::string,
              kRequired,
              {},
              "the text, plain or gzip, UTF-8; relative to the config file's folder",
              Change::place},
    ParamSpec{"part", ParamType::reals, "[0, 1]", between(0, 1).note("first, last"),
              "share of the tokens to use, such as [0, 0.9]; adjacent parts share no tokens"},
    ParamSpec{
        "vocabulary_part", ParamType::reals, "[0, 1]", between(0, 1).note("first, last"),
        "share of the lines from which the vocabulary is created; use the same for training and evaluation"}};
/// Reads the selected tokens of the file in `params`, and the vocabulary unless it is `known`. Lines end with
/// "\n", whatever the file uses.
TokenRow read_running_text(const Params& params, const std::string& base_directory,
                           const TextInfo* known = nullptr);
/// Reads all tokens of another file, with the ids of `info`.
std::vector<std::int32_t> read_tokens(const std::string& path, const TextInfo& info);

}  // namespace lockstep
