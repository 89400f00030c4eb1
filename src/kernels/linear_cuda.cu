// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/linear_cuda.h"

#include "kernels/cuda_columns.h"

namespace lockstep::cuda {
namespace {

constexpr int kSide = 32;  ///< edge of the square that a block transposes, through shared memory
constexpr int kSideRows = kThreads / kSide;

template <typename From, typename To>
__global__ void __launch_bounds__(kThreads)
    transpose_kernel(std::int64_t rows, std::int64_t columns, const From* from, To* to) {
  __shared__ float square[kSide][kSide + 1];  // one more column: no two rows start in the same memory bank
  const int x = static_cast<int>(threadIdx.x) % kSide, first = static_cast<int>(threadIdx.x) / kSide;
  const std::int64_t squares_across = (columns + kSide - 1) / kSide;
  const std::int64_t squares = squares_across * ((rows + kSide - 1) / kSide);
  for (std::int64_t s = blockIdx.x; s < squares; s += gridDim.x) {
    const std::int64_t row = s / squares_across * kSide, column = s % squares_across * kSide;
    for (int y = first; y < kSide; y += kSideRows)
      if (row + y < rows && column + x < columns)
        square[y][x] = widened(from[(row + y) * columns + column + x]);
    __syncthreads();
    for (int y = first; y < kSide; y += kSideRows)
      if (column + y < columns && row + x < rows)
        to[(column + y) * rows + row + x] = narrowed<To>(square[x][y]);
    __syncthreads();
  }
}

template <bool kRelu, typename T>
struct AddBias {
  const float* bias;
  T* y;
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
template <typename T>
struct ReluInPlace {
  T* y;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    auto value = V::load(y + i);
    for (int k = 0; k < V::kWidth; ++k) value.at[k] = positive_part(value.at[k]);
    V::store(y + i, value);
  }
};

}  // namespace

void transpose(const Lane& lane, std::int64_t rows, std::int64_t columns, ConstData from, Data to) {
  if (rows <= 0 || columns <= 0) return;
  const std::int64_t squares = ((rows + kSide - 1) / kSide) * ((columns + kSide - 1) / kSide);
  const auto blocks = static_cast<unsigned int>(squares < kMaxBlocks ? squares : kMaxBlocks);
  if (from.type() == DType::f32)
    with_type(to.type(), [&]<typename T>(T) {
      launch(lane, "transpose", transpose_kernel<float, T>, blocks, kThreads, rows, columns, from.f32(),
             to.as<T>());
    });
  else
    with_type(from.type(), [&]<typename T>(T) {
      launch(lane, "transpose", transpose_kernel<T, float>, blocks, kThreads, rows, columns, from.as<T>(),
             to.f32());
    });
}

void add_bias(const Lane& lane, std::int64_t rows, std::int64_t channels, const float* bias, bool relu,
              Data y) {
  const bool wide = wide_aligned(y);
  with_type(y.type(), [&]<typename T>(T) {
    if (bias != nullptr && relu)
      map_columns<T>(lane, "add_bias", rows, channels, wide, AddBias<true, T>{bias, y.as<T>()});
    else if (bias != nullptr)
      map_columns<T>(lane, "add_bias", rows, channels, wide, AddBias<false, T>{bias, y.as<T>()});
    else if (relu)
      for_each_element<T>(lane, "relu", rows * channels, wide, ReluInPlace<T>{y.as<T>()});
  });
}

}  // namespace lockstep::cuda
