// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/channel_normalizer.h"

#include <algorithm>

#include "core/error.h"

namespace lockstep {

namespace {

/// The least number of values that are processed as a block.
constexpr std::size_t kPatternLength = 64;

std::vector<float> repeated(const std::vector<float>& per_channel, std::size_t channels, std::size_t length) {
  std::vector<float> pattern(length);
  for (std::size_t i = 0; i < length; ++i)
    pattern[i] = per_channel.size() == 1 ? per_channel[0] : per_channel[i % channels];
  return pattern;
}

}  // namespace

ChannelNormalizer::ChannelNormalizer(std::vector<float> mean, std::vector<float> std,
                                     std::int64_t num_channels) {
  const auto channels = static_cast<std::size_t>(num_channels);
  if (mean.empty() && std.empty()) return;
  if (mean.empty()) mean = {0.0F};
  if (std.empty()) std = {1.0F};
  for (const auto* list : {&mean, &std}) LOCKSTEP_CHECK(list->size() == 1 || list->size() == channels);
  const std::size_t pixels = (kPatternLength + channels - 1) / channels;
  mean_ = repeated(mean, channels, pixels * channels);
  std_ = repeated(std, channels, pixels * channels);
}

void ChannelNormalizer::apply(const float* in, float* out, std::int64_t count) const {
  const auto period = static_cast<std::int64_t>(mean_.size());
  const float* const mean = mean_.data();
  const float* const std = std_.data();
  for (std::int64_t first = 0; first < count; first += period) {
    const std::int64_t block = std::min(period, count - first);
    for (std::int64_t i = 0; i < block; ++i) out[first + i] = (in[first + i] - mean[i]) / std[i];
  }
}

}  // namespace lockstep
