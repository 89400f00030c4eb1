// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Margins and changes of resolution on a GPU, with the CPU's bits: a thread per output element; gradients are
// gathered (no atomics). Matrices are positions x channels (cuda_columns.h).
#include "kernels/spatial.h"

#include "kernels/cuda_columns.h"
#include "kernels/factory_cuda.h"

namespace lockstep::cuda {
namespace {

/// The position of a row of a positions x channels matrix.
struct Point {
  std::int64_t n, d, h, w;
};
inline __device__ Point point_of(std::int64_t row, const std::int64_t* extents) {
  return {row / (extents[0] * extents[1] * extents[2]), row / (extents[1] * extents[2]) % extents[0],
          row / extents[2] % extents[1], row % extents[2]};
}
inline __device__ std::int64_t row_of(const Point& p, const std::int64_t* extents) {
  return ((p.n * extents[0] + p.d) * extents[1] + p.h) * extents[2] + p.w;
}

/// Rows are positions of the outer volume (kPad), or of the inner one.
template <bool kPad, typename T>
struct MoveVolume {
  MarginSpec s;
  std::int64_t outer[3];
  float value;
  const T* from;
  T* to;
  template <typename V>
  __device__ std::int64_t column(std::int64_t channel) const {
    return channel;
  }
  template <typename V>
  __device__ void row(std::int64_t channel, std::int64_t at, std::int64_t row) const {
    if (kPad) {
      Point p = point_of(row, outer);
      p.d -= s.before[0], p.h -= s.before[1], p.w -= s.before[2];
      const bool inside =
          p.d >= 0 && p.d < s.inner[0] && p.h >= 0 && p.h < s.inner[1] && p.w >= 0 && p.w < s.inner[2];
      Pack<V::kWidth> pack;
      for (int k = 0; k < V::kWidth; ++k) pack.at[k] = value;
      if (inside) pack = V::load(from + row_of(p, s.inner) * s.channels + channel);
      V::store(to + at, pack);
    } else {
      Point p = point_of(row, s.inner);
      p.d += s.before[0], p.h += s.before[1], p.w += s.before[2];
      V::store(to + at, V::load(from + row_of(p, outer) * s.channels + channel));
    }
  }
};
template <bool kPad, typename T>
MoveVolume<kPad, T> move_volume(const MarginSpec& s, float value, const T* from, T* to) {
  return {s,
          {s.before[0] + s.inner[0] + s.after[0], s.before[1] + s.inner[1] + s.after[1],
           s.before[2] + s.inner[2] + s.after[2]},
          value,
          from,
          to};
}

/// Rows are positions of an outer volume with circular axes.
template <typename T>
struct PadCircular {
  MarginSpec s;
  std::int64_t outer[3];
  float value;
  const T* from;
  T* to;
  template <typename V>
  __device__ std::int64_t column(std::int64_t channel) const {
    return channel;
  }
  template <typename V>
  __device__ void row(std::int64_t channel, std::int64_t at, std::int64_t row) const {
    const Point o = point_of(row, outer), p{o.n, source_of(0, o.d), source_of(1, o.h), source_of(2, o.w)};
    Pack<V::kWidth> pack;
    for (int k = 0; k < V::kWidth; ++k) pack.at[k] = value;
    if (p.d >= 0 && p.h >= 0 && p.w >= 0) pack = V::load(from + row_of(p, s.inner) * s.channels + channel);
    V::store(to + at, pack);
  }
  /// -1: in a margin that is not circular.
  __device__ std::int64_t source_of(int axis, std::int64_t o) const {
    const std::int64_t at = o - s.before[axis], extent = s.inner[axis];
    if (at >= 0 && at < extent) return at;
    return !s.circular[axis] ? -1 : at < 0 ? at + extent : at - extent;
  }
};

/// The elements of an outer axis that are taken from element i of the inner one, as in spatial_cpu.cpp.
struct Copies {
  std::int64_t first, last, step;
  __device__ Copies(const MarginSpec& s, int axis, std::int64_t i) : step(s.inner[axis]) {
    first = last = s.before[axis] + i;
    if (!s.circular[axis]) return;
    if (i >= step - s.before[axis]) first -= step;
    if (i < s.after[axis]) last += step;
  }
};

/// Rows are positions of the inner volume.
template <typename T>
struct PadBackward {
  MarginSpec s;
  std::int64_t outer[3];
  const T* dy;
  T* dx;
  template <typename V>
  __device__ std::int64_t column(std::int64_t channel) const {
    return channel;
  }
  template <typename V>
  __device__ void row(std::int64_t channel, std::int64_t at, std::int64_t row) const {
    const Point p = point_of(row, s.inner);
    const Copies planes(s, 0, p.d), rows(s, 1, p.h), columns(s, 2, p.w);
    Pack<V::kWidth> sum{};
    bool begun = false;
    for (std::int64_t d = planes.first; d <= planes.last; d += planes.step)
      for (std::int64_t h = rows.first; h <= rows.last; h += rows.step)
        for (std::int64_t w = columns.first; w <= columns.last; w += columns.step) {
          const auto gradient = V::load(dy + row_of({p.n, d, h, w}, outer) * s.channels + channel);
          for (int k = 0; k < V::kWidth; ++k) sum.at[k] = begun ? sum.at[k] + gradient.at[k] : gradient.at[k];
          begun = true;
        }
    V::store(dx + at, sum);
  }
};

/// Rows are positions of the output.
template <typename T>
struct Nearest {
  UpsampleSpec s;
  std::int64_t out[3];
  const T* x;
  T* y;
  template <typename V>
  __device__ std::int64_t column(std::int64_t channel) const {
    return channel;
  }
  template <typename V>
  __device__ void row(std::int64_t channel, std::int64_t at, std::int64_t row) const {
    Point p = point_of(row, out);
    p.d /= s.factor[0], p.h /= s.factor[1], p.w /= s.factor[2];
    V::store(y + at, V::load(x + row_of(p, s.in) * s.channels + channel));
  }
};

/// Rows are positions of the input.
template <typename T>
struct NearestBackward {
  UpsampleSpec s;
  std::int64_t out[3];
  const T* dy;
  T* dx;
  template <typename V>
  __device__ std::int64_t column(std::int64_t channel) const {
    return channel;
  }
  template <typename V>
  __device__ void row(std::int64_t channel, std::int64_t at, std::int64_t row) const {
    const Point p = point_of(row, s.in);
    Pack<V::kWidth> sum{};
    for (std::int64_t d = 0; d < s.factor[0]; ++d)
      for (std::int64_t h = 0; h < s.factor[1]; ++h)
        for (std::int64_t w = 0; w < s.factor[2]; ++w) {
          const Point o{p.n, p.d * s.factor[0] + d, p.h * s.factor[1] + h, p.w * s.factor[2] + w};
          const auto gradient = V::load(dy + row_of(o, out) * s.channels + channel);
          for (int k = 0; k < V::kWidth; ++k) sum.at[k] += gradient.at[k];
        }
    V::store(dx + at, sum);
  }
};

/// Two elements of an axis, and the share of the second.
struct Between {
  std::int64_t first, second;
  float share;
  __device__ float weight(std::int64_t i) const {
    return (first == i ? 1.0F - share : 0.0F) + (second == i ? share : 0.0F);
  }
};

/// One axis of a linear interpolation, as in spatial_cpu.cpp.
struct Axis {
  std::int64_t in, out, factor;
  bool align_corners;

