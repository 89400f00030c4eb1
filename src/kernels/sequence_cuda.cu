// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Sequences on a GPU: copies, with the CPU's bits.
#include "kernels/sequence.h"

#include "kernels/cuda_columns.h"
#include "kernels/factory_cuda.h"

namespace lockstep::cuda {
namespace {

/// Rows are those of `to`. kBack: converts to batch-major.
template <bool kBack, typename T>
struct SwapAxes {
  SequenceShape s;
  const T* from;
  T* to;
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

template <typename From, typename To>
struct CopyRows {
  const From* from;
  std::int64_t from_stride;
  To* to;
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

/// The row that last_step reads, or -1.
inline __device__ std::int64_t last_row(const SequenceShape& s, const float* lengths, std::int64_t sample) {
  if (lengths == nullptr || !(lengths[sample] < static_cast<float>(s.steps))) return s.steps - 1;
  return lengths[sample] < 1.0F ? -1 : static_cast<std::int64_t>(lengths[sample]) - 1;
}

/// Rows are samples.
template <typename T>
struct LastStep {
  SequenceShape s;
  const T* x;
  const float* lengths;
  T* y;
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
template <typename T>
struct LastStepBackward {
  SequenceShape s;
  const T* dy;
  const float* lengths;
  T* dx;
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
template <typename T>
struct FindMask {
  std::int64_t features;
  const T* x;
  float value;
  T* mask;
  template <typename V>
  __device__ void run(std::int64_t first) const {
    for (int k = 0; k < V::kWidth; ++k) {
      const float wanted = widened(narrowed<T>(value));
      bool equal = true;
      for (std::int64_t i = 0; equal && i < features; ++i)
        equal = widened(x[(first + k) * features + i]) == wanted;
      mask[first + k] = narrowed<T>(equal ? 0.0F : 1.0F);
    }
  }
};

template <typename T>
struct ApplyMask {
  const T* x;  ///< null: zeros
  const T* mask;
  T* y;
  template <typename V>
  __device__ std::int64_t column(std::int64_t feature) const {
    return feature;
  }
  template <typename V>
  __device__ void row(std::int64_t, std::int64_t at, std::int64_t row) const {
    Pack<V::kWidth> value{};
    if (x != nullptr && widened(mask[row]) != 0.0F) value = V::load(x + at);
    V::store(y + at, value);
  }
};

template <typename From, typename To>
void launch_copy(const Lane& lane, std::int64_t rows, std::int64_t columns, const From* from,
                 std::int64_t from_stride, To* to, std::int64_t to_stride) {
  using Narrowest = std::conditional_t<sizeof(From) < sizeof(To), From, To>;
  map_columns<Narrowest>(lane, "copy_rows", rows, columns, wide_aligned(from, to),
                         CopyRows<From, To>{from, from_stride, to, to_stride}, from_stride | to_stride);
}

class Sequence final : public SequenceKernels {
 public:
  void to_time_major(const Lane& lane, const SequenceShape& s, ConstData from, Data to) const override {
    with_type(to.type(), [&]<typename T>(T) {
      map_columns<T>(lane, "to_time_major", s.n * s.steps, s.features, wide_aligned(from.as<T>(), to.as<T>()),
                     SwapAxes<false, T>{s, from.as<T>(), to.as<T>()});
    });
  }

  void to_batch_major(const Lane& lane, const SequenceShape& s, ConstData from, Data to) const override {
    with_type(to.type(), [&]<typename T>(T) {
      map_columns<T>(lane, "to_batch_major", s.n * s.steps, s.features,
                     wide_aligned(from.as<T>(), to.as<T>()), SwapAxes<true, T>{s, from.as<T>(), to.as<T>()});
    });
  }

  void copy_rows(const Lane& lane, std::int64_t rows, std::int64_t columns, ConstData from,
                 std::int64_t from_stride, Data to, std::int64_t to_stride) const override {
    if (from.type() == DType::f32)
      with_type(to.type(), [&]<typename T>(T) {
        launch_copy(lane, rows, columns, from.f32(), from_stride, to.as<T>(), to_stride);
      });
    else if (to.type() == DType::f32)
      with_type(from.type(), [&]<typename T>(T) {
        launch_copy(lane, rows, columns, from.as<T>(), from_stride, to.f32(), to_stride);
      });
    else
      with_type(to.type(), [&]<typename T>(T) {
        launch_copy(lane, rows, columns, from.as<T>(), from_stride, to.as<T>(), to_stride);
      });
  }

  void last_step(const Lane& lane, const SequenceShape& s, ConstData x, const float* lengths,
                 Data y) const override {
    with_type(y.type(), [&]<typename T>(T) {
      map_columns<T>(lane, "last_step", s.n, s.features, wide_aligned(x.as<T>(), y.as<T>()),
                     LastStep<T>{s, x.as<T>(), lengths, y.as<T>()});
    });
  }

  void last_step_backward(const Lane& lane, const SequenceShape& s, ConstData dy, const float* lengths,
                          Data dx) const override {
    with_type(dx.type(), [&]<typename T>(T) {
      map_columns<T>(lane, "last_step_backward", s.n * s.steps, s.features,
                     wide_aligned(dy.as<T>(), dx.as<T>()),
                     LastStepBackward<T>{s, dy.as<T>(), lengths, dx.as<T>()});
    });
  }

  void lengths(const Lane& lane, std::int64_t n, std::int64_t steps, const float* x, float padding,
               float* lengths) const override {
    for_each_element(lane, "lengths", n, false, Lengths{steps, x, padding, lengths});
  }

  void mask(const Lane& lane, std::int64_t rows, std::int64_t features, ConstData x, float value, Data y,
            Data mask) const override {
    with_type(x.type(), [&]<typename T>(T) {
      for_each_element(lane, "find_mask", rows, false, FindMask<T>{features, x.as<T>(), value, mask.as<T>()});
      map_columns<T>(lane, "apply_mask", rows, features, wide_aligned(x.as<T>(), y.as<T>()),
                     ApplyMask<T>{x.as<T>(), mask.as<T>(), y.as<T>()});
    });
  }

  void mask_backward(const Lane& lane, std::int64_t rows, std::int64_t features, ConstData dy, ConstData mask,
                     Data dx) const override {
    with_type(dx.type(), [&]<typename T>(T) {
      map_columns<T>(lane, "apply_mask", rows, features, wide_aligned(dy.as<T>(), dx.as<T>()),
                     ApplyMask<T>{dy.as<T>(), mask.as<T>(), dx.as<T>()});
    });
  }
};

}  // namespace

const SequenceKernels& sequence_kernels() {
  static const Sequence kernels;
  return kernels;
}

}  // namespace lockstep::cuda
