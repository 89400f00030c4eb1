// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/image_resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/range.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lockstep {

namespace {

constexpr int kBits = 22;
constexpr std::int32_t kHalf = 1 << (kBits - 1);

double bilinear(double t) {
  t = std::fabs(t);
  return t < 1 ? 1 - t : 0;
}

double bicubic(double t) {
  constexpr double a = -0.5;
  t = std::fabs(t);
  if (t < 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  if (t < 2) return (((t - 5) * t + 8) * t - 4) * a;
  return 0;
}

std::uint8_t rounded(std::int32_t sum) { return static_cast<std::uint8_t>(std::clamp(sum >> kBits, 0, 255)); }

/// What a pass over rows needs of an axis; see ImageResizer::Axis.
struct Taps {
  const std::int32_t *first, *count, *values;
  std::int32_t longest;
  std::int64_t width;  ///< of the input
};

/// The pixels [columns.first, columns.last) of a row.
template <int Channels>
[[gnu::always_inline]] inline void row_pixels(const std::uint8_t* in, const Taps& taps, Range columns,
                                              std::uint8_t* out) {
  for (std::int64_t x = columns.first; x < columns.last; ++x) {
    std::int32_t sums[Channels];
    for (int c = 0; c < Channels; ++c) sums[c] = kHalf;
    const std::uint8_t* pixel = in + static_cast<std::int64_t>(taps.first[x]) * Channels;
    const std::int32_t* const weights = taps.values + x * taps.longest;
    const std::int32_t count = taps.count[x];
    for (std::int32_t k = 0; k < count; ++k, pixel += Channels)
      for (int c = 0; c < Channels; ++c) sums[c] += pixel[c] * weights[k];
    for (int c = 0; c < Channels; ++c) *out++ = rounded(sums[c]);
  }
}

/// out = the sum of `count` rows of `bytes`, weighted. `sums`: room for `bytes` numbers.
[[gnu::always_inline]] inline void column_pixels(const std::uint8_t* rows, std::int64_t bytes,
                                                 const std::int32_t* weights, std::int32_t count,
                                                 std::int32_t* sums, std::uint8_t* out) {
  for (std::int64_t i = 0; i < bytes; ++i) sums[i] = kHalf;
  for (std::int32_t k = 0; k < count; ++k, rows += bytes) {
    const std::int32_t weight = weights[k];
    for (std::int64_t i = 0; i < bytes; ++i) sums[i] += rows[i] * weight;
  }
  for (std::int64_t i = 0; i < bytes; ++i) out[i] = rounded(sums[i]);
}

struct Passes {
  void (*row1)(const std::uint8_t*, const Taps&, Range, std::uint8_t*);
  void (*row3)(const std::uint8_t*, const Taps&, Range, std::uint8_t*);
  void (*column)(const std::uint8_t*, std::int64_t, const std::int32_t*, std::int32_t, std::int32_t*,
                 std::uint8_t*);
};

// The same integers, with the vectors that the processor has.
#if defined(__x86_64__)
#define LOCKSTEP_WIDE [[gnu::target("avx2")]]
LOCKSTEP_WIDE void wide_row1(const std::uint8_t* in, const Taps& taps, Range columns, std::uint8_t* out) {
  row_pixels<1>(in, taps, columns, out);
}
/// Four bytes at once, where a fourth one is there.
LOCKSTEP_WIDE void wide_row3(const std::uint8_t* in, const Taps& taps, Range columns, std::uint8_t* out) {
  for (std::int64_t x = columns.first; x < columns.last; ++x, out += 3) {
    const std::int32_t count = taps.count[x];
    if (taps.first[x] + count >= taps.width) {
      row_pixels<3>(in, taps, {x, x + 1}, out);
      continue;
    }
    const std::uint8_t* pixel = in + std::int64_t{taps.first[x]} * 3;
    const std::int32_t* const weights = taps.values + x * taps.longest;
    __m128i sums = _mm_set1_epi32(kHalf);
    for (std::int32_t k = 0; k < count; ++k, pixel += 3) {
      std::int32_t bytes = 0;
      std::memcpy(&bytes, pixel, sizeof bytes);
      const __m128i values = _mm_cvtepu8_epi32(_mm_cvtsi32_si128(bytes));
      sums = _mm_add_epi32(sums, _mm_mullo_epi32(values, _mm_set1_epi32(weights[k])));
    }
    sums = _mm_srai_epi32(sums, kBits);
    const __m128i halves = _mm_packs_epi32(sums, sums);  // cut at 16 bits, then at 0 and 255
    const std::int32_t bytes = _mm_cvtsi128_si32(_mm_packus_epi16(halves, halves));
    std::memcpy(out, &bytes, 3);
  }
}
LOCKSTEP_WIDE void wide_column(const std::uint8_t* rows, std::int64_t bytes, const std::int32_t* weights,
                               std::int32_t count, std::int32_t* sums, std::uint8_t* out) {
  column_pixels(rows, bytes, weights, count, sums, out);
}
#undef LOCKSTEP_WIDE
#endif

void plain_row1(const std::uint8_t* in, const Taps& taps, Range columns, std::uint8_t* out) {
  row_pixels<1>(in, taps, columns, out);
}
void plain_row3(const std::uint8_t* in, const Taps& taps, Range columns, std::uint8_t* out) {
  row_pixels<3>(in, taps, columns, out);
}
void plain_column(const std::uint8_t* rows, std::int64_t bytes, const std::int32_t* weights,
                  std::int32_t count, std::int32_t* sums, std::uint8_t* out) {
  column_pixels(rows, bytes, weights, count, sums, out);
}

const Passes& passes(bool wide) {
  static constexpr Passes kPlain{plain_row1, plain_row3, plain_column};
#if defined(__x86_64__)
  static constexpr Passes kWide{wide_row1, wide_row3, wide_column};
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (wide && has_avx2) return kWide;
#endif
  return kPlain;
}

}  // namespace

ResizeWeights resize_weights(ResizeFilter filter, std::int64_t in, std::int64_t out) {
  LOCKSTEP_CHECK(filter != ResizeFilter::nearest && in >= 1 && out >= 1);
  const double step = static_cast<double>(in) / static_cast<double>(out);
  const double stretch = std::max(1.0, step);
  const double reach = (filter == ResizeFilter::bilinear ? 1.0 : 2.0) * stretch;
  const double inverse = 1.0 / stretch;
  ResizeWeights all;
  all.longest = 2 * static_cast<std::int32_t>(std::ceil(reach)) + 1;
  all.first.resize(static_cast<std::size_t>(out));
  all.count.resize(static_cast<std::size_t>(out));
  all.weights.assign(static_cast<std::size_t>(out * all.longest), 0.0);
  for (std::int64_t x = 0; x < out; ++x) {
    const double centre = (static_cast<double>(x) + 0.5) * step;
    // Rounded as integers: towards zero, after adding a half.
    const auto first = std::max<std::int64_t>(0, static_cast<std::int64_t>(centre - reach + 0.5));
    const auto last = std::min(in, static_cast<std::int64_t>(centre + reach + 0.5));
    double* const weights = all.weights.data() + x * all.longest;
    double sum = 0;
    for (std::int64_t i = first; i < last; ++i) {
      const double t = (static_cast<double>(i) - centre + 0.5) * inverse;
      weights[i - first] = filter == ResizeFilter::bilinear ? bilinear(t) : bicubic(t);
      sum += weights[i - first];
    }
    if (sum != 0)
      for (std::int64_t i = first; i < last; ++i) weights[i - first] /= sum;
    all.first[static_cast<std::size_t>(x)] = static_cast<std::int32_t>(first);
    all.count[static_cast<std::size_t>(x)] = static_cast<std::int32_t>(last - first);
  }
  return all;
}

std::vector<std::int32_t> nearest_pixels(std::int64_t in, std::int64_t out) {
  std::vector<std::int32_t> pixels;
  for (std::int64_t x = 0; x < out; ++x)
    pixels.push_back(static_cast<std::int32_t>((2 * x + 1) * in / (2 * out)));
  return pixels;
}

void ImageResizer::set(Axis& axis, std::int64_t in, std::int64_t out) const {
  if (axis.in == in && axis.out == out) return;
  if (filter_ == ResizeFilter::nearest) {
    axis.first = nearest_pixels(in, out);
  } else {
    ResizeWeights weights = resize_weights(filter_, in, out);
    axis.first = std::move(weights.first);
    axis.count = std::move(weights.count);
    axis.longest = weights.longest;
    axis.values.resize(weights.weights.size());
    std::ranges::transform(weights.weights, axis.values.begin(), [](double weight) {
      return static_cast<std::int32_t>(weight * (1 << kBits) + (weight < 0 ? -0.5 : 0.5));
    });
  }
  axis.in = in;
  axis.out = out;
}

void ImageResizer::resize_nearest(const ImageView& in, Range rows, Range columns, std::uint8_t* out) const {
  for (std::int64_t y = rows.first; y < rows.last; ++y) {
    const std::uint8_t* const row =
        in.pixels + vertical_.first[static_cast<std::size_t>(y)] * in.width * in.channels;
    for (std::int64_t x = columns.first; x < columns.last; ++x)
      out = std::copy_n(row + horizontal_.first[static_cast<std::size_t>(x)] * in.channels, in.channels, out);
  }
}

void ImageResizer::resize(const ImageView& in, std::int64_t height, std::int64_t width, Range rows,
                          Range columns, std::uint8_t* out) {
  set(horizontal_, in.width, width);
  set(vertical_, in.height, height);
  if (filter_ == ResizeFilter::nearest) return resize_nearest(in, rows, columns, out);
  LOCKSTEP_CHECK(in.channels == 1 || in.channels == 3);
  const bool same_height = height == in.height, same_width = width == in.width;
  const std::int64_t row_bytes = columns.size() * in.channels;
  // The rows of the input that are needed.
  const auto first_of = [&](std::int64_t y) {
    return std::int64_t{vertical_.first[static_cast<std::size_t>(y)]};
  };
  const Range needed =
      same_height ? rows
                  : Range{first_of(rows.first),
                          first_of(rows.last - 1) + vertical_.count[static_cast<std::size_t>(rows.last - 1)]};
  const Taps taps{horizontal_.first.data(), horizontal_.count.data(), horizontal_.values.data(),
                  horizontal_.longest, in.width};
  std::uint8_t* resized = out;
  if (!same_height) {
    between_.resize(static_cast<std::size_t>(needed.size() * row_bytes));
    resized = between_.data();
  }
  for (std::int64_t y = needed.first; y < needed.last; ++y) {
    const std::uint8_t* const row = in.pixels + y * in.width * in.channels;
    std::uint8_t* const to = resized + (y - needed.first) * row_bytes;
    if (same_width)
      std::copy_n(row + columns.first * in.channels, row_bytes, to);
    else
      (in.channels == 1 ? passes(wide_).row1 : passes(wide_).row3)(row, taps, columns, to);
  }
  if (same_height) return;
  sums_.resize(static_cast<std::size_t>(row_bytes));
  for (std::int64_t y = rows.first; y < rows.last; ++y, out += row_bytes)
    passes(wide_).column(resized + (first_of(y) - needed.first) * row_bytes, row_bytes,
                         vertical_.values.data() + y * vertical_.longest,
                         vertical_.count[static_cast<std::size_t>(y)], sums_.data(), out);
}

}  // namespace lockstep
