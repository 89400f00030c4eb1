// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention on a GPU: products of all heads at once in tiles of shared memory, and a warp per row of
// probabilities. Products add in float32 in the order of the inner index, with fused multiply-adds. Sums over
// a row are in double: thread t adds elements t, t + 32, ..., and the threads are added along a tree. Tiles
// that a causal mask leaves empty are skipped. 16-bit activations use the tensor cores without probabilities
// in memory: cuDNN (planned_attention_cuda.h) where it has a plan, else own kernels (fused_attention_cuda.h).
// Heads that are too large for those kernels use the kernels here, with probabilities and their gradients in
// float32 scratch.
#include "kernels/attention.h"

#include <algorithm>
#include <cmath>

#include "core/philox.h"
#include "kernels/attention_product_cuda.h"
#include "kernels/cuda_columns.h"
#include "kernels/factory_cuda.h"
#include "kernels/fused_attention_cuda.h"
#include "kernels/planned_attention_cuda.h"

namespace lockstep::cuda {
namespace {

constexpr int kWarp = 32;
constexpr unsigned int kWholeWarp = 0xFFFFFFFFU;

inline __device__ double sum_over_warp(double value) {
  for (int step = kWarp / 2; step > 0; step /= 2) value += __shfl_xor_sync(kWholeWarp, value, step);
  return value;
}

/// The row of probabilities of query i of head h of sample s.
struct Row {
  std::int64_t s, h, i, count, at;
};

struct Rows {
  AttentionShape shape;
  const float* lengths;
  AttentionDropout dropout;
  const std::uint32_t* step_word;
  __device__ Row operator()(std::int64_t number) const {
    Row row{};
    row.i = number % shape.queries;
    row.h = number / shape.queries % shape.heads;
    row.s = number / shape.queries / shape.heads;
    const std::int64_t length = lengths == nullptr ? shape.keys : length_of(lengths[row.s], shape.keys);
    row.count = attended(shape, length, row.i);
    row.at = number * shape.row();
    return row;
  }
  /// The dropout factor of element j of a row.
  __device__ float kept(const Row& row, std::int64_t j) const {
    const std::int64_t element = row.i * shape.row() + j;
    const PhiloxBlock words = philox_words(dropout.seed, dropout.purpose + static_cast<std::uint32_t>(row.h),
                                           step_word != nullptr ? *step_word : dropout.step,
                                           dropout.first_sample + static_cast<std::uint32_t>(row.s),
                                           static_cast<std::uint32_t>(element / 4));
    return philox_uniform(words[static_cast<std::size_t>(element % 4)]) >= dropout.rate
               ? 1.0F / (1.0F - dropout.rate)
               : 0.0F;
  }
};

template <typename Body>
__device__ void for_each_row(const Rows& rows, const Body& body) {
  const std::int64_t count = rows.shape.n * rows.shape.heads * rows.shape.queries;
  constexpr int kRows = kThreads / kWarp;
  for (std::int64_t row =
           static_cast<std::int64_t>(blockIdx.x) * kRows + static_cast<int>(threadIdx.x) / kWarp;
       row < count; row += static_cast<std::int64_t>(gridDim.x) * kRows)
    body(rows(row));
}

/// p = softmax of the scores in p; dropped (unless null) = p after dropout.
__global__ void __launch_bounds__(kThreads) probabilities_kernel(Rows rows, float* p, float* dropped) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for_each_row(rows, [&](const Row& row) {
    float* x = p + row.at;
    float max = row.count > 0 ? x[0] : 0.0F;
    for (std::int64_t j = lane; j < row.count; j += kWarp) max = x[j] > max ? x[j] : max;
    for (int step = kWarp / 2; step > 0; step /= 2) {
      const float other = __shfl_xor_sync(kWholeWarp, max, step);
      max = other > max ? other : max;
    }
    double sum = 0.0;
    for (std::int64_t j = lane; j < row.count; j += kWarp) sum += static_cast<double>(expf(x[j] - max));
    sum = sum_over_warp(sum);
    const float factor = row.count > 0 ? static_cast<float>(1.0 / sum) : 0.0F;
    for (std::int64_t j = lane; j < rows.shape.row(); j += kWarp) {
      const float value = j < row.count ? expf(x[j] - max) * factor : 0.0F;
      x[j] = value;
      if (dropped != nullptr) dropped[row.at + j] = j < row.count ? value * rows.kept(row, j) : 0.0F;
    }
  });
}

/// dropped = p after dropout.
__global__ void __launch_bounds__(kThreads) drop_kernel(Rows rows, const float* p, float* dropped) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for_each_row(rows, [&](const Row& row) {
    for (std::int64_t j = lane; j < rows.shape.row(); j += kWarp)
      dropped[row.at + j] = j < row.count ? p[row.at + j] * rows.kept(row, j) : 0.0F;
  });
}

