// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the readers of text: texts as rows of a fixed number of token ids. The padding (id 0, with bpe
// a token of the tokenizer) is at the end; a longer text loses its end, or its beginning. A text without
// tokens is one unknown token, with bpe one of padding.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/option.h"
#include "data/sequence_form.h"
#include "data/text_info.h"

namespace lockstep {

struct RowOptions {
  std::int64_t max_length = 0;
  bool keeps_end = false;  ///< of a longer text
  std::optional<std::string> padding_token;
};
template <auto... kPath>
constexpr ParamSpec max_length_option() {
  return option<kPath..., &RowOptions::max_length>("max_length", kRequired, between(1, 65536),
                                                   "number of tokens per sample");
}
template <auto... kPath>
constexpr ParamSpec truncate_option() {
  return option_as<is_second_choice, kPath..., &RowOptions::keeps_end>(
      ParamType::string, "truncate", "back", one_of("back|front"),
      "which part of a longer text is removed: its end or its beginning");
}

template <auto... kPath>
constexpr ParamSpec padding_token_option() {
  return option<kPath..., &RowOptions::padding_token>(
      "padding_token", "null", {},
      "with tokens: bpe: the token after the end of a text that is shorter than max_length, such as "
      "<|endoftext|>");
}

/// How rows of this text tell their lengths.
inline SequenceForm row_form(const TextInfo& info) {
  return {.mark = SequenceForm::Mark::zeros, .padding = static_cast<float>(info.padding_id)};
}

class TokenRows {
 public:
  explicit TokenRows(const RowOptions& options)
      : length_(static_cast<std::size_t>(options.max_length)), keeps_end_(options.keeps_end) {}

  std::int64_t length() const { return static_cast<std::int64_t>(length_); }
  void add(std::string_view text, const TextInfo& info) {
    tokens_.clear();
    info.for_each_id(text, [&](std::int32_t id) { tokens_.push_back(id); });
    if (tokens_.empty()) tokens_.push_back(info.empty_text_id());
    const std::size_t kept = std::min(tokens_.size(), length_);
    const auto first = keeps_end_ ? tokens_.end() - static_cast<std::ptrdiff_t>(kept) : tokens_.begin();
    ids_.insert(ids_.end(), first, first + static_cast<std::ptrdiff_t>(kept));
    ids_.resize(ids_.size() + length_ - kept, info.padding_id);
  }
  const std::vector<std::int32_t>& ids() const { return ids_; }

 private:
  const std::size_t length_;
  const bool keeps_end_;
  std::vector<std::int32_t> tokens_, ids_;
};

}  // namespace lockstep
