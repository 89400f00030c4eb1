// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Pictures and sounds as values of summaries.
//
// Tags: `name/image/0`, `name/image/1`, ...; `name/image` if at most one is asked for, so that tags do not
// depend on how many there are. Sounds: `name/audio`.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "io/summary_value.h"

namespace lockstep {

/// Row-major [count, height, width, channels]; channels: 1, 3 or 4.
struct ImagesShape {
  std::int64_t count = 0, height = 0, width = 0, channels = 0;
};

struct ImageOptions {
  int max_outputs = 3;
  /// The colour of pixels with a channel that is NaN or infinite.
  std::array<std::uint8_t, 4> bad_color = {255, 0, 0, 255};
};

/// 8 bits are stored as they are.
std::vector<SummaryValue> image_values(std::string_view name, const ImagesShape& shape,
                                       std::span<const std::uint8_t> pixels,
                                       const ImageOptions& options = {});
/// Each picture is scaled by itself, over its finite pixels. With a negative number among them: v * 127 /
/// max|v| + 128, else v * 255 / max; fractions are cut off. A maximum below 1e-6 gives 128, and 0.
std::vector<SummaryValue> image_values(std::string_view name, const ImagesShape& shape,
                                       std::span<const float> pixels, const ImageOptions& options = {});

/// Row-major [count, frames, channels] of numbers in [-1, 1]; what is outside is cut to it. 16-bit WAV files.
struct SoundsShape {
  std::int64_t count = 0, frames = 0, channels = 1;
};
std::vector<SummaryValue> audio_values(std::string_view name, const SoundsShape& shape,
                                       std::span<const float> samples, double sample_rate,
                                       int max_outputs = 3);

}  // namespace lockstep
