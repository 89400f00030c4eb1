// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/summary_media.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "io/png_file.h"

namespace lockstep {

namespace {

constexpr float kZeroBelow = 1e-6F;

std::string tag_of(std::string_view name, std::string_view kind, int max_outputs, std::int64_t index) {
  return max_outputs == 1 ? fmt::format("{}/{}", name, kind) : fmt::format("{}/{}/{}", name, kind, index);
}

void require_images(std::string_view name, const ImagesShape& shape, std::size_t num_pixels,
                    int max_outputs) {
  const std::int64_t c = shape.channels;
  LOCKSTEP_REQUIRE(max_outputs >= 1, ErrorKind::config,
                   "pictures '{}': max_outputs must be at least 1, not {}", name, max_outputs);
  LOCKSTEP_REQUIRE(shape.height > 0 && shape.width > 0 && (c == 1 || c == 3 || c == 4), ErrorKind::config,
                   "pictures '{}': need height and width, and 1, 3 or 4 channels, not {} x {} x {}", name,
                   shape.height, shape.width, c);
  LOCKSTEP_REQUIRE(static_cast<std::size_t>(shape.count * shape.height * shape.width * c) == num_pixels,
                   ErrorKind::config, "pictures '{}': {} numbers are not {} x {} x {} x {}", name, num_pixels,
                   shape.count, shape.height, shape.width, c);
}

/// `fill(index, picture)` writes the pixels.
template <typename Fill>
std::vector<SummaryValue> pictures(std::string_view name, const ImagesShape& shape, int max_outputs,
                                   Fill&& fill) {
  std::vector<SummaryValue> values;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(shape.count, max_outputs); ++i) {
    Picture picture(static_cast<int>(shape.width), static_cast<int>(shape.height),
                    static_cast<int>(shape.channels), 0);
    fill(i, picture);
    values.push_back(
        {tag_of(name, "image", max_outputs, i),
         ImageData{picture.height, picture.width, static_cast<int>(shape.channels), png_of(picture)}});
  }
  return values;
}

/// How the numbers of one picture become 8 bits.
struct Scaling {
  float scale, offset;
};

bool is_finite_pixel(std::span<const float> pixel) {
  return std::ranges::all_of(pixel, [](float value) { return std::isfinite(value); });
}

Scaling scaling_of(std::span<const float> image, std::size_t channels) {
  float least = INFINITY, most = -INFINITY;
  for (std::size_t at = 0; at < image.size(); at += channels) {
    const auto pixel = image.subspan(at, channels);
    if (!is_finite_pixel(pixel)) continue;
    for (const float value : pixel) {
      least = std::min(least, value);
      most = std::max(most, value);
    }
  }
  if (least < 0) {
    const float size = std::max(std::abs(least), std::abs(most));
    return {size < kZeroBelow ? 0 : 127 / size, 128};
  }
  return {most < kZeroBelow ? 0 : 255 / most, 0};
}

void append_le(std::string& to, std::uint32_t value, int bytes) {
  for (int byte = 0; byte < bytes; ++byte) to.push_back(static_cast<char>((value >> (8 * byte)) & 0xFF));
}

/// A RIFF WAVE file of 16-bit samples (Microsoft and IBM, "Multimedia Programming Interface", 1991).
std::string wav_of(std::span<const float> samples, std::uint32_t channels, std::uint32_t rate) {
  const auto bytes = static_cast<std::uint32_t>(samples.size() * 2);
  std::string wav = "RIFF";
  append_le(wav, 36 + bytes, 4);
  wav += "WAVEfmt ";
  append_le(wav, 16, 4);
  append_le(wav, 1, 2);  // PCM
  append_le(wav, channels, 2);
  append_le(wav, rate, 4);
  append_le(wav, rate * channels * 2, 4);
  append_le(wav, channels * 2, 2);
  append_le(wav, 16, 2);
  wav += "data";
  append_le(wav, bytes, 4);
  for (const float sample : samples) {
    const double value = std::isnan(sample) ? 0 : std::round(static_cast<double>(sample) * 32768);
    append_le(wav,
              static_cast<std::uint16_t>(static_cast<std::int16_t>(std::clamp(value, -32768.0, 32767.0))), 2);
  }
  return wav;
}

}  // namespace

std::vector<SummaryValue> image_values(std::string_view name, const ImagesShape& shape,
                                       std::span<const std::uint8_t> pixels, const ImageOptions& options) {
  require_images(name, shape, pixels.size(), options.max_outputs);
  return pictures(name, shape, options.max_outputs, [&](std::int64_t index, Picture& picture) {
    std::memcpy(picture.pixels.data(),
                pixels.data() + static_cast<std::size_t>(index) * picture.pixels.size(),
                picture.pixels.size());
  });
}

std::vector<SummaryValue> image_values(std::string_view name, const ImagesShape& shape,
                                       std::span<const float> pixels, const ImageOptions& options) {
  require_images(name, shape, pixels.size(), options.max_outputs);
  const auto channels = static_cast<std::size_t>(shape.channels);
  return pictures(name, shape, options.max_outputs, [&](std::int64_t index, Picture& picture) {
    const std::size_t size = picture.pixels.size();
    const auto image = pixels.subspan(static_cast<std::size_t>(index) * size, size);
    const Scaling scaling = scaling_of(image, channels);
    for (std::size_t at = 0; at < size; at += channels) {
      const bool good = is_finite_pixel(image.subspan(at, channels));
      for (std::size_t c = 0; c < channels; ++c)
        picture.pixels[at + c] =
            good ? static_cast<std::uint8_t>(image[at + c] * scaling.scale + scaling.offset)
                 : options.bad_color[c];
    }
  });
}

std::vector<SummaryValue> audio_values(std::string_view name, const SoundsShape& shape,
                                       std::span<const float> samples, double sample_rate, int max_outputs) {
  LOCKSTEP_REQUIRE(sample_rate > 0, ErrorKind::config,
                   "sounds '{}': the sample rate must be above 0, not {:g}", name, sample_rate);
  LOCKSTEP_REQUIRE(max_outputs >= 1, ErrorKind::config, "sounds '{}': max_outputs must be at least 1, not {}",
                   name, max_outputs);
  const auto size = static_cast<std::size_t>(shape.frames * shape.channels);
  LOCKSTEP_REQUIRE(shape.channels >= 1 && static_cast<std::size_t>(shape.count) * size == samples.size(),
                   ErrorKind::config, "sounds '{}': {} numbers are not {} x {} x {}", name, samples.size(),
                   shape.count, shape.frames, shape.channels);
  const auto rate = static_cast<std::uint32_t>(std::max(1.0, std::round(sample_rate)));
  std::vector<SummaryValue> values;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(shape.count, max_outputs); ++i)
    values.push_back({tag_of(name, "audio", max_outputs, i),
                      AudioData{static_cast<float>(sample_rate), shape.channels, shape.frames,
                                wav_of(samples.subspan(static_cast<std::size_t>(i) * size, size),
                                       static_cast<std::uint32_t>(shape.channels), rate)}});
  return values;
}

}  // namespace lockstep
