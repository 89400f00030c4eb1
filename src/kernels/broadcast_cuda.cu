// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Products, sums and maxima along a middle axis on a GPU. Products, repeats and maxima have the CPU's bits.
#include "kernels/broadcast.h"

#include "kernels/cuda_columns.h"
#include "kernels/cuda_rows.h"
#include "kernels/factory_cuda.h"

namespace lockstep::cuda {
namespace {

/// The shape seen as a matrix. Rows are outer x middle and columns are inner. With inner = 1, rows are outer
/// and columns are middle, and a row has one element of the small array.
struct Matrix {
  std::int64_t rows, columns, middle, inner;
  explicit Matrix(const BroadcastShape& s)
      : rows(s.inner == 1 ? s.outer : s.outer * s.middle),
        columns(s.inner == 1 ? s.middle : s.inner),
        middle(s.middle),
        inner(s.inner) {}
  /// Elements of the small array for kWidth adjacent elements of the large one.
  template <typename V, typename T>
  __device__ Pack<V::kWidth> small(const T* b, std::int64_t row, std::int64_t column) const {
    Pack<V::kWidth> pack;
    const T* from = inner == 1 ? b + row : b + row / middle * inner + column;
    for (int k = 0; k < V::kWidth; ++k) pack.at[k] = widened(from[inner == 1 ? 0 : k]);
    return pack;
  }
};

template <typename T, typename B>
struct Multiply {
  Matrix matrix;
  const T* a;
  const B* b;
  T* y;
  template <typename V>
  __device__ std::int64_t column(std::int64_t column) const {
    return column;
  }
  template <typename V>
  __device__ void row(std::int64_t column, std::int64_t at, std::int64_t row) const {
    auto value = V::load(a + at);
    const auto factor = matrix.small<V>(b, row, column);
    for (int k = 0; k < V::kWidth; ++k) value.at[k] *= factor.at[k];
    V::store(y + at, value);
  }
};

/// For middle = 1: the arrays have the same size.
template <typename T, typename B>
struct MultiplyElements {
  const T* a;
  const B* b;
  T* y;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    auto value = V::load(a + i);
    const auto factor = V::load(b + i);
    for (int k = 0; k < V::kWidth; ++k) value.at[k] *= factor.at[k];
    V::store(y + i, value);
  }
};

template <typename T>
struct Repeat {
  Matrix matrix;
  float factor;
  const T* b;
  T* y;
  template <typename V>
  __device__ std::int64_t column(std::int64_t column) const {
    return column;
  }
  template <typename V>
  __device__ void row(std::int64_t column, std::int64_t at, std::int64_t row) const {
    auto value = matrix.small<V>(b, row, column);
    for (int k = 0; k < V::kWidth; ++k) value.at[k] *= factor;
    V::store(y + at, value);
  }
};

template <typename T>
struct MaximumBackward {
  Matrix matrix;
  const T* dy;
  const std::int32_t* at;
  T* dx;
  template <typename V>
  __device__ std::int64_t column(std::int64_t column) const {
    return column;
  }
  template <typename V>
  __device__ void row(std::int64_t column, std::int64_t element, std::int64_t row) const {
    auto value = matrix.small<V>(dy, row, column);
    const std::int64_t first = matrix.inner == 1 ? row : row / matrix.middle * matrix.inner + column;
    for (int k = 0; k < V::kWidth; ++k) {
      const std::int64_t place = matrix.inner == 1 ? column + k : row % matrix.middle;
      if (at[matrix.inner == 1 ? first : first + k] != place) value.at[k] = 0.0F;
    }
    V::store(dx + element, value);
  }
};

/// One block per tile of columns of one outer index.
template <typename V, typename T>
__global__ void __launch_bounds__(kThreads)
    sum_middle_kernel(Columns c, std::int64_t outer, double factor, const T* a, const T* b, T* y) {
  constexpr int kWidth = V::kWidth;
  __shared__ double shared[kWidth][kThreads];
  const Place place(c);
  const std::int64_t column = place.piece * kWidth;
  for (std::int64_t o = blockIdx.z; o < outer; o += gridDim.z) {
    double total[kWidth] = {};
    if (place.active)
      for (std::int64_t row = place.row; row < c.rows;) {
        Pack<kWidth> sum = {};
        for (int i = 0; i < kBlockRows && row < c.rows; ++i, row += c.row_threads) {
          const std::int64_t at = (o * c.rows + row) * c.channels + column;
          auto value = V::load(a + at);
          if (b != nullptr) {
            const auto other = V::load(b + at);
            for (int k = 0; k < kWidth; ++k) value.at[k] *= other.at[k];
          }
          for (int k = 0; k < kWidth; ++k) sum.at[k] += value.at[k];
        }
        for (int k = 0; k < kWidth; ++k) total[k] += static_cast<double>(sum.at[k]);
      }
    __syncthreads();  // the previous outer index has been read
    for (int k = 0; k < kWidth; ++k) shared[k][threadIdx.x] = total[k];
    add_row_threads<kWidth>(shared, c.tile, c.row_threads);
    if (place.active && place.row_thread == 0)
      for (int k = 0; k < kWidth; ++k)
        y[o * c.channels + column + k] = narrowed<T>(static_cast<float>(shared[k][threadIdx.x] * factor));
  }
}

/// For inner = 1: a group of threads per row.
template <int kGroup, typename T>
__global__ void __launch_bounds__(kThreads)
    sum_row_kernel(std::int64_t rows, std::int64_t columns, double factor, const T* a, const T* b, T* y) {
  using G = Group<kGroup>;
  for_each_row<kGroup>(rows, [&](std::int64_t row) {
    double sum = 0.0;
    for (std::int64_t m = G::thread(); m < columns; m += kGroup) {
      const float value = widened(a[row * columns + m]);
      sum += static_cast<double>(b == nullptr ? value : value * widened(b[row * columns + m]));
    }
    sum = G::sum(sum);
    if (G::thread() == 0) y[row] = narrowed<T>(static_cast<float>(sum * factor));
  });
}

/// True if value is larger than the running maximum. The first NaN counts as larger than everything and
/// stays.
inline __device__ bool exceeds(float value, float best) {
  return value > best || (value != value && best == best);
}

/// For inner = 1: a group of threads per row.
template <int kGroup, typename T>
__global__ void __launch_bounds__(kThreads)
    maximum_row_kernel(std::int64_t rows, std::int64_t columns, const T* a, T* y, std::int32_t* at) {
  using G = Group<kGroup>;
  for_each_row<kGroup>(rows, [&](std::int64_t row) {
    const T* from = a + row * columns;
    // A NaN counts as infinity before the first element, so that the group's maximum finds the first NaN.
    Maximum best{-INFINITY, columns};
    for (std::int64_t m = G::thread(); m < columns; m += kGroup) {
      const float value = widened(from[m]);
      const bool nan = value != value;
      const Maximum next{nan ? INFINITY : value, nan ? m - columns : m};
      if (larger(next, best)) best = next;
    }
    best = G::maximum(best);
    if (G::thread() != 0) return;
    const std::int64_t index = best.index < 0 ? best.index + columns : best.index;
    y[row] = from[index];
    if (at != nullptr) at[row] = static_cast<std::int32_t>(index);
  });
}

/// One thread per column of each outer index.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    maximum_kernel(BroadcastShape s, const T* a, T* y, std::int32_t* at) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       column < s.outer * s.inner; column += stride) {
    const T* from = a + column / s.inner * s.middle * s.inner + column % s.inner;
    float best = widened(from[0]);
    std::int64_t index = 0;
    for (std::int64_t m = 1; m < s.middle; ++m)
      if (const float value = widened(from[m * s.inner]); exceeds(value, best)) {
        best = value;
        index = m;
      }
    y[column] = from[index * s.inner];
    if (at != nullptr) at[column] = static_cast<std::int32_t>(index);
  }
}

