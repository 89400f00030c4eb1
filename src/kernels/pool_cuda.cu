// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Pooling on a GPU, with the CPU's bits. Forward: a thread per output. Backward: a thread per input, which
// gathers from the windows that contain it, row by row (no atomics). Matrices are positions x channels
// (cuda_columns.h).
#include "core/range.h"
#include "kernels/pool.h"

#include <cmath>

#include "kernels/cuda_columns.h"
#include "kernels/factory_cuda.h"

namespace lockstep::cuda {
namespace {

/// The elements [first, last) of an axis that a window at `origin` (may be negative) covers.
struct Range {
  std::int64_t first, last;
};
inline __device__ Range inside(std::int64_t origin, std::int64_t window, std::int64_t extent) {
  return {origin > 0 ? origin : 0, origin + window < extent ? origin + window : extent};
}
/// The windows [first, last) that cover `position`, which is counted from the start of the padding.
inline __device__ Range covering(std::int64_t position, std::int64_t window, std::int64_t stride,
                                 std::int64_t count) {
  const std::int64_t last = position / stride + 1;
  return {position < window ? 0 : (position - window) / stride + 1, last < count ? last : count};
}

/// The window of one output position.
struct Window {
  std::int64_t volume, front, top, left;
  Range d, h, w;
  __device__ Window(const PoolSpec& s, std::int64_t volume_, std::int64_t od, std::int64_t oh,
                    std::int64_t ow)
      : volume(volume_),
        front(od * s.stride_d - s.pad_front),
        top(oh * s.stride_h - s.pad_top),
        left(ow * s.stride_w - s.pad_left),
        d(inside(front, s.window_d, s.in_d)),
        h(inside(top, s.window_h, s.in_h)),
        w(inside(left, s.window_w, s.in_w)) {}
  __device__ Window(const PoolSpec& s, std::int64_t row)
      : Window(s, row / (s.out_d * s.out_h * s.out_w), row / (s.out_h * s.out_w) % s.out_d,
               row / s.out_w % s.out_h, row % s.out_w) {}
  __device__ std::int64_t element(const PoolSpec& s, std::int64_t z, std::int64_t y, std::int64_t x) const {
    return (((volume * s.in_d + z) * s.in_h + y) * s.in_w + x) * s.channels;
  }
  __device__ std::int32_t position(const PoolSpec& s, std::int64_t z, std::int64_t y, std::int64_t x) const {
    return static_cast<std::int32_t>(((z - front) * s.window_h + y - top) * s.window_w + x - left);
  }
  __device__ float share() const {
    return 1.0F / static_cast<float>((d.last - d.first) * (h.last - h.first) * (w.last - w.first));
  }
};

template <typename T>
struct MaxForward {
  PoolSpec s;
  const T* x;
  T* y;
  std::int32_t* positions;  ///< may be null
  template <typename V>
  __device__ std::int64_t column(std::int64_t channel) const {
    return channel;
  }
  template <typename V>
  __device__ void row(std::int64_t channel, std::int64_t at, std::int64_t row) const {
    const Window window(s, row);
    Pack<V::kWidth> best =
        V::load(x + window.element(s, window.d.first, window.h.first, window.w.first) + channel);
    std::int32_t where[V::kWidth];
    for (int k = 0; k < V::kWidth; ++k)
      where[k] = window.position(s, window.d.first, window.h.first, window.w.first);
    for (std::int64_t d = window.d.first; d < window.d.last; ++d)
      for (std::int64_t h = window.h.first; h < window.h.last; ++h)
        for (std::int64_t w = window.w.first; w < window.w.last; ++w) {
          const auto value = V::load(x + window.element(s, d, h, w) + channel);
          const std::int32_t position = window.position(s, d, h, w);
          for (int k = 0; k < V::kWidth; ++k)
            if (value.at[k] > best.at[k] || (std::isnan(value.at[k]) && !std::isnan(best.at[k]))) {
              best.at[k] = value.at[k];
              where[k] = position;
            }
        }
    V::store(y + at, best);
    if (positions != nullptr)
      for (int k = 0; k < V::kWidth; ++k) positions[at + k] = where[k];
  }
};

template <typename T>
struct AverageForward {
  PoolSpec s;
  const T* x;
  T* y;
  template <typename V>
  __device__ std::int64_t column(std::int64_t channel) const {
    return channel;
  }
  template <typename V>
  __device__ void row(std::int64_t channel, std::int64_t at, std::int64_t row) const {
    const Window window(s, row);
    Pack<V::kWidth> sum{};
    for (std::int64_t d = window.d.first; d < window.d.last; ++d)
      for (std::int64_t h = window.h.first; h < window.h.last; ++h)
        for (std::int64_t w = window.w.first; w < window.w.last; ++w) {
          const auto value = V::load(x + window.element(s, d, h, w) + channel);
          for (int k = 0; k < V::kWidth; ++k) sum.at[k] += value.at[k];
        }
    const float share = window.share();
    for (int k = 0; k < V::kWidth; ++k) sum.at[k] *= share;
    V::store(y + at, sum);
  }
};

/// Rows are positions of the input.
template <PoolKind kKind, typename T>
struct PoolBackward {
  PoolSpec s;
  const T* dy;
  const std::int32_t* positions;  ///< positions of the maxima
  T* dx;
  template <typename V>
  __device__ std::int64_t column(std::int64_t channel) const {
    return channel;
  }
  template <typename V>
  __device__ void row(std::int64_t channel, std::int64_t at, std::int64_t row) const {
    const std::int64_t volume = row / (s.in_d * s.in_h * s.in_w), z = row / (s.in_h * s.in_w) % s.in_d,
                       y = row / s.in_w % s.in_h, x = row % s.in_w;
    const Range planes = covering(z + s.pad_front, s.window_d, s.stride_d, s.out_d);
    const Range rows = covering(y + s.pad_top, s.window_h, s.stride_h, s.out_h);
    const Range columns = covering(x + s.pad_left, s.window_w, s.stride_w, s.out_w);
    Pack<V::kWidth> sum{};
    for (std::int64_t od = planes.first; od < planes.last; ++od)
      for (std::int64_t oh = rows.first; oh < rows.last; ++oh)
        for (std::int64_t ow = columns.first; ow < columns.last; ++ow) {
          const Window window(s, volume, od, oh, ow);
          const std::int64_t out =
              (((volume * s.out_d + od) * s.out_h + oh) * s.out_w + ow) * s.channels + channel;
          const auto gradient = V::load(dy + out);
          if (kKind == PoolKind::max) {
            const std::int32_t position = window.position(s, z, y, x);
            for (int k = 0; k < V::kWidth; ++k)
              sum.at[k] += positions[out + k] == position ? gradient.at[k] : 0.0F;
          } else {
            const float share = window.share();
            for (int k = 0; k < V::kWidth; ++k) sum.at[k] += gradient.at[k] * share;
          }
        }
    V::store(dx + at, sum);
  }
};

class CudaPool final : public PoolPrimitive {
 public:
  explicit CudaPool(const PoolSpec& spec) : spec_(spec) {}

