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

/// Elements [first, last) of an axis that a window at `origin`, which may lie in the padding, has of it.
struct Range {
  std::int64_t origin, first, last;
};
constexpr Range inside(std::int64_t origin, std::int64_t window, std::int64_t extent) {
  const std::int64_t end = origin + window;
  return {origin, origin > 0 ? origin : 0, end < extent ? end : extent};
}

/// One output position: its window's planes, rows and columns that lie in the volume.
struct Window {
  std::int64_t in, out;  ///< elements before the volume and before the output position
  Range d, h, w;
};

/// Calls body(window) for the output positions of volume n, plane by plane and row by row.
template <typename Body>
inline void for_each_window(const PoolSpec& s, std::int64_t n, const Body& body) {
  const std::int64_t in = n * s.in_d * s.in_h * s.in_w * s.channels;
  for (std::int64_t od = 0; od < s.out_d; ++od) {
    const Range d = inside(od * s.stride_d - s.pad_front, s.window_d, s.in_d);
    for (std::int64_t oh = 0; oh < s.out_h; ++oh) {
      const Range h = inside(oh * s.stride_h - s.pad_top, s.window_h, s.in_h);
      const std::int64_t row = ((n * s.out_d + od) * s.out_h + oh) * s.out_w;
      for (std::int64_t ow = 0; ow < s.out_w; ++ow)
        body(Window{in, (row + ow) * s.channels, d, h,
                    inside(ow * s.stride_w - s.pad_left, s.window_w, s.in_w)});
    }
  }
}

/// The first of for_each_position().
inline std::int64_t first_element(const PoolSpec& s, const Window& w) {
  return w.in + ((w.d.first * s.in_h + w.h.first) * s.in_w + w.w.first) * s.channels;
}
inline std::int32_t position_of(const PoolSpec& s, const Window& w, std::int64_t d, std::int64_t h,
                                std::int64_t column) {
  return static_cast<std::int32_t>(((d - w.d.origin) * s.window_h + (h - w.h.origin)) * s.window_w +
                                   (column - w.w.origin));
}

/// Calls body(element of channel 0, position in the window) for the positions in the volume, in order.
template <typename Body>
inline void for_each_position(const PoolSpec& s, const Window& w, const Body& body) {
  for (std::int64_t d = w.d.first; d < w.d.last; ++d)
    for (std::int64_t h = w.h.first; h < w.h.last; ++h)
      for (std::int64_t column = w.w.first; column < w.w.last; ++column)
        body(w.in + ((d * s.in_h + h) * s.in_w + column) * s.channels, position_of(s, w, d, h, column));
}

/// Calls body(first channel, tag) with Vec tags while a vector fits, then with float tags.
template <typename Body>
inline void for_each_channel(std::int64_t channels, const Body& body) {
  std::int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) body(c, Vec{});
  for (; c < channels; ++c) body(c, 0.0F);
}

inline void zero_volume(const PoolSpec& s, std::int64_t n, float* dx) {
  const std::int64_t size = s.in_d * s.in_h * s.in_w * s.channels;
  for (std::int64_t i = 0; i < size; ++i) dx[n * size + i] = 0.0F;
}

/// Every element lies in one window.
inline bool tiles(const PoolSpec& s) {
  const auto axis = [](std::int64_t in, std::int64_t out, std::int64_t window, std::int64_t stride,
                       std::int64_t front) { return window == stride && front == 0 && out * stride == in; };
  return axis(s.in_d, s.out_d, s.window_d, s.stride_d, s.pad_front) &&
         axis(s.in_h, s.out_h, s.window_h, s.stride_h, s.pad_top) &&
         axis(s.in_w, s.out_w, s.window_w, s.stride_w, s.pad_left);
}

/// Adds to a gradient; to zero if there is nothing yet, which saves writing the zero and reading it.
template <bool kFirst, typename V>
inline void add_gradient(float* dx, V gradient) {
  Lanes<V>::store(dx, (kFirst ? V{} : Lanes<V>::load(dx)) + gradient);
}

inline float inverse_count(const Window& w) {
  return 1.0F / static_cast<float>((w.d.last - w.d.first) * (w.h.last - w.h.first) * (w.w.last - w.w.first));
}

class Pool final : public PoolKernels {
 public:
  void max_forward(const PoolSpec& s, const float* x, float* y, std::int32_t* positions) const override {
    for (std::int64_t n = 0; n < s.n; ++n)
      for_each_window(s, n, [&](const Window& w) {
        for_each_channel(s.channels, [&]<typename V>(std::int64_t c, V) {
          using P = Position<V>;
          V best = Lanes<V>::load(x + first_element(s, w) + c);
          typename P::Type at = typename P::Type{} + position_of(s, w, w.d.first, w.h.first, w.w.first);
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
    if (tiles(s))
      spread_maxima<true>(s, dy, positions, dx);
    else
      spread_maxima<false>(s, dy, positions, dx);
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
    if (tiles(s))
      spread_means<true>(s, dy, dx);
    else
      spread_means<false>(s, dy, dx);
  }

 private:
  template <bool kTiles>
  static void spread_maxima(const PoolSpec& s, const float* dy, const std::int32_t* positions, float* dx) {
    for (std::int64_t n = 0; n < s.n; ++n) {
      if (!kTiles) zero_volume(s, n, dx);
      for_each_window(s, n, [&](const Window& w) {
        for_each_channel(s.channels, [&]<typename V>(std::int64_t c, V zero) {
          const V gradient = Lanes<V>::load(dy + w.out + c);
          const auto at = Position<V>::load(positions + w.out + c);
          for_each_position(s, w, [&](std::int64_t element, std::int32_t position) {
            const V here = at == position ? gradient : zero;
            add_gradient<kTiles>(dx + element + c, here);
          });
        });
      });
    }
  }

  template <bool kTiles>
  static void spread_means(const PoolSpec& s, const float* dy, float* dx) {
    for (std::int64_t n = 0; n < s.n; ++n) {
      if (!kTiles) zero_volume(s, n, dx);
      for_each_window(s, n, [&](const Window& w) {
        const float share = inverse_count(w);
        for_each_channel(s.channels, [&]<typename V>(std::int64_t c, V) {
          const V gradient = Lanes<V>::load(dy + w.out + c) * share;
          for_each_position(s, w, [&](std::int64_t element, std::int32_t) {
            add_gradient<kTiles>(dx + element + c, gradient);
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