template <typename T, typename B>
void multiply_typed(const Lane& lane, const BroadcastShape& s, const T* a, const B* b, T* y) {
  if (s.middle == 1) {
    for_each_element<T>(lane, "multiply", s.outer * s.inner, wide_aligned(a, b, y),
                        MultiplyElements<T, B>{a, b, y});
    return;
  }
  const Matrix matrix(s);
  map_columns<T>(lane, "multiply", matrix.rows, matrix.columns, wide_aligned(a, y),
                 Multiply<T, B>{matrix, a, b, y});
}

template <typename T>
void sum_typed(const Lane& lane, const BroadcastShape& s, double factor, const T* a, const T* b, T* y) {
  if (s.outer <= 0 || s.inner <= 0) return;
  if (s.inner == 1) {
    launch_rows(lane, "sum", s.outer, s.middle, kMaxBlocks, sum_row_kernel<kWarp, T>,
                sum_row_kernel<kThreads, T>, factor, a, b, y);
    return;
  }
  const bool fours = s.inner % 4 == 0;
  Columns c = cut_columns(s.middle, s.inner, fours ? 4 : 1, s.middle < 1 ? 1 : s.middle, 1);  // one chunk
  const dim3 grid(c.tiles, 1, static_cast<unsigned int>(s.outer < 65535 ? s.outer : 65535));
  launch(lane, "sum",
         !fours                  ? sum_middle_kernel<Narrow, T>
         : wide_aligned(a, b, y) ? sum_middle_kernel<Wide, T>
                                 : sum_middle_kernel<Loose, T>,
         grid, kThreads, c, s.outer, factor, a, b, y);
}

