// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/linear_cuda.h"

#include "kernels/cuda_columns.h"

namespace lockstep::cuda {
namespace {

constexpr int kSide = 32;  ///< of the square that a block transposes, through shared memory
constexpr int kSideRows = kThreads / kSide;

__global__ void __launch_bounds__(kThreads)
    transpose_kernel(std::int64_t rows, std::int64_t columns, const float* from, float* to) {
  __shared__ float square[kSide][kSide + 1];  // one more: no two rows in the same memory bank
  const int x = static_cast<int>(threadIdx.x) % kSide, first = static_cast<int>(threadIdx.x) / kSide;
  const std::int64_t squares_across = (columns + kSide - 1) / kSide;
  const std::int64_t squares = squares_across * ((rows + kSide - 1) / kSide);
  for (std::int64_t s = blockIdx.x; s < squares; s += gridDim.x) {
    const std::int64_t row = s / squares_across * kSide, column = s % squares_across * kSide;
    for (int y = first; y < kSide; y += kSideRows)
      if (row + y < rows && column + x < columns) square[y][x] = from[(row + y) * columns + column + x];
    __syncthreads();
    for (int y = first; y < kSide; y += kSideRows)
      if (column + y < columns && row + x < rows) to[(column + y) * rows + row + x] = square[x][y];
    __syncthreads();
  }
}

/// Rows are positions of the padded image (kPad), or of the plain one.
template <bool kPad>
struct MoveImage {
  std::int64_t in_h, in_w, channels, top, left, padded_h, padded_w;
  const float* from;
  float* to;
  template <typename V>
  __device__ std::int64_t column(std::int64_t channel) const {
    return channel;
  }
  template <typename V>
  __device__ void row(std::int64_t channel, std::int64_t at, std::int64_t row) const {
    if (kPad) {
      const std::int64_t image = row / (padded_h * padded_w), y = row / padded_w % padded_h - top,
                         x = row % padded_w - left;
      const bool inside = y >= 0 && y < in_h && x >= 0 && x < in_w;
      Pack<V::kWidth> value{};
      if (inside) value = V::load(from + ((image * in_h + y) * in_w + x) * channels + channel);
      V::store(to + at, value);
    } else {
      const std::int64_t image = row / (in_h * in_w), y = row / in_w % in_h + top, x = row % in_w + left;
      V::store(to + at, V::load(from + ((image * padded_h + y) * padded_w + x) * channels + channel));
    }
  }
};
template <bool kPad>
MoveImage<kPad> move_image(const ConvolutionSpec& s, const float* from, float* to) {
  return {s.in_h,
          s.in_w,
          s.in_c,
          s.pad_top,
          s.pad_left,
          s.in_h + s.pad_top + s.pad_bottom,
          s.in_w + s.pad_left + s.pad_right,
          from,
          to};
}

template <bool kRelu>
struct AddBias {
  const float* bias;
  float* y;
  template <typename V>
  __device__ Pack<V::kWidth> column(std::int64_t channel) const {
    return OneByOne<V::kWidth>::load(bias + channel);
  }
  template <typename V>
  __device__ void row(const Pack<V::kWidth>& added, std::int64_t at, std::int64_t) const {
    auto value = V::load(y + at);
    for (int k = 0; k < V::kWidth; ++k) {
      value.at[k] += added.at[k];
      if (kRelu) value.at[k] = positive_part(value.at[k]);
    }
    V::store(y + at, value);
  }
};
struct ReluInPlace {
  float* y;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    auto value = V::load(y + i);
    for (int k = 0; k < V::kWidth; ++k) value.at[k] = positive_part(value.at[k]);
    V::store(y + i, value);
  }
};

}  // namespace

void transpose(const Lane& lane, std::int64_t rows, std::int64_t columns, const float* from, float* to) {
  if (rows <= 0 || columns <= 0) return;
  const std::int64_t squares = ((rows + kSide - 1) / kSide) * ((columns + kSide - 1) / kSide);
  launch(lane, "transpose", transpose_kernel,
         static_cast<unsigned int>(squares < kMaxBlocks ? squares : kMaxBlocks), kThreads, rows, columns,
         from, to);
}

void pad_image(const Lane& lane, const ConvolutionSpec& s, const float* x, float* padded) {
  const auto body = move_image<true>(s, x, padded);
  map_columns(lane, "pad_image", s.n * body.padded_h * body.padded_w, s.in_c, wide_aligned(x, padded), body);
}

void crop_image(const Lane& lane, const ConvolutionSpec& s, const float* padded, float* x) {
  map_columns(lane, "crop_image", s.n * s.in_h * s.in_w, s.in_c, wide_aligned(x, padded),
              move_image<false>(s, padded, x));
}

void add_bias(const Lane& lane, std::int64_t rows, std::int64_t channels, const float* bias, bool relu,
              float* y) {
  if (bias != nullptr && relu)
    map_columns(lane, "add_bias", rows, channels, wide_aligned(y), AddBias<true>{bias, y});
  else if (bias != nullptr)
    map_columns(lane, "add_bias", rows, channels, wide_aligned(y), AddBias<false>{bias, y});
  else if (relu)
    for_each_element(lane, "relu", rows * channels, wide_aligned(y), ReluInPlace{y});
}

}  // namespace lockstep::cuda
