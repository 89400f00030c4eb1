// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Margins and changes of resolution on the CPU, per instruction-set level (isa.h). The inner loops run along
// rows or channels; the compiler vectorises them.
#include "kernels/spatial.h"

#include "kernels/isa.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

template <typename T>
inline void fill(std::int64_t count, T value, T* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = value;
}
template <typename T>
inline void copy(std::int64_t count, const T* from, T* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
}

/// to[c] = sum of share * from[c] over the pairs that gather(add) passes to add(share, from), in that order,
/// in float32, starting from zero. gather is called once per kColumns channels.
template <typename T, typename Gather>
inline void weighted_sum(std::int64_t channels, T* to, const Gather& gather) {
  constexpr std::int64_t kColumns = 64;
  for (std::int64_t first = 0; first < channels; first += kColumns) {
    const std::int64_t width = channels - first < kColumns ? channels - first : kColumns;
    float sum[kColumns];
    fill(width, 0.0F, sum);
    gather([&](float share, const T* from) {
      for (std::int64_t c = 0; c < width; ++c) sum[c] += share * to_float(from[first + c]);
    });
    for (std::int64_t c = 0; c < width; ++c) to[first + c] = from_float<T>(sum[c]);
  }
}

/// Two elements of an axis, and the share of the second.
struct Between {
  std::int64_t first, second;
  float share;
  /// The weight of element i.
  float weight(std::int64_t i) const {
    return (first == i ? 1.0F - share : 0.0F) + (second == i ? share : 0.0F);
  }
};

/// One axis of a linear interpolation.
struct Axis {
  std::int64_t in, out, factor;
  bool align_corners;

  Axis(const UpsampleSpec& s, int axis)
      : in(s.in[axis]),
        out(s.in[axis] * s.factor[axis]),
        factor(s.factor[axis]),
        align_corners(s.align_corners) {}

  Between at(std::int64_t o) const {
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
  /// Output elements [first, last) that may depend on input element i.
  std::int64_t first_of(std::int64_t i) const {
    if (i == 0) return 0;
    return align_corners ? (i - 1) * (out - 1) / (in - 1) : (i - 1) * factor + factor / 2;
  }
  std::int64_t last_of(std::int64_t i) const {
    if (i == in - 1) return out;
    const std::int64_t last =
        align_corners ? (i + 1) * (out - 1) / (in - 1) + 2 : (i + 2) * factor - factor / 2;
    return last < out ? last : out;
  }
};

/// The element of an inner axis that element `o` of the outer axis is taken from; -1: none.
inline std::int64_t source_of(const MarginSpec& s, int axis, std::int64_t o) {
  const std::int64_t at = o - s.before[axis], extent = s.inner[axis];
  if (at >= 0 && at < extent) return at;
  return !s.circular[axis] ? -1 : at < 0 ? at + extent : at - extent;
}

/// The elements of an outer axis that are taken from element i of the inner one: first, first + step, ... to
/// last.
struct Copies {
  std::int64_t first, last, step;
  Copies(const MarginSpec& s, int axis, std::int64_t i) : step(s.inner[axis]) {
    first = last = s.before[axis] + i;
    if (!s.circular[axis]) return;
    if (i >= step - s.before[axis]) first -= step;
    if (i < s.after[axis]) last += step;
  }
};

template <typename T>
inline void pad(const MarginSpec& s, const T* inner, T value, T* outer) {
  const std::int64_t row = s.inner[2] * s.channels, left = s.before[2] * s.channels,
                     right = s.after[2] * s.channels, outer_row = left + row + right;
  const std::int64_t planes = s.before[0] + s.inner[0] + s.after[0],
                     rows = s.before[1] + s.inner[1] + s.after[1];
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t od = 0; od < planes; ++od) {
      const std::int64_t d = source_of(s, 0, od);
      for (std::int64_t oh = 0; oh < rows; ++oh, outer += outer_row) {
        const std::int64_t h = source_of(s, 1, oh);
        if (d < 0 || h < 0) {
          fill(outer_row, value, outer);
          continue;
        }
        const T* from = inner + ((n * s.inner[0] + d) * s.inner[1] + h) * row;
        copy(row, from, outer + left);
        if (s.circular[2]) {
          copy(left, from + row - left, outer);
          copy(right, from, outer + left + row);
        } else {
          fill(left, value, outer);
          fill(right, value, outer + left + row);
        }
      }
    }
}