template <typename T>
void maximum_typed(const Lane& lane, const BroadcastShape& s, const T* a, T* y, std::int32_t* at) {
  if (s.outer <= 0 || s.inner <= 0) return;
  if (s.inner == 1)
    launch_rows(lane, "maximum", s.outer, s.middle, kMaxBlocks, maximum_row_kernel<kWarp, T>,
                maximum_row_kernel<kThreads, T>, a, y, at);
  else
    launch(lane, "maximum", maximum_kernel<T>, blocks_for(s.outer * s.inner), kThreads, s, a, y, at);
}

class Broadcast final : public BroadcastKernels {
 public:
  void multiply(const Lane& lane, const BroadcastShape& s, ConstData a, ConstData b, Data y) const override {
    with_type(y.type(), [&]<typename T>(T) {
      if (b.type() == dtype_of<T>)
        multiply_typed(lane, s, a.as<T>(), b.as<T>(), y.as<T>());
      else
        multiply_typed(lane, s, a.as<T>(), b.f32(), y.as<T>());
    });
  }

  void repeat(const Lane& lane, const BroadcastShape& s, float factor, ConstData b, Data y) const override {
    const Matrix matrix(s);
    with_type(y.type(), [&]<typename T>(T) {
      map_columns<T>(lane, "repeat", matrix.rows, matrix.columns, wide_aligned(y),
                     Repeat<T>{matrix, factor, b.as<T>(), y.as<T>()});
    });
  }

  void sum(const Lane& lane, const BroadcastShape& s, double factor, ConstData a, ConstData b,
           Data y) const override {
    with_type(y.type(), [&]<typename T>(T) { sum_typed(lane, s, factor, a.as<T>(), b.as<T>(), y.as<T>()); });
  }

  void maximum(const Lane& lane, const BroadcastShape& s, ConstData a, Data y,
               std::int32_t* at) const override {
    with_type(y.type(), [&]<typename T>(T) { maximum_typed(lane, s, a.as<T>(), y.as<T>(), at); });
  }

  void maximum_backward(const Lane& lane, const BroadcastShape& s, ConstData dy, const std::int32_t* at,
                        Data dx) const override {
    const Matrix matrix(s);
    with_type(dx.type(), [&]<typename T>(T) {
      map_columns<T>(lane, "maximum_backward", matrix.rows, matrix.columns, wide_aligned(dx),
                     MaximumBackward<T>{matrix, dy.as<T>(), at, dx.as<T>()});
    });
  }
};

}  // namespace

const BroadcastKernels& broadcast_kernels() {
  static const Broadcast kernels;
  return kernels;
}

}  // namespace lockstep::cuda
