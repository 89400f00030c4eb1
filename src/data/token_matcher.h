// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds tokens that a tokenizer knows as a whole, such as <|endoftext|>, in a text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/vocabulary.h"

namespace lockstep {

class TokenMatcher {
 public:
  /// `token` is not empty. False: it is there already.
  bool add(std::string_view token, std::int32_t id);

  struct Match {
    std::size_t at, bytes;  ///< bytes = 0: no token is in the text
    std::int32_t id;
  };
  /// The first token in `text`; of several at one place the longest.
  Match find(std::string_view text) const;

 private:
  std::array<std::vector<std::size_t>, 256> lengths_;  ///< of the tokens with this first byte, longest first
  std::string first_bytes_;
  std::unordered_map<std::string, std::int32_t, WordHash, std::equal_to<>> ids_;
};

}  // namespace lockstep
