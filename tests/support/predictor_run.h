// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests of a Predictor: what Estimator::predict() says about the samples of an input.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "support/estimator_run.h"

namespace lockstep {

/// The rows of a head for all samples, on rank 0; empty on others. All ranks.
inline std::vector<float> streamed(Estimator& estimator, const InputFunction& input,
                                   const std::string& head = "") {
  std::vector<float> all;
  const auto stream = estimator.predict(input);
  while (stream->next()) {
    const std::span<const float> rows = stream->values(head);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

/// Equal in every bit. Values that are all alike show nothing.
inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return !a.empty() && a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace lockstep