template <typename T>
inline void pad_backward(const MarginSpec& s, const T* outer, T* inner) {
  constexpr std::int64_t kColumns = 64;
  const std::int64_t outer_w = s.before[2] + s.inner[2] + s.after[2],
                     outer_h = s.before[1] + s.inner[1] + s.after[1],
                     outer_d = s.before[0] + s.inner[0] + s.after[0];
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t p = 0; p < s.inner[0] * s.inner[1] * s.inner[2]; ++p, inner += s.channels) {
      const Copies planes(s, 0, p / (s.inner[1] * s.inner[2])), rows(s, 1, p / s.inner[2] % s.inner[1]),
          columns(s, 2, p % s.inner[2]);
      for (std::int64_t begin = 0; begin < s.channels; begin += kColumns) {
        const std::int64_t width = s.channels - begin < kColumns ? s.channels - begin : kColumns;
        float sum[kColumns];
        bool begun = false;
        for (std::int64_t d = planes.first; d <= planes.last; d += planes.step)
          for (std::int64_t h = rows.first; h <= rows.last; h += rows.step)
            for (std::int64_t w = columns.first; w <= columns.last; w += columns.step) {
              const T* from = outer + (((n * outer_d + d) * outer_h + h) * outer_w + w) * s.channels + begin;
              if (begun)
                for (std::int64_t c = 0; c < width; ++c) sum[c] += to_float(from[c]);
              else
                for (std::int64_t c = 0; c < width; ++c) sum[c] = to_float(from[c]);
              begun = true;
            }
        for (std::int64_t c = 0; c < width; ++c) inner[begin + c] = from_float<T>(sum[c]);
      }
    }
}

template <typename T>
inline void crop(const MarginSpec& s, const T* outer, T* inner) {
  const std::int64_t row = s.inner[2] * s.channels, left = s.before[2] * s.channels,
                     outer_row = left + row + s.after[2] * s.channels,
                     plane = (s.before[1] + s.inner[1] + s.after[1]) * outer_row;
  for (std::int64_t n = 0; n < s.n; ++n) {
    outer += s.before[0] * plane;
    for (std::int64_t d = 0; d < s.inner[0]; ++d, outer += plane)
      for (std::int64_t h = 0; h < s.inner[1]; ++h, inner += row)
        copy(row, outer + (s.before[1] + h) * outer_row + left, inner);
    outer += s.after[0] * plane;
  }
}

template <typename T>
inline void upsample_nearest(const UpsampleSpec& s, const T* x, T* y) {
  const std::int64_t out_row = s.in[2] * s.factor[2] * s.channels, rows = s.in[1] * s.factor[1];
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t d = 0; d < s.in[0]; ++d) {
      const T* plane = y;
      for (std::int64_t h = 0; h < s.in[1]; ++h) {
        const T* row = y;
        for (std::int64_t w = 0; w < s.in[2]; ++w, x += s.channels)
          for (std::int64_t k = 0; k < s.factor[2]; ++k, y += s.channels) copy(s.channels, x, y);
        for (std::int64_t k = 1; k < s.factor[1]; ++k, y += out_row) copy(out_row, row, y);
      }
      for (std::int64_t k = 1; k < s.factor[0]; ++k, y += rows * out_row) copy(rows * out_row, plane, y);
    }
}

template <typename T>
inline void upsample_nearest_backward(const UpsampleSpec& s, const T* dy, T* dx) {
  const std::int64_t out_h = s.in[1] * s.factor[1], out_w = s.in[2] * s.factor[2];
  for (std::int64_t nd = 0; nd < s.n * s.in[0]; ++nd)
    for (std::int64_t h = 0; h < s.in[1]; ++h)
      for (std::int64_t w = 0; w < s.in[2]; ++w, dx += s.channels) {
        weighted_sum(s.channels, dx, [&](const auto& add) {
          for (std::int64_t kd = 0; kd < s.factor[0]; ++kd)
            for (std::int64_t kh = 0; kh < s.factor[1]; ++kh) {
              const std::int64_t row = (nd * s.factor[0] + kd) * out_h + h * s.factor[1] + kh;
              const T* from = dy + (row * out_w + w * s.factor[2]) * s.channels;
              for (std::int64_t kw = 0; kw < s.factor[2]; ++kw) add(1.0F, from + kw * s.channels);
            }
        });
      }
}

