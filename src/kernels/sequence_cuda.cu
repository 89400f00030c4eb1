// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Sequences on a GPU: copies, with the CPU's results.
#include "kernels/sequence.h"

#include "kernels/cuda_columns.h"
#include "kernels/factory_cuda.h"

namespace lockstep::cuda {
namespace {

/// Rows are those of `to`; kBack: to batch-major.
template <bool kBack>
struct SwapAxes {
  SequenceShape s;
  const float* from;
  float* to;
  template <typename V>
  __device__ std::int64_t column(std::int64_t feature) const {
    return feature;
  }
  template <typename V>
  __device__ void row(std::int64_t feature, std::int64_t at, std::int64_t row) const {
    const std::int64_t inner = kBack ? s.steps : s.n, outer = kBack ? s.n : s.steps;
    V::store(to + at, V::load(from + (row % inner * outer + row / inner) * s.features + feature));
  }
};

struct CopyRows {
  const float* from;
  std::int64_t from_stride;
  float* to;
  std::int64_t to_stride;
  template <typename V>
  __device__ std::int64_t column(std::int64_t column) const {
    return column;
  }
  template <typename V>
  __device__ void row(std::int64_t column, std::int64_t, std::int64_t row) const {
    V::store(to + row * to_stride + column, V::load(from + row * from_stride + column));
  }
};

/// The row that counts as the last one, or -1.
inline __device__ std::int64_t last_row(const SequenceShape& s, const float* lengths, std::int64_t sample) {
  if (lengths == nullptr || !(lengths[sample] < static_cast<float>(s.steps))) return s.steps - 1;
  return lengths[sample] < 1.0F ? -1 : static_cast<std::int64_t>(lengths[sample]) - 1;
}

/// Rows are samples.
struct LastStep {
  SequenceShape s;
  const float* x;
  const float* lengths;
  float* y;
  template <typename V>
  __device__ std::int64_t column(std::int64_t feature) const {
    return feature;
  }
  template <typename V>
  __device__ void row(std::int64_t feature, std::int64_t at, std::int64_t sample) const {
    const std::int64_t last = last_row(s, lengths, sample);
    Pack<V::kWidth> value{};
    if (last >= 0) value = V::load(x + (sample * s.steps + last) * s.features + feature);
    V::store(y + at, value);
  }
};

/// Rows are samples times steps.
struct LastStepBackward {
  SequenceShape s;
  const float* dy;
  const float* lengths;
  float* dx;
  template <typename V>
  __device__ std::int64_t column(std::int64_t feature) const {
    return feature;
  }
  template <typename V>
  __device__ void row(std::int64_t feature, std::int64_t at, std::int64_t row) const {
    const std::int64_t sample = row / s.steps;
    Pack<V::kWidth> value{};
    if (row % s.steps == last_row(s, lengths, sample)) value = V::load(dy + sample * s.features + feature);
    V::store(dx + at, value);
  }
};

/// One thread per sample.
struct Lengths {
  std::int64_t steps;
  const float* x;
  float padding;
  float* result;
  template <typename V>
  __device__ void run(std::int64_t first) const {
    for (int k = 0; k < V::kWidth; ++k) {
      std::int64_t length = steps;
      while (length > 0 && x[(first + k) * steps + length - 1] == padding) --length;
      result[first + k] = static_cast<float>(length);
    }
  }
};

/// One thread per row.
struct FindMask {
  std::int64_t features;
  const float* x;
  float value;
  float* mask;
  template <typename V>
  __device__ void run(std::int64_t first) const {
    for (int k = 0; k < V::kWidth; ++k) {
      bool equal = true;
      for (std::int64_t i = 0; equal && i < features; ++i) equal = x[(first + k) * features + i] == value;
      mask[first + k] = equal ? 0.0F : 1.0F;
    }
  }
};

struct ApplyMask {
  const float* x;  ///< null: zeros
  const float* mask;
  float* y;
  template <typename V>
  __device__ std::int64_t column(std::int64_t feature) const {
    return feature;
  }
  template <typename V>
  __device__ void row(std::int64_t, std::int64_t at, std::int64_t row) const {
    Pack<V::kWidth> value{};
    if (x != nullptr && mask[row] != 0.0F) value = V::load(x + at);
    V::store(y + at, value);
  }
};

class Sequence final : public SequenceKernels {
 public:
  void to_time_major(const Lane& lane, const SequenceShape& s, const float* from, float* to) const override {
    map_columns(lane, "to_time_major", s.n * s.steps, s.features, wide_aligned(from, to),
                SwapAxes<false>{s, from, to});
  }

  void to_batch_major(const Lane& lane, const SequenceShape& s, const float* from, float* to) const override {
    map_columns(lane, "to_batch_major", s.n * s.steps, s.features, wide_aligned(from, to),
                SwapAxes<true>{s, from, to});
  }

  void copy_rows(const Lane& lane, std::int64_t rows, std::int64_t columns, const float* from,
                 std::int64_t from_stride, float* to, std::int64_t to_stride) const override {
    const bool wide = wide_aligned(from, to) && from_stride % 4 == 0 && to_stride % 4 == 0;
    map_columns(lane, "copy_rows", rows, columns, wide, CopyRows{from, from_stride, to, to_stride});
  }

  void last_step(const Lane& lane, const SequenceShape& s, const float* x, const float* lengths,
                 float* y) const override {
    map_columns(lane, "last_step", s.n, s.features, wide_aligned(x, y), LastStep{s, x, lengths, y});
  }

  void last_step_backward(const Lane& lane, const SequenceShape& s, const float* dy, const float* lengths,
                          float* dx) const override {
    map_columns(lane, "last_step_backward", s.n * s.steps, s.features, wide_aligned(dy, dx),
                LastStepBackward{s, dy, lengths, dx});
  }

  void lengths(const Lane& lane, std::int64_t n, std::int64_t steps, const float* x, float padding,
               float* lengths) const override {
    for_each_element(lane, "lengths", n, false, Lengths{steps, x, padding, lengths});
  }

  void mask(const Lane& lane, std::int64_t rows, std::int64_t features, const float* x, float value, float* y,
            float* mask) const override {
    for_each_element(lane, "find_mask", rows, false, FindMask{features, x, value, mask});
    map_columns(lane, "apply_mask", rows, features, wide_aligned(x, y), ApplyMask{x, mask, y});
  }

  void mask_backward(const Lane& lane, std::int64_t rows, std::int64_t features, const float* dy,
                     const float* mask, float* dx) const override {
    map_columns(lane, "apply_mask", rows, features, wide_aligned(dy, dx), ApplyMask{dy, mask, dx});
  }
};

}  // namespace

const SequenceKernels& sequence_kernels() {
  static const Sequence kernels;
  return kernels;
}

}  // namespace lockstep::cuda
