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

/// Elements [first, last) of an axis that a window at `origin`, which may lie in the padding, has of it.
struct Range {
  std::int64_t origin, first, last;
};
constexpr Range inside(std::int64_t origin, std::int64_t window, std::int64_t extent) {
  const std::int64_t end = origin + window;
  return {origin, origin > 0 ? origin : 0, end < extent ? end : extent};
}

/// Windows [first, last) of an axis that have the element at `position`, which counts from the padding's
/// begin.
struct Covering {
  std::int64_t first, last;
};
constexpr Covering covering(std::int64_t position, std::int64_t window, std::int64_t stride,
                            std::int64_t count) {
  const std::int64_t last = position / stride + 1;
  return {position < window ? 0 : (position - window) / stride + 1, last < count ? last : count};
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

/// Every element lies in one window.
inline bool tiles(const PoolSpec& s) {
  const auto axis = [](std::int64_t in, std::int64_t out, std::int64_t window, std::int64_t stride,
                       std::int64_t front) { return window == stride && front == 0 && out * stride == in; };
  return axis(s.in_d, s.out_d, s.window_d, s.stride_d, s.pad_front) &&
         axis(s.in_h, s.out_h, s.window_h, s.stride_h, s.pad_top) &&
         axis(s.in_w, s.out_w, s.window_w, s.stride_w, s.pad_left);
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
          const auto larger = (value > best) | ((value != value) & (best == best));
          best = larger ? value : best;
          at = larger ? typename P::Type{} + position : at;
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

/// Backward where every element lies in one window: window by window. `positions`: of maxima.
template <PoolKind kKind, typename T>
void spread(const PoolSpec& s, const T* dy, const std::int32_t* positions, T* dx) {
  for (std::int64_t n = 0; n < s.n; ++n)
    for_each_window(s, n, [&](const Window& w) {
      const float share = inverse_count(w);
      for_each_vector(s.channels, [&]<typename V>(std::int64_t c, V zero) {
        const V gradient = Lanes<V>::load(dy + w.out + c);
        if constexpr (kKind == PoolKind::max) {
          const auto at = IntegerLanes<V>::load(positions + w.out + c);
          for_each_position(s, w, [&](std::int64_t element, std::int32_t position) {
            const V here = at == position ? gradient : zero;
            Lanes<V>::store(dx + element + c, zero + here);  // a sum: -0 becomes 0
          });
        } else {
          const V part = zero + gradient * share;
          for_each_position(
              s, w, [&](std::int64_t element, std::int32_t) { Lanes<V>::store(dx + element + c, part); });
        }
      });
    });
}

/// Backward where windows overlap or leave elements out: element by element, from the windows that have it,
/// in order.
template <PoolKind kKind, typename T>
void gather(const PoolSpec& s, const T* dy, const std::int32_t* positions, T* dx) {
  const auto element = [&](std::int64_t n, std::int64_t d, std::int64_t h, std::int64_t w, T* to) {
    const Covering planes = covering(d + s.pad_front, s.window_d, s.stride_d, s.out_d);
    const Covering rows = covering(h + s.pad_top, s.window_h, s.stride_h, s.out_h);
    const Covering columns = covering(w + s.pad_left, s.window_w, s.stride_w, s.out_w);
    for_each_vector(s.channels, [&]<typename V>(std::int64_t c, V sum) {
      for (std::int64_t od = planes.first; od < planes.last; ++od)
        for (std::int64_t oh = rows.first; oh < rows.last; ++oh) {
          Window window{.in = 0,
                        .out = (((n * s.out_d + od) * s.out_h + oh) * s.out_w + columns.first) * s.channels,
                        .d = inside(od * s.stride_d - s.pad_front, s.window_d, s.in_d),
                        .h = inside(oh * s.stride_h - s.pad_top, s.window_h, s.in_h),
                        .w = {}};
          for (std::int64_t ow = columns.first; ow < columns.last; ++ow, window.out += s.channels) {
            window.w = inside(ow * s.stride_w - s.pad_left, s.window_w, s.in_w);
            const V gradient = Lanes<V>::load(dy + window.out + c);
            if constexpr (kKind == PoolKind::max)
              sum += IntegerLanes<V>::load(positions + window.out + c) == position_of(s, window, d, h, w)
                         ? gradient
                         : V{};
            else
              sum += gradient * inverse_count(window);
          }
        }
      Lanes<V>::store(to + c, sum);
    });
  };
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t d = 0; d < s.in_d; ++d)
      for (std::int64_t h = 0; h < s.in_h; ++h)
        for (std::int64_t w = 0; w < s.in_w; ++w, dx += s.channels) element(n, d, h, w, dx);
}

class Pool final : public PoolKernels {
 public:
  void max_forward(const PoolSpec& s, ConstData x, Data y, std::int32_t* positions) const override {
    with_type(y.type(), [&]<typename T>(T) { take_maxima(s, x.as<T>(), y.as<T>(), positions); });
  }
  void max_backward(const PoolSpec& s, ConstData dy, const std::int32_t* positions, Data dx) const override {
    backward<PoolKind::max>(s, dy, positions, dx);
  }
  void average_forward(const PoolSpec& s, ConstData x, Data y) const override {
    with_type(y.type(), [&]<typename T>(T) { take_means(s, x.as<T>(), y.as<T>()); });
  }
  void average_backward(const PoolSpec& s, ConstData dy, Data dx) const override {
    backward<PoolKind::average>(s, dy, nullptr, dx);
  }

 private:
  template <PoolKind kKind>
  static void backward(const PoolSpec& s, ConstData dy, const std::int32_t* positions, Data dx) {
    with_type(dx.type(), [&]<typename T>(T) {
      if (tiles(s))
        spread<kKind>(s, dy.as<T>(), positions, dx.as<T>());
      else
        gather<kKind>(s, dy.as<T>(), positions, dx.as<T>());
    });
  }
};

}  // namespace

const PoolKernels& pool_kernels() {
  static const Pool kernels;
  return kernels;
}

}  // namespace lockstep::LOCKSTEP_ISA
