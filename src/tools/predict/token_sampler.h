// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Chooses the next token of a text from the outputs of a language model.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

struct TokenChoice {
  double temperature = 1;  ///< 0: the likeliest token
  std::int64_t top_k = 0;  ///< 0: all tokens
  double top_p = 1;        ///< share of the probability; 1: all tokens
  std::uint64_t seed = 0;
};

/// A token's probability is softmax(logits / temperature) over the top_k likeliest candidates, and then over
/// the fewest of these that together have at least the share top_p (Holtzman et al. 2020, arXiv:1904.09751).
/// The likeliest one always stays. Ties go to the smaller id. Computed in double.
class TokenSampler {
 public:
  /// `candidates`: the ids that may be chosen, ascending; at least one.
  TokenSampler(const TokenChoice& choice, std::vector<std::int32_t> candidates);

  /// `number` counts the tokens of this text. Throws Error(numeric) if the logit of a candidate is not
  /// finite.
  std::int32_t choose(std::span<const float> logits, std::uint32_t number) const;

 private:
  TokenChoice choice_;
  std::vector<std::int32_t> candidates_;
};

}  // namespace lockstep