  Axis(const UpsampleSpec& s, int axis)
      : in(s.in[axis]),
        out(s.in[axis] * s.factor[axis]),
        factor(s.factor[axis]),
        align_corners(s.align_corners) {}

  __device__ Between at(std::int64_t o) const {
    float place = 0.0F;
    if (!align_corners)
      place = (static_cast<float>(o) + 0.5F) / static_cast<float>(factor) - 0.5F;
    else if (out > 1)
      place = static_cast<float>(o * (in - 1)) / static_cast<float>(out - 1);
    if (place < 0.0F) place = 0.0F;
    const std::int64_t below = static_cast<std::int64_t>(place);
    const std::int64_t first = below < in - 1 ? below : in - 1;
    return {first, first < in - 1 ? first + 1 : first, place - static_cast<float>(first)};
  }
  __device__ std::int64_t first_of(std::int64_t i) const {
    if (i == 0) return 0;
    return align_corners ? (i - 1) * (out - 1) / (in - 1) : (i - 1) * factor + factor / 2;
  }
  __device__ std::int64_t last_of(std::int64_t i) const {
    if (i == in - 1) return out;
    const std::int64_t last =
        align_corners ? (i + 1) * (out - 1) / (in - 1) + 2 : (i + 2) * factor - factor / 2;
    return last < out ? last : out;
  }
};

/// Rows are positions of the output.
template <typename T>
struct Bilinear {
  Axis height, width;
  std::int64_t channels;
  const T* x;
  T* y;
  template <typename V>
  __device__ std::int64_t column(std::int64_t channel) const {
    return channel;
  }
  template <typename V>
  __device__ void row(std::int64_t channel, std::int64_t at, std::int64_t row) const {
    const std::int64_t image = row / (height.out * width.out);
    const Between h = height.at(row / width.out % height.out), w = width.at(row % width.out);
    const auto load = [&](std::int64_t i, std::int64_t j) {
      return V::load(x + ((image * height.in + i) * width.in + j) * channels + channel);
    };
    const auto upper_left = load(h.first, w.first), upper_right = load(h.first, w.second);
    const auto lower_left = load(h.second, w.first), lower_right = load(h.second, w.second);
    Pack<V::kWidth> value;
    for (int k = 0; k < V::kWidth; ++k) {
      const float above = (1.0F - w.share) * upper_left.at[k] + w.share * upper_right.at[k];
      const float below = (1.0F - w.share) * lower_left.at[k] + w.share * lower_right.at[k];
      value.at[k] = (1.0F - h.share) * above + h.share * below;
    }
    V::store(y + at, value);
  }
};

/// Rows are positions of the input.
template <typename T>
struct BilinearBackward {
  Axis height, width;
  std::int64_t channels;
  const T* dy;
  T* dx;
  template <typename V>
  __device__ std::int64_t column(std::int64_t channel) const {
    return channel;
  }
  template <typename V>
  __device__ void row(std::int64_t channel, std::int64_t at, std::int64_t row) const {
    const std::int64_t image = row / (height.in * width.in), h = row / width.in % height.in,
                       w = row % width.in;
    Pack<V::kWidth> sum{};
    for (std::int64_t oh = height.first_of(h); oh < height.last_of(h); ++oh) {
      const float down = height.at(oh).weight(h);
      for (std::int64_t ow = width.first_of(w); ow < width.last_of(w); ++ow) {
        const float share = down * width.at(ow).weight(w);
        const auto gradient = V::load(dy + ((image * height.out + oh) * width.out + ow) * channels + channel);
        for (int k = 0; k < V::kWidth; ++k) sum.at[k] += share * gradient.at[k];
      }
    }
    V::store(dx + at, sum);
  }
};

std::int64_t positions(std::int64_t n, const std::int64_t* extents) {
  return n * extents[0] * extents[1] * extents[2];
}

class Spatial final : public SpatialKernels {
 public:
  void pad(const Lane& lane, const MarginSpec& s, ConstData inner, float value, Data outer) const override {
    with_type(inner.type(), [&]<typename T>(T) {
      const auto body = move_volume<true>(s, value, inner.as<T>(), outer.as<T>());
      const auto run = [&](const auto& chosen) {
        map_columns<T>(lane, "pad", positions(s.n, body.outer), s.channels, wide(inner, outer), chosen);
      };
      if (!s.circular[0] && !s.circular[1] && !s.circular[2]) return run(body);
      run(PadCircular<T>{
          s, {body.outer[0], body.outer[1], body.outer[2]}, value, inner.as<T>(), outer.as<T>()});
    });
  }

