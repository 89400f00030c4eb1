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

#include "config/params.h"
#include "data/text_info.h"

namespace lockstep {

inline constexpr ParamSpec kMaxLengthOption{"max_length", ParamType::integer, kRequired, between(1, 65536),
                                            "number of tokens per sample"};
inline constexpr ParamSpec kTruncateOption{
    "truncate", ParamType::string, "back", one_of("back|front"),
    "which part of a longer text is removed: its end or its beginning"};

class TokenRows {
 public:
  /// Reads these two options.
  explicit TokenRows(const Params& params)
      : length_(static_cast<std::size_t>(params.integer("max_length"))),
        keeps_end_(params.string("truncate") == "front") {}

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