  std::size_t scratch_bytes() const override { return 0; }
  std::size_t saved_bytes() const override {
    if (!spec_.training || spec_.kind == PoolKind::average) return 0;
    return static_cast<std::size_t>(outputs() * spec_.channels) * sizeof(std::int32_t);
  }

  void forward(const Lane& lane, ConstData x, Data y, void* saved) const override {
    require_types(x, y);
    std::int32_t* positions = spec_.training ? static_cast<std::int32_t*>(saved) : nullptr;
    const bool wide = wide_aligned(x, y);
    with_type(spec_.dtype, [&]<typename T>(T) {
      if (spec_.kind == PoolKind::max)
        map_columns<T>(lane, "max_pool", outputs(), spec_.channels, wide,
                       MaxForward<T>{spec_, x.as<T>(), y.as<T>(), positions});
      else
        map_columns<T>(lane, "average_pool", outputs(), spec_.channels, wide,
                       AverageForward<T>{spec_, x.as<T>(), y.as<T>()});
    });
  }

  void backward(const Lane& lane, ConstData dy, const void* saved, Data dx) const override {
    require(spec_.training, "backward pass of a primitive made without training");
    require_types(dy, dx);
    const auto* positions = static_cast<const std::int32_t*>(saved);
    const std::int64_t inputs = spec_.n * spec_.in_d * spec_.in_h * spec_.in_w;
    const bool wide = wide_aligned(dy, dx);
    with_type(spec_.dtype, [&]<typename T>(T) {
      if (spec_.kind == PoolKind::max)
        map_columns<T>(lane, "max_pool_backward", inputs, spec_.channels, wide,
                       PoolBackward<PoolKind::max, T>{spec_, dy.as<T>(), positions, dx.as<T>()});
      else
        map_columns<T>(lane, "average_pool_backward", inputs, spec_.channels, wide,
                       PoolBackward<PoolKind::average, T>{spec_, dy.as<T>(), nullptr, dx.as<T>()});
    });
  }

 private:
  void require_types(ConstData from, Data to) const {
    require(from.type() == spec_.dtype && to.type() == spec_.dtype,
            "the activations do not have the primitive's type");
  }
  std::int64_t outputs() const { return spec_.n * spec_.out_d * spec_.out_h * spec_.out_w; }

  PoolSpec spec_;
};

}  // namespace

std::unique_ptr<PoolPrimitive> make_pool(const PoolSpec& spec) { return std::make_unique<CudaPool>(spec); }

}  // namespace lockstep::cuda