/// dx (the gradient of the probabilities after dropout) = the gradient of the scores.
__global__ void __launch_bounds__(kThreads)
    probabilities_backward_kernel(Rows rows, const float* p, float* dx) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for_each_row(rows, [&](const Row& row) {
    double dot = 0.0;
    for (std::int64_t j = lane; j < row.count; j += kWarp) {
      float gradient = dx[row.at + j];
      if (rows.shape.dropout) gradient *= rows.kept(row, j);
      dot += static_cast<double>(p[row.at + j] * gradient);
    }
    const float mean = static_cast<float>(sum_over_warp(dot));
    for (std::int64_t j = lane; j < rows.shape.row(); j += kWarp) {
      float value = 0.0F;
      if (j < row.count) {
        value = dx[row.at + j];
        if (rows.shape.dropout) value *= rows.kept(row, j);
        value = p[row.at + j] * (value - mean);
      }
      dx[row.at + j] = value;
    }
  });
}

template <typename T>
struct ZeroPast {
  const float* lengths;
  T* x;
  std::int64_t steps;
  template <typename V>
  __device__ std::int64_t column(std::int64_t unit) const {
    return unit;
  }
  template <typename V>
  __device__ void row(std::int64_t, std::int64_t at, std::int64_t row) const {
    if (row % steps >= length_of(lengths[row / steps], steps)) V::store(x + at, {});
  }
};

/// The matrix layouts of a problem.
struct Layout {
  const AttentionShape& shape;
  std::int64_t query_stride, key_stride;

  template <typename T>
  Matrix<T> queries(T* at) const {
    return {at, shape.queries * query_stride, shape.head_size, query_stride, 1};
  }
  template <typename T>
  Matrix<T> keys(T* at) const {
    return {at, shape.keys * key_stride, shape.head_size, key_stride, 1};
  }
  template <typename T>
  Matrix<T> outputs(T* at) const {
    const std::int64_t width = shape.heads * shape.head_size;
    return {at, shape.queries * width, shape.head_size, width, 1};
  }
  template <typename T>
  Matrix<T> scores(T* at) const {
    return {at, shape.heads * shape.queries * shape.row(), shape.queries * shape.row(), shape.row(), 1};
  }
  Triangle triangle(Triangle when_causal) const { return shape.causal ? when_causal : Triangle::none; }
};

class Attention final : public AttentionKernels {
 public:
  std::size_t kept_bytes(const AttentionShape& shape, DType type) const override {
    if (is_fused(shape, type)) return fused_attention_statistics_bytes(shape);
    if (type != DType::f32 || shape.queries * shape.keys > kMostKeptProbabilities) return 0;
    return static_cast<std::size_t>(shape.probabilities()) * sizeof(float);
  }
  std::size_t scratch_bytes(const AttentionShape& shape, DType type, bool kept,
                            bool training) const override {
    if (is_fused(shape, type)) return fused_scratch_bytes(shape, type, training);
    const int parts = (kept ? 0 : 1) + (shape.dropout ? 1 : 0) + (training ? 1 : 0);
    return static_cast<std::size_t>(parts) * static_cast<std::size_t>(shape.probabilities()) * sizeof(float);
  }

