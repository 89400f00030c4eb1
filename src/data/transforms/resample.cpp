// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/resample.h"

#include <algorithm>
#include <cmath>

namespace lockstep {

namespace {

double weight_at(double x, Resampling method) {
  x = std::abs(x);
  if (method == Resampling::bilinear) return x < 1 ? 1 - x : 0;
  constexpr double kA = -0.5;
  if (x < 1) return ((kA + 2) * x - (kA + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * kA : 0;
}

/// The input pixels of one output pixel.
struct Taps {
  std::int64_t first = 0, count = 0;
};

/// Writes the weights of output pixel i of `out` along an axis of `size` input pixels, of which [start, start
/// + length) are taken.
Taps taps_of(std::int64_t i, std::int64_t out, std::int64_t size, double start, double length,
             Resampling method, float* weights) {
  const double scale = length / static_cast<double>(out);
  const double centre = start + (static_cast<double>(i) + 0.5) * scale;
  if (method == Resampling::nearest) {
    weights[0] = 1;
    return {std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(centre)), 0, size - 1), 1};
  }
  const double widen = std::max(scale, 1.0);
  const double support = (method == Resampling::bilinear ? 1 : 2) * widen;
  const auto first = std::max<std::int64_t>(0, static_cast<std::int64_t>(centre - support + 0.5));
  const auto last = std::min<std::int64_t>(size, static_cast<std::int64_t>(centre + support + 0.5));
  double sum = 0;
  for (std::int64_t at = first; at < last; ++at)
    sum += weight_at((static_cast<double>(at) - centre + 0.5) / widen, method);
  for (std::int64_t at = first; at < last; ++at)
    weights[at - first] =
        static_cast<float>(weight_at((static_cast<double>(at) - centre + 0.5) / widen, method) / sum);
  return {first, last - first};
}

/// The taps of all output pixels of a row, in scratch memory.
class RowTaps {
 public:
  /// Two places and at most 4 max(size / out, 1) + 2 weights per output pixel. Places are below 2^24.
  static std::int64_t scratch(std::int64_t size, std::int64_t out) {
    return 4 * out + 4 * std::max(size, out);
  }

  RowTaps(float* scratch, std::int64_t size, std::int64_t out, double start, double length, Resampling method)
      : places_(scratch), weights_(scratch + 2 * out) {
    float* weights = weights_;
    for (std::int64_t i = 0; i < out; ++i) {
      const Taps taps = taps_of(i, out, size, start, length, method, weights);
      places_[2 * i] = static_cast<float>(taps.first);
      places_[2 * i + 1] = static_cast<float>(taps.count);
      weights += taps.count;
    }
  }
  /// out = the row, resampled.
  template <int kChannels>
  void apply(const float* in, std::int64_t num_channels, float* out, std::int64_t pixels) const {
    const std::int64_t channels = kChannels > 0 ? kChannels : num_channels;
    const float* weights = weights_;
    for (std::int64_t x = 0; x < pixels; ++x, out += channels) {
      const float* pixel = in + static_cast<std::int64_t>(places_[2 * x]) * channels;
      const auto count = static_cast<std::int64_t>(places_[2 * x + 1]);
      for (std::int64_t c = 0; c < channels; ++c) out[c] = 0;
      for (std::int64_t k = 0; k < count; ++k, pixel += channels)
        for (std::int64_t c = 0; c < channels; ++c) out[c] += weights[k] * pixel[c];
      weights += count;
    }
  }

 private:
  float *places_, *weights_;
};

/// The rows of `from` that rows of the result are made of.
struct Rows {
  std::int64_t first, last;
};

Rows rows_of(const Grid& from, const Grid& to, const ResampleBox& box, Resampling method, float* weights) {
  const Taps first = taps_of(0, to.height, from.height, box.y, box.height, method, weights);
  const Taps last = taps_of(to.height - 1, to.height, from.height, box.y, box.height, method, weights);
  return {first.first, last.first + last.count};
}

}  // namespace

std::int64_t resample_scratch(const Grid& from, const Grid& to) {
  return from.height * to.width * to.channels + from.height + RowTaps::scratch(from.width, to.width);
}

void resample(const float* in, const Grid& from, const ResampleBox& box, Resampling method, float* out,
              const Grid& to, float* scratch) {
  const std::int64_t channels = from.channels, row = to.width * channels;
  float* const rows = scratch;  // from.height x to.width
  float* const weights = rows + from.height * row;
  const RowTaps across(weights + from.height, from.width, to.width, box.x, box.width, method);
  const Rows used = rows_of(from, to, box, method, weights);
  for (std::int64_t y = used.first; y < used.last; ++y) {
    const float* const line = in + y * from.width * channels;
    float* const to_line = rows + y * row;
    if (channels == 3)
      across.apply<3>(line, channels, to_line, to.width);
    else
      across.apply<0>(line, channels, to_line, to.width);
  }
  for (std::int64_t y = 0; y < to.height; ++y, out += row) {
    const Taps taps = taps_of(y, to.height, from.height, box.y, box.height, method, weights);
    std::fill_n(out, row, 0.0F);
    for (std::int64_t k = 0; k < taps.count; ++k) {
      const float* const line = rows + (taps.first + k) * row;
      for (std::int64_t i = 0; i < row; ++i) out[i] += weights[k] * line[i];
    }
  }
}

}  // namespace lockstep