template <typename T>
inline void upsample_bilinear(const UpsampleSpec& s, const T* x, T* y) {
  const Axis height(s, 1), width(s, 2);
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t oh = 0; oh < height.out; ++oh) {
      const Between h = height.at(oh);
      const T* upper = x + (n * height.in + h.first) * width.in * s.channels;
      const T* lower = x + (n * height.in + h.second) * width.in * s.channels;
      for (std::int64_t ow = 0; ow < width.out; ++ow, y += s.channels) {
        const Between w = width.at(ow);
        const std::int64_t left = w.first * s.channels, right = w.second * s.channels;
        for (std::int64_t c = 0; c < s.channels; ++c) {
          const float above =
              (1.0F - w.share) * to_float(upper[left + c]) + w.share * to_float(upper[right + c]);
          const float below =
              (1.0F - w.share) * to_float(lower[left + c]) + w.share * to_float(lower[right + c]);
          y[c] = from_float<T>((1.0F - h.share) * above + h.share * below);
        }
      }
    }
}

template <typename T>
inline void upsample_bilinear_backward(const UpsampleSpec& s, const T* dy, T* dx) {
  const Axis height(s, 1), width(s, 2);
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t h = 0; h < height.in; ++h)
      for (std::int64_t w = 0; w < width.in; ++w, dx += s.channels) {
        weighted_sum(s.channels, dx, [&](const auto& add) {
          for (std::int64_t oh = height.first_of(h); oh < height.last_of(h); ++oh) {
            const float down = height.at(oh).weight(h);
            for (std::int64_t ow = width.first_of(w); ow < width.last_of(w); ++ow)
              add(down * width.at(ow).weight(w), dy + ((n * height.out + oh) * width.out + ow) * s.channels);
          }
        });
      }
}

class Spatial final : public SpatialKernels {
 public:
  void pad(const Lane&, const MarginSpec& spec, ConstData inner, float value, Data outer) const override {
    with_type(inner.type(), [&]<typename T>(T) {
      lockstep::LOCKSTEP_ISA::pad(spec, inner.as<T>(), from_float<T>(value), outer.as<T>());
    });
  }
  void pad_backward(const Lane&, const MarginSpec& spec, ConstData douter, Data dinner) const override {
    with_type(douter.type(), [&]<typename T>(T) {
      lockstep::LOCKSTEP_ISA::pad_backward(spec, douter.as<T>(), dinner.as<T>());
    });
  }
  void crop(const Lane&, const MarginSpec& spec, ConstData outer, Data inner) const override {
    with_type(outer.type(),
              [&]<typename T>(T) { lockstep::LOCKSTEP_ISA::crop(spec, outer.as<T>(), inner.as<T>()); });
  }
  void upsample_nearest(const Lane&, const UpsampleSpec& spec, ConstData x, Data y) const override {
    with_type(x.type(),
              [&]<typename T>(T) { lockstep::LOCKSTEP_ISA::upsample_nearest(spec, x.as<T>(), y.as<T>()); });
  }
  void upsample_nearest_backward(const Lane&, const UpsampleSpec& spec, ConstData dy,
                                 Data dx) const override {
    with_type(dy.type(), [&]<typename T>(T) {
      lockstep::LOCKSTEP_ISA::upsample_nearest_backward(spec, dy.as<T>(), dx.as<T>());
    });
  }
  void upsample_bilinear(const Lane&, const UpsampleSpec& spec, ConstData x, Data y) const override {
    with_type(x.type(),
              [&]<typename T>(T) { lockstep::LOCKSTEP_ISA::upsample_bilinear(spec, x.as<T>(), y.as<T>()); });
  }
  void upsample_bilinear_backward(const Lane&, const UpsampleSpec& spec, ConstData dy,
                                  Data dx) const override {
    with_type(dy.type(), [&]<typename T>(T) {
      lockstep::LOCKSTEP_ISA::upsample_bilinear_backward(spec, dy.as<T>(), dx.as<T>());
    });
  }
};

}  // namespace

const SpatialKernels& spatial_kernels() {
  static const Spatial kernels;
  return kernels;
}

}  // namespace lockstep::LOCKSTEP_ISA
