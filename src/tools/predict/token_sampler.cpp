// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/predict/token_sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/philox.h"

namespace lockstep {

namespace {

/// How many of `weights`, which descend, have together at least the share `top_p` of their sum.
std::size_t nucleus(const std::vector<double>& weights, double top_p) {
  const double wanted = top_p * std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i];
    if (sum >= wanted) return i + 1;
  }
  return weights.size();
}

}  // namespace

TokenSampler::TokenSampler(const TokenChoice& choice, std::vector<std::int32_t> candidates)
    : choice_(choice), candidates_(std::move(candidates)) {
  LOCKSTEP_CHECK(!candidates_.empty(), "there is no token to choose");
}

std::int32_t TokenSampler::choose(std::span<const float> logits, std::uint32_t number) const {
  const auto logit = [&](std::int32_t id) {
    return static_cast<double>(logits[static_cast<std::size_t>(id)]);
  };
  for (std::int32_t id : candidates_)
    if (!std::isfinite(logit(id)))
      throw Error(ErrorKind::numeric, fmt::format("the model's output for token {} is not finite", id));
  std::vector<std::int32_t> order = candidates_;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return logit(a) > logit(b); });
  if (choice_.temperature == 0) return order.front();
  if (choice_.top_k > 0) order.resize(std::min(order.size(), static_cast<std::size_t>(choice_.top_k)));
  std::vector<double> weights;
  for (std::int32_t id : order)
    weights.push_back(std::exp((logit(id) - logit(order.front())) / choice_.temperature));
  if (choice_.top_p < 1) weights.resize(nucleus(weights, choice_.top_p));
  const PhiloxBlock words = philox_words(choice_.seed, philox_purpose("predict/sample"), number, 0, 0);
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double left = (static_cast<double>(words[0]) * 0x1p-32 + static_cast<double>(words[1]) * 0x1p-64) * total;
  for (std::size_t i = 0; i + 1 < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return order[i];
  }
  return order[weights.size() - 1];
}

}  // namespace lockstep