  void forward(const Lane& lane, const AttentionShape& shape, const AttentionInputs& inputs,
               const AttentionDropout& dropout, void* kept, Data y) const override {
    if (const auto plan = attention_plan(shape, y.type(), AttentionPass::forward))
      planned_attention_forward(*plan, lane, shape, inputs, kept, y);
    else if (is_fused(shape, y.type()))
      fused_attention_forward(lane, shape, inputs, dropout, static_cast<float*>(kept), y);
    else
      with_type(y.type(), [&]<typename T>(T) {
        forward_of(lane, shape, inputs, dropout, static_cast<float*>(kept), y.as<T>());
      });
  }

  void backward(const Lane& lane, const AttentionShape& shape, const AttentionInputs& inputs,
                const AttentionDropout& dropout, const void* kept, ConstData y, ConstData dy,
                const AttentionGradients& gradients) const override {
    if (is_fused(shape, dy.type())) require(kept != nullptr, "attention in 16 bits needs what forward kept");
    if (const auto plan = attention_plan(shape, dy.type(), AttentionPass::backward))
      planned_attention_backward(*plan, lane, shape, inputs, kept, y, dy, gradients);
    else if (is_fused(shape, dy.type()))
      fused_attention_backward(lane, shape, inputs, dropout, static_cast<const float*>(kept), y, dy,
                               gradients);
    else
      with_type(dy.type(), [&]<typename T>(T) {
        backward_of(lane, shape, inputs, dropout, static_cast<const float*>(kept), dy.as<T>(), gradients);
      });
  }

  void zero_past(const Lane& lane, std::int64_t n, std::int64_t steps, std::int64_t width,
                 const float* lengths, Data x) const override {
    with_type(x.type(), [&]<typename T>(T) {
      map_columns<T>(lane, "zero_past", n * steps, width, wide_aligned(x.as<T>()),
                     ZeroPast<T>{lengths, x.as<T>(), steps});
    });
  }

 private:
  static bool is_fused(const AttentionShape& shape, DType type) {
    return type != DType::f32 && shape.head_size <= kMostFusedHeadSize;
  }
  static std::size_t fused_scratch_bytes(const AttentionShape& shape, DType type, bool training) {
    std::size_t most = 0;
    if (const auto plan = attention_plan(shape, type, AttentionPass::forward))
      most = planned_attention_scratch_bytes(*plan, shape);
    if (!training) return most;
    const auto plan = attention_plan(shape, type, AttentionPass::backward);
    return std::max(
        most, plan ? planned_attention_scratch_bytes(*plan, shape) : fused_attention_scratch_bytes(shape));
  }

  template <typename T>
  static void forward_of(const Lane& lane, const AttentionShape& shape, const AttentionInputs& inputs,
                         const AttentionDropout& dropout, float* probabilities, T* y) {
    const Layout layout{shape, shape.query_stride, shape.key_stride};
    float* next = static_cast<float*>(lane.scratch);
    float* p = probabilities != nullptr ? probabilities : take(shape, next);
    float* dropped = shape.dropout ? take(shape, next) : nullptr;
    make_probabilities<T>(lane, shape, inputs, dropout, p, dropped);
    multiply<float, T, T>(
        lane, "attention_output",
        {layout.scores<const float>(shape.dropout ? dropped : p), layout.keys(inputs.v.as<T>()),
         layout.outputs(y), shape.n, shape.heads, shape.queries, shape.keys, shape.head_size, 1.0F,
         layout.triangle(Triangle::up_to_row)});
  }

