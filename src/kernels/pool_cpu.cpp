// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Pooling on the CPU, per instruction-set level (isa.h); vectors run along the channels. oneDNN's pooling is
// not used because its maximum drops NaN, which would hide broken activations.
#include "kernels/pool.h"

#include "core/range.h"
#include "kernels/isa.h"
#include "kernels/vec.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

/// The elements [first, last) of an axis covered by a window at `origin`; the origin may lie in the padding.
struct Range {
  std::int64_t origin, first, last;
};
constexpr Range inside(std::int64_t origin, std::int64_t window, std::int64_t extent) {
  const std::int64_t end = origin + window;
  return {origin, origin > 0 ? origin : 0, end < extent ? end : extent};
}

/// One output position: the planes, rows and columns of its window that lie in the volume.
struct Window {
  std::int64_t in, out;  ///< number of elements before the volume, and before the output position
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

/// The first element that for_each_position() visits.
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

inline std::int64_t volume_size(const PoolSpec& s) { return s.in_d * s.in_h * s.in_w * s.channels; }

/// Adds to a gradient. kFirst: stores 0 + gradient, which saves writing and reading the zero.
template <bool kFirst, typename V, typename T>
inline void add_gradient(T* dx, V gradient) {
  Lanes<V>::store(dx, (kFirst ? V{} : Lanes<V>::load(dx)) + gradient);
}

inline float inverse_count(const Window& w) {
  return 1.0F / static_cast<float>((w.d.last - w.d.first) * (w.h.last - w.h.first) * (w.w.last - w.w.first));
}

template <typename T>
void take_maxima(const PoolSpec& s, const T* x, T* y, std::int32_t* positions) {
  for (std::int64_t n = 0; n < s.n; ++n)
    for_each_window(s, n, [&](const Window& w) {
      for_each_vector(s.channels, [&]<typename V>(std::int64_t c, V) {
        using P = IntegerLanes<V>;
        V best = Lanes<V>::load(x + first_element(s, w) + c);
        typename P::Type at = typename P::Type{} + position_of(s, w, w.d.first, w.h.first, w.w.first);
        for_each_position(s, w, [&](std::int64_t element, std::int32_t position) {
          const V value = Lanes<V>::load(x + element + c);
          at = where_larger(value, best, typename P::Type{} + position, at);
          best = where_larger(value, best, value, best);
        });
        Lanes<V>::store(y + w.out + c, best);
        if (positions != nullptr) P::store(positions + w.out + c, at);
      });
    });
}

template <typename T>
void take_means(const PoolSpec& s, const T* x, T* y) {
  for (std::int64_t n = 0; n < s.n; ++n)
    for_each_window(s, n, [&](const Window& w) {
      const float share = inverse_count(w);
      for_each_vector(s.channels, [&]<typename V>(std::int64_t c, V sum) {
        for_each_position(
            s, w, [&](std::int64_t element, std::int32_t) { sum += Lanes<V>::load(x + element + c); });
        Lanes<V>::store(y + w.out + c, sum * share);
      });
    });
}

/// Distributes the gradients of volume n window by window. With kTiles, each element is in one window and is
/// overwritten; otherwise the gradients are added to `volume`. `positions`: of the maxima.
template <PoolKind kKind, bool kTiles, typename T, typename Sum>
void spread(const PoolSpec& s, std::int64_t n, const T* dy, const std::int32_t* positions, Sum* volume) {
  for_each_window(s, n, [&](const Window& w) {
    const float share = kKind == PoolKind::max ? 1.0F : inverse_count(w);
    for_each_vector(s.channels, [&]<typename V>(std::int64_t c, V zero) {
      const V gradient = Lanes<V>::load(dy + w.out + c);
      if constexpr (kKind == PoolKind::max) {
        const auto at = IntegerLanes<V>::load(positions + w.out + c);
        for_each_position(s, w, [&](std::int64_t element, std::int32_t position) {
          const V here = at == position ? gradient : zero;
          add_gradient<kTiles>(volume + (element - w.in) + c, here);
        });
      } else {
        const V part = gradient * share;
        for_each_position(s, w, [&](std::int64_t element, std::int32_t) {
          add_gradient<kTiles>(volume + (element - w.in) + c, part);
        });
      }
    });
  });
}

template <PoolKind kKind, typename T>
void spread_all(const PoolSpec& s, const T* dy, const std::int32_t* positions, T* dx, float* sums) {
  const std::int64_t size = volume_size(s);
  for (std::int64_t n = 0; n < s.n; ++n, dx += size) {
    if (s.tiles()) {
      spread<kKind, true>(s, n, dy, positions, dx);
      continue;
    }
    float* volume = sums;
    if constexpr (dtype_of<T> == DType::f32) volume = dx;
    for (std::int64_t i = 0; i < size; ++i) volume[i] = 0.0F;
    spread<kKind, false>(s, n, dy, positions, volume);
    if constexpr (dtype_of<T> != DType::f32)
      for_each_vector(
          size, [=]<typename V>(std::int64_t i, V) { Lanes<V>::store(dx + i, Lanes<V>::load(volume + i)); });
  }
}

class Pool final : public PoolKernels {
 public:
  void max_forward(const PoolSpec& s, ConstData x, Data y, std::int32_t* positions) const override {
    with_type(y.type(), [&]<typename T>(T) { take_maxima(s, x.as<T>(), y.as<T>(), positions); });
  }
  void max_backward(const PoolSpec& s, ConstData dy, const std::int32_t* positions, Data dx,
                    float* sums) const override {
    with_type(dx.type(),
              [&]<typename T>(T) { spread_all<PoolKind::max>(s, dy.as<T>(), positions, dx.as<T>(), sums); });
  }
  void average_forward(const PoolSpec& s, ConstData x, Data y) const override {
    with_type(y.type(), [&]<typename T>(T) { take_means(s, x.as<T>(), y.as<T>()); });
  }
  void average_backward(const PoolSpec& s, ConstData dy, Data dx, float* sums) const override {
    with_type(dx.type(), [&]<typename T>(T) {
      spread_all<PoolKind::average>(s, dy.as<T>(), nullptr, dx.as<T>(), sums);
    });
  }
};

}  // namespace

const PoolKernels& pool_kernels() {
  static const Pool kernels;
  return kernels;
}

}  // namespace lockstep::LOCKSTEP_ISA
