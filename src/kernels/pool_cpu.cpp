// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Pooling on the CPU, per instruction-set level (isa.h): vectors run along the channels. Our own, because
// oneDNN's maximum drops NaN, and a broken activation would go on unseen.
#include "kernels/pool.h"

#include "kernels/isa.h"
#include "kernels/vec.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

using Indices = std::int32_t __attribute__((vector_size(kLanes * sizeof(std::int32_t))));
using UnalignedIndices =
    std::int32_t __attribute__((vector_size(kLanes * sizeof(std::int32_t)), aligned(4), may_alias));

/// Positions of a window, as the channels' inner loops see them: one per lane.
template <typename V>
struct Position;
template <>
struct Position<Vec> {
  using Type = Indices;
  static Indices load(const std::int32_t* p) { return *reinterpret_cast<const UnalignedIndices*>(p); }
  static void store(std::int32_t* p, Indices v) { *reinterpret_cast<UnalignedIndices*>(p) = v; }
};
template <>
struct Position<float> {
  using Type = std::int32_t;
  static std::int32_t load(const std::int32_t* p) { return *p; }
  static void store(std::int32_t* p, std::int32_t v) { *p = v; }
};

/// One output position: its window's rows and columns that lie in the image, [first_h, last_h) x [first_w,
/// last_w).
struct Window {
  std::int64_t in, out;  ///< elements before the image and before the output position
  std::int64_t top, left, first_h, last_h, first_w, last_w;
};

constexpr std::int64_t at_least(std::int64_t a, std::int64_t b) { return a > b ? a : b; }
constexpr std::int64_t at_most(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

/// Calls body(window) for the output positions of image n, row by row.
template <typename Body>
inline void for_each_window(const PoolSpec& s, std::int64_t n, const Body& body) {
  for (std::int64_t oh = 0; oh < s.out_h; ++oh)
    for (std::int64_t ow = 0; ow < s.out_w; ++ow) {
      const std::int64_t top = oh * s.stride_h - s.pad_top, left = ow * s.stride_w - s.pad_left;
      body(Window{n * s.in_h * s.in_w * s.channels, ((n * s.out_h + oh) * s.out_w + ow) * s.channels, top,
                  left, at_least(top, 0), at_most(top + s.window_h, s.in_h), at_least(left, 0),
                  at_most(left + s.window_w, s.in_w)});
    }
}

/// Calls body(element of channel 0, position in the window) for the positions in the image, row by row.
template <typename Body>
inline void for_each_position(const PoolSpec& s, const Window& w, const Body& body) {
  for (std::int64_t h = w.first_h; h < w.last_h; ++h)
    for (std::int64_t column = w.first_w; column < w.last_w; ++column)
      body(w.in + (h * s.in_w + column) * s.channels,
           static_cast<std::int32_t>((h - w.top) * s.window_w + (column - w.left)));
}

/// Calls body(first channel, tag) with Vec tags while a vector fits, then with float tags.
template <typename Body>
inline void for_each_channel(std::int64_t channels, const Body& body) {
  std::int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) body(c, Vec{});
  for (; c < channels; ++c) body(c, 0.0F);
}

inline void zero_image(const PoolSpec& s, std::int64_t n, float* dx) {
  const std::int64_t size = s.in_h * s.in_w * s.channels;
  for (std::int64_t i = 0; i < size; ++i) dx[n * size + i] = 0.0F;
}

inline float inverse_count(const Window& w) {
  return 1.0F / static_cast<float>((w.last_h - w.first_h) * (w.last_w - w.first_w));
}

class Pool final : public PoolKernels {
 public:
  void max_forward(const PoolSpec& s, const float* x, float* y, std::int32_t* positions) const override {
    for (std::int64_t n = 0; n < s.n; ++n)
      for_each_window(s, n, [&](const Window& w) {
        for_each_channel(s.channels, [&]<typename V>(std::int64_t c, V) {
          using P = Position<V>;
          const std::int64_t first = w.in + (w.first_h * s.in_w + w.first_w) * s.channels + c;
          V best = Lanes<V>::load(x + first);
          typename P::Type at =
              typename P::Type{} +
              static_cast<std::int32_t>((w.first_h - w.top) * s.window_w + (w.first_w - w.left));
          for_each_position(s, w, [&](std::int64_t element, std::int32_t position) {
            const V value = Lanes<V>::load(x + element + c);
            const auto larger = (value > best) | ((value != value) & (best == best));
            best = larger ? value : best;
            at = larger ? typename P::Type{} + position : at;
          });
          Lanes<V>::store(y + w.out + c, best);
          if (positions != nullptr) P::store(positions + w.out + c, at);
        });
      });
  }

  void max_backward(const PoolSpec& s, const float* dy, const std::int32_t* positions,
                    float* dx) const override {
    for (std::int64_t n = 0; n < s.n; ++n) {
      zero_image(s, n, dx);
      for_each_window(s, n, [&](const Window& w) {
        for_each_channel(s.channels, [&]<typename V>(std::int64_t c, V zero) {
          const V gradient = Lanes<V>::load(dy + w.out + c);
          const auto at = Position<V>::load(positions + w.out + c);
          for_each_position(s, w, [&](std::int64_t element, std::int32_t position) {
            const V here = at == position ? gradient : zero;
            Lanes<V>::store(dx + element + c, Lanes<V>::load(dx + element + c) + here);
          });
        });
      });
    }
  }

  void average_forward(const PoolSpec& s, const float* x, float* y) const override {
    for (std::int64_t n = 0; n < s.n; ++n)
      for_each_window(s, n, [&](const Window& w) {
        const float share = inverse_count(w);
        for_each_channel(s.channels, [&]<typename V>(std::int64_t c, V sum) {
          for_each_position(
              s, w, [&](std::int64_t element, std::int32_t) { sum += Lanes<V>::load(x + element + c); });
          Lanes<V>::store(y + w.out + c, sum * share);
        });
      });
  }

  void average_backward(const PoolSpec& s, const float* dy, float* dx) const override {
    for (std::int64_t n = 0; n < s.n; ++n) {
      zero_image(s, n, dx);
      for_each_window(s, n, [&](const Window& w) {
        const float share = inverse_count(w);
        for_each_channel(s.channels, [&]<typename V>(std::int64_t c, V) {
          const V gradient = Lanes<V>::load(dy + w.out + c) * share;
          for_each_position(s, w, [&](std::int64_t element, std::int32_t) {
            Lanes<V>::store(dx + element + c, Lanes<V>::load(dx + element + c) + gradient);
          });
        });
      });
    }
  }
};

}  // namespace

const PoolKernels& pool_kernels() {
  static const Pool kernels;
  return kernels;
}

}  // namespace lockstep::LOCKSTEP_ISA