  template <typename T>
  static void backward_of(const Lane& lane, const AttentionShape& shape, const AttentionInputs& inputs,
                          const AttentionDropout& dropout, const float* probabilities, const T* dy,
                          const AttentionGradients& gradients) {
    const Layout layout{shape, shape.query_stride, shape.key_stride};
    float* next = static_cast<float*>(lane.scratch);
    float* again = probabilities == nullptr ? take(shape, next) : nullptr;
    float* dropped = shape.dropout ? take(shape, next) : nullptr;
    const float* p = probabilities == nullptr ? again : probabilities;
    if (probabilities == nullptr) {
      make_probabilities<T>(lane, shape, inputs, dropout, again, dropped);
    } else if (shape.dropout) {
      launch(lane, "attention_dropout", drop_kernel, row_blocks(shape), kThreads,
             rows(lane, shape, inputs, dropout), p, dropped);
    }
    float* dp = take(shape, next);
    const auto used = layout.scores<const float>(shape.dropout ? dropped : p);
    multiply<float, T, T>(
        lane, "attention_dv",
        {transposed(used), layout.outputs(dy), layout.keys(gradients.v.as<T>()), shape.n, shape.heads,
         shape.keys, shape.queries, shape.head_size, 1.0F, layout.triangle(Triangle::from_row)});
    multiply<T, T, float>(
        lane, "attention_dp",
        {layout.outputs(dy), transposed(layout.keys(inputs.v.as<T>())), layout.scores(dp), shape.n,
         shape.heads, shape.queries, shape.head_size, shape.keys, 1.0F, layout.triangle(Triangle::result)});
    launch(lane, "attention_softmax_backward", probabilities_backward_kernel, row_blocks(shape), kThreads,
           rows(lane, shape, inputs, dropout), p, dp);
    const auto ds = layout.scores<const float>(dp);
    multiply<float, T, T>(
        lane, "attention_dq",
        {ds, layout.keys(inputs.k.as<T>()), layout.queries(gradients.q.as<T>()), shape.n, shape.heads,
         shape.queries, shape.keys, shape.head_size, factor(shape), layout.triangle(Triangle::up_to_row)});
    multiply<float, T, T>(lane, "attention_dk",
                          {transposed(ds), layout.queries(inputs.q.as<T>()), layout.keys(gradients.k.as<T>()),
                           shape.n, shape.heads, shape.keys, shape.queries, shape.head_size, factor(shape),
                           layout.triangle(Triangle::from_row)});
  }

  static float factor(const AttentionShape& shape) {
    return static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.head_size)));
  }
  static float* take(const AttentionShape& shape, float*& next) {
    float* part = next;
    next += shape.probabilities();
    return part;
  }
  static unsigned int row_blocks(const AttentionShape& shape) {
    return blocks_for(shape.n * shape.heads * shape.queries * kWarp);
  }
  static Rows rows(const Lane& lane, const AttentionShape& shape, const AttentionInputs& inputs,
                   const AttentionDropout& dropout) {
    return {shape, inputs.lengths, dropout, lane.step_word};
  }
  template <typename T>
  static void make_probabilities(const Lane& lane, const AttentionShape& shape, const AttentionInputs& inputs,
                                 const AttentionDropout& dropout, float* p, float* dropped) {
    const Layout layout{shape, shape.query_stride, shape.key_stride};
    multiply<T, T, float>(lane, "attention_scores",
                          {layout.queries(inputs.q.as<T>()), transposed(layout.keys(inputs.k.as<T>())),
                           layout.scores(p), shape.n, shape.heads, shape.queries, shape.head_size, shape.keys,
                           factor(shape), layout.triangle(Triangle::result)});
    launch(lane, "attention_softmax", probabilities_kernel, row_blocks(shape), kThreads,
           rows(lane, shape, inputs, dropout), p, dropped);
  }
};

}  // namespace

const AttentionKernels& attention_kernels() {
  static const Attention kernels;
  return kernels;
}

}  // namespace lockstep::cuda
