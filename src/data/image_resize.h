// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Resizing of images as by Pillow's Image.resize, to the bit for 8-bit images. (Pillow 13 resizes columns
// before rows where an image gets wider and lower; earlier ones do what is described here, in all cases.)
//
// The pixel of index i covers [i, i + 1): its centre is at i + 1/2, in the input and in the output. So output
// pixel x of `out` lies at the input's coordinate c = (x + 1/2) in / out.
//
//  nearest    the input pixel that covers c: floor((2 x + 1) in / (2 out))
//  bilinear   f(t) = 1 - |t| for |t| < 1                                                     support 1
//  bicubic    Keys' cubic convolution with a = -1/2                                          support 2
//             f(t) = (a + 2)|t|^3 - (a + 3)|t|^2 + 1 for |t| < 1,
//                    a |t|^3 - 5 a |t|^2 + 8 a |t| - 4 a for |t| < 2
//
// bilinear and bicubic average over more input pixels when the image gets smaller (antialiasing): with
// s = max(1, in / out) the weight of input pixel i is f((i + 1/2 - c) / s), divided by the sum of these
// weights; the pixels are those whose centres lie within s * support of c, cut at the edges.
//
// 8-bit pixels: weights are rounded to multiples of 2^-22 (half away from zero). The rows are resized first,
// to 8 bits: the exact sum is rounded, half up, and cut at 0 and 255. Then the columns, likewise. An axis
// whose size stays is left alone. Integers: the same bits everywhere.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/range.h"
#include "data/image_decode.h"

namespace lockstep {

enum class ResizeFilter { bilinear, bicubic, nearest };

/// The weights of one axis, in double: output pixel x is the sum of weights[x * longest + k] times input
/// pixel first[x] + k, for 0 <= k < count[x].
struct ResizeWeights {
  std::vector<std::int32_t> first, count;
  std::int32_t longest = 0;
  std::vector<double> weights;
};

/// bilinear or bicubic; in and out >= 1.
ResizeWeights resize_weights(ResizeFilter filter, std::int64_t in, std::int64_t out);
/// nearest: the input pixel of each output pixel.
std::vector<std::int32_t> nearest_pixels(std::int64_t in, std::int64_t out);

/// A resizer for one thread at a time; keeps the weights of the last sizes, and memory of intermediate rows.
class ImageResizer {
 public:
  /// `wide`: with the wide vectors of the processor, if it has them; the bits are the same.
  explicit ImageResizer(ResizeFilter filter, bool wide = true) : filter_(filter), wide_(wide) {}

  /// Writes rows [rows.first, rows.last) and columns [columns.first, columns.last) of the image resized to
  /// height x width to `out`: a crop of it.
  void resize(const ImageView& in, std::int64_t height, std::int64_t width, Range rows, Range columns,
              std::uint8_t* out);

 private:
  /// The weights of one axis: pixel x is the sum of values[x * longest + k] * input[first[x] + k], times
  /// 2^-22.
  struct Axis {
    std::int64_t in = 0, out = 0;
    std::vector<std::int32_t> first, count, values;
    std::int32_t longest = 0;
  };
  void set(Axis& axis, std::int64_t in, std::int64_t out) const;
  void resize_nearest(const ImageView& in, Range rows, Range columns, std::uint8_t* out) const;

  ResizeFilter filter_;
  bool wide_;
  Axis horizontal_, vertical_;
  std::vector<std::uint8_t> between_;
  std::vector<std::int32_t> sums_;
};

}  // namespace lockstep
