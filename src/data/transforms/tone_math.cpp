// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/tone_math.h"

#include <algorithm>
#include <array>

namespace lockstep {

namespace {

constexpr int kLevels = 256;

int level_of(float value, float max) {
  return std::clamp(static_cast<int>(value / max * (kLevels - 1) + 0.5F), 0, kLevels - 1);
}
float value_of(int level, float max) { return static_cast<float>(level) * max / (kLevels - 1); }

/// The level that each level becomes; false: all stay.
bool equalizing(const std::array<std::int64_t, kLevels>& counts, std::array<int, kLevels>& table) {
  std::int64_t all = 0, last = 0;
  for (const std::int64_t count : counts) {
    all += count;
    if (count > 0) last = count;
  }
  const std::int64_t step = (all - last) / (kLevels - 1);
  if (step == 0) return false;
  std::int64_t below = 0;
  for (std::size_t level = 0; level < kLevels; ++level) {
    table[level] =
        level == 0 ? 0 : static_cast<int>(std::min<std::int64_t>((below + step / 2) / step, kLevels - 1));
    below += counts[level];
  }
  return true;
}

}  // namespace

void posterize(float* values, const ColorImage& image, int bits) {
  const int mask = kLevels - (1 << (8 - bits));
  for (std::int64_t i = 0; i < image.pixels * image.channels; ++i)
    values[i] = value_of(level_of(values[i], image.max) & mask, image.max);
}

void solarize(float* values, const ColorImage& image, float threshold) {
  for (std::int64_t i = 0; i < image.pixels * image.channels; ++i)
    if (values[i] >= threshold) values[i] = image.max - values[i];
}

void auto_contrast(float* values, const ColorImage& image) {
  for (std::int64_t c = 0; c < image.channels; ++c) {
    float least = values[c], most = values[c];
    for (std::int64_t i = 0; i < image.pixels; ++i) {
      least = std::min(least, values[i * image.channels + c]);
      most = std::max(most, values[i * image.channels + c]);
    }
    if (!(most > least)) continue;
    const float scale = image.max / (most - least);
    for (std::int64_t i = 0; i < image.pixels; ++i) {
      float& value = values[i * image.channels + c];
      value = std::clamp((value - least) * scale, 0.0F, image.max);
    }
  }
}

void equalize(float* values, const ColorImage& image) {
  for (std::int64_t c = 0; c < image.channels; ++c) {
    std::array<std::int64_t, kLevels> counts{};
    for (std::int64_t i = 0; i < image.pixels; ++i)
      ++counts[static_cast<std::size_t>(level_of(values[i * image.channels + c], image.max))];
    std::array<int, kLevels> table{};
    if (!equalizing(counts, table)) continue;
    for (std::int64_t i = 0; i < image.pixels; ++i) {
      float& value = values[i * image.channels + c];
      value = value_of(table[static_cast<std::size_t>(level_of(value, image.max))], image.max);
    }
  }
}

void change_sharpness(float* values, const Grid& image, float max, float factor, float* scratch) {
  const std::int64_t channels = image.channels, row = image.width * channels;
  if (image.height <= 2 || image.width <= 2) return;
  std::copy_n(values, image.num_elements(), scratch);
  for (std::int64_t y = 1; y + 1 < image.height; ++y)
    for (std::int64_t i = y * row + channels; i < (y + 1) * row - channels; ++i) {
      float sum = 4 * scratch[i];
      for (const std::int64_t line : {i - row, i, i + row})
        sum += scratch[line - channels] + scratch[line] + scratch[line + channels];
      values[i] = std::clamp(factor * scratch[i] + (1 - factor) * (sum / 13), 0.0F, max);
    }
}

}  // namespace lockstep