  void pad_backward(const Lane& lane, const MarginSpec& s, ConstData dy, Data dx) const override {
    with_type(dy.type(), [&]<typename T>(T) {
      const PadBackward<T> body{s,
                                {s.before[0] + s.inner[0] + s.after[0], s.before[1] + s.inner[1] + s.after[1],
                                 s.before[2] + s.inner[2] + s.after[2]},
                                dy.as<T>(),
                                dx.as<T>()};
      map_columns<T>(lane, "pad_backward", positions(s.n, s.inner), s.channels, wide(dy, dx), body);
    });
  }

  void crop(const Lane& lane, const MarginSpec& s, ConstData outer, Data inner) const override {
    with_type(outer.type(), [&]<typename T>(T) {
      map_columns<T>(lane, "crop", positions(s.n, s.inner), s.channels, wide(outer, inner),
                     move_volume<false>(s, 0.0F, outer.as<T>(), inner.as<T>()));
    });
  }

  void upsample_nearest(const Lane& lane, const UpsampleSpec& s, ConstData x, Data y) const override {
    with_type(x.type(), [&]<typename T>(T) {
      const Nearest<T> body{
          s, {s.in[0] * s.factor[0], s.in[1] * s.factor[1], s.in[2] * s.factor[2]}, x.as<T>(), y.as<T>()};
      map_columns<T>(lane, "upsample_nearest", positions(s.n, body.out), s.channels, wide(x, y), body);
    });
  }

  void upsample_nearest_backward(const Lane& lane, const UpsampleSpec& s, ConstData dy,
                                 Data dx) const override {
    with_type(dy.type(), [&]<typename T>(T) {
      const NearestBackward<T> body{
          s, {s.in[0] * s.factor[0], s.in[1] * s.factor[1], s.in[2] * s.factor[2]}, dy.as<T>(), dx.as<T>()};
      map_columns<T>(lane, "upsample_nearest_backward", positions(s.n, s.in), s.channels, wide(dy, dx), body);
    });
  }

  void upsample_bilinear(const Lane& lane, const UpsampleSpec& s, ConstData x, Data y) const override {
    with_type(x.type(), [&]<typename T>(T) {
      const Bilinear<T> body{Axis(s, 1), Axis(s, 2), s.channels, x.as<T>(), y.as<T>()};
      map_columns<T>(lane, "upsample_bilinear", s.n * body.height.out * body.width.out, s.channels,
                     wide(x, y), body);
    });
  }

  void upsample_bilinear_backward(const Lane& lane, const UpsampleSpec& s, ConstData dy,
                                  Data dx) const override {
    with_type(dy.type(), [&]<typename T>(T) {
      map_columns<T>(lane, "upsample_bilinear_backward", positions(s.n, s.in), s.channels, wide(dy, dx),
                     BilinearBackward<T>{Axis(s, 1), Axis(s, 2), s.channels, dy.as<T>(), dx.as<T>()});
    });
  }

 private:
  static bool wide(ConstData from, Data to) { return wide_aligned(from, to); }
};

}  // namespace

const SpatialKernels& spatial_kernels() {
  static const Spatial kernels;
  return kernels;
}

}  // namespace lockstep::cuda
