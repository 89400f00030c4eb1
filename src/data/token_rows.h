// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the readers of text: texts as rows of a fixed number of token ids. Id 0 is padding, at the end;
// a longer text loses its end, or its beginning; a text without tokens is one unknown token.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "config/option.h"
#include "data/text_info.h"

namespace lockstep {

struct RowOptions {
  std::int64_t max_length = 0;
  bool keeps_end = false;  ///< of a longer text
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

class TokenRows {
 public:
  explicit TokenRows(const RowOptions& options)
      : length_(static_cast<std::size_t>(options.max_length)), keeps_end_(options.keeps_end) {}

  std::int64_t length() const { return static_cast<std::int64_t>(length_); }
  void add(std::string_view text, const TextInfo& info) {
    tokens_.clear();
    info.tokenizer.for_each(text,
                            [&](std::string_view token) { tokens_.push_back(info.vocabulary.id(token)); });
    if (tokens_.empty()) tokens_.push_back(info.vocabulary.unknown_id());
    const std::size_t kept = std::min(tokens_.size(), length_);
    const auto first = keeps_end_ ? tokens_.end() - static_cast<std::ptrdiff_t>(kept) : tokens_.begin();
    ids_.insert(ids_.end(), first, first + static_cast<std::ptrdiff_t>(kept));
    ids_.resize(ids_.size() + length_ - kept, 0);
  }
  const std::vector<std::int32_t>& ids() const { return ids_; }

 private:
  const std::size_t length_;
  const bool keeps_end_;
  std::vector<std::int32_t> tokens_, ids_;
};

}  // namespace lockstep
