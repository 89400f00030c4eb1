// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Sequences on the CPU, per instruction-set level (isa.h).
#include "kernels/sequence.h"

#include "kernels/isa.h"
#include "kernels/vec.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

template <typename T>
inline void copy(std::int64_t count, const T* from, T* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
}
template <typename T>
inline void zero(std::int64_t count, T* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = T{};
}

/// The row that last_step reads, or -1.
inline std::int64_t last_row(const SequenceShape& s, const float* lengths, std::int64_t sample) {
  if (lengths == nullptr || !(lengths[sample] < static_cast<float>(s.steps))) return s.steps - 1;
  return lengths[sample] < 1.0F ? -1 : static_cast<std::int64_t>(lengths[sample]) - 1;
}

/// Moves sample s's row t from n x steps to steps x n, or back.
template <bool kBack, typename T>
void swap_axes(const SequenceShape& s, const T* from, T* to) {
  for (std::int64_t sample = 0; sample < s.n; ++sample)
    for (std::int64_t t = 0; t < s.steps; ++t) {
      const std::int64_t batch = (sample * s.steps + t) * s.features, time = (t * s.n + sample) * s.features;
      copy(s.features, from + (kBack ? time : batch), to + (kBack ? batch : time));
    }
}

template <typename From, typename To>
void copy_rows_of(std::int64_t rows, std::int64_t columns, const From* from, std::int64_t from_stride, To* to,
                  std::int64_t to_stride) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const From* in = from + row * from_stride;
    To* out = to + row * to_stride;
    for_each_vector(columns,
                    [&]<typename V>(std::int64_t i, V) { Lanes<V>::store(out + i, Lanes<V>::load(in + i)); });
  }
}

template <typename T>
void mask_of(std::int64_t rows, std::int64_t features, const T* x, float value, T* y, T* mask) {
  const float wanted = to_float(from_float<T>(value));
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* from = x + row * features;
    std::int64_t equal = 0;
    for (std::int64_t i = 0; i < features; ++i) equal += to_float(from[i]) == wanted ? 1 : 0;
    mask[row] = from_float<T>(equal == features ? 0.0F : 1.0F);
    if (equal == features)
      zero(features, y + row * features);
    else
      copy(features, from, y + row * features);
  }
}

class Sequence final : public SequenceKernels {
 public:
  void to_time_major(const Lane&, const SequenceShape& s, ConstData from, Data to) const override {
    with_type(to.type(), [&]<typename T>(T) { swap_axes<false>(s, from.as<T>(), to.as<T>()); });
  }

  void to_batch_major(const Lane&, const SequenceShape& s, ConstData from, Data to) const override {
    with_type(to.type(), [&]<typename T>(T) { swap_axes<true>(s, from.as<T>(), to.as<T>()); });
  }

  void copy_rows(const Lane&, std::int64_t rows, std::int64_t columns, ConstData from,
                 std::int64_t from_stride, Data to, std::int64_t to_stride) const override {
    if (from.type() == DType::f32)
      with_type(to.type(), [&]<typename T>(T) {
        copy_rows_of(rows, columns, from.f32(), from_stride, to.as<T>(), to_stride);
      });
    else if (to.type() == DType::f32)
      with_type(from.type(), [&]<typename T>(T) {
        copy_rows_of(rows, columns, from.as<T>(), from_stride, to.f32(), to_stride);
      });
    else
      with_type(to.type(), [&]<typename T>(T) {
        for (std::int64_t row = 0; row < rows; ++row)
          copy(columns, from.as<T>() + row * from_stride, to.as<T>() + row * to_stride);
      });
  }

  void last_step(const Lane&, const SequenceShape& s, ConstData x, const float* lengths,
                 Data y) const override {
    with_type(y.type(), [&]<typename T>(T) {
      for (std::int64_t sample = 0; sample < s.n; ++sample) {
        const std::int64_t last = last_row(s, lengths, sample);
        T* to = y.as<T>() + sample * s.features;
        if (last < 0)
          zero(s.features, to);
        else
          copy(s.features, x.as<T>() + (sample * s.steps + last) * s.features, to);
      }
    });
  }

  void last_step_backward(const Lane&, const SequenceShape& s, ConstData dy, const float* lengths,
                          Data dx) const override {
    with_type(dx.type(), [&]<typename T>(T) {
      for (std::int64_t sample = 0; sample < s.n; ++sample) {
        const std::int64_t last = last_row(s, lengths, sample);
        T* to = dx.as<T>() + sample * s.steps * s.features;
        zero(s.steps * s.features, to);
        if (last >= 0) copy(s.features, dy.as<T>() + sample * s.features, to + last * s.features);
      }
    });
  }

  void lengths(const Lane&, std::int64_t n, std::int64_t steps, const float* x, float padding,
               float* lengths) const override {
    for (std::int64_t sample = 0; sample < n; ++sample) {
      std::int64_t length = steps;
      while (length > 0 && x[sample * steps + length - 1] == padding) --length;
      lengths[sample] = static_cast<float>(length);
    }
  }

  void mask(const Lane&, std::int64_t rows, std::int64_t features, ConstData x, float value, Data y,
            Data mask) const override {
    with_type(x.type(),
              [&]<typename T>(T) { mask_of(rows, features, x.as<T>(), value, y.as<T>(), mask.as<T>()); });
  }

  void mask_backward(const Lane&, std::int64_t rows, std::int64_t features, ConstData dy, ConstData mask,
                     Data dx) const override {
    with_type(dx.type(), [&]<typename T>(T) {
      const T *from = dy.as<T>(), *kept = mask.as<T>();
      for (std::int64_t row = 0; row < rows; ++row)
        if (from == nullptr || to_float(kept[row]) == 0.0F)
          zero(features, dx.as<T>() + row * features);
        else
          copy(features, from + row * features, dx.as<T>() + row * features);
    });
  }
};

}  // namespace

const SequenceKernels& sequence_kernels() {
  static const Sequence kernels;
  return kernels;
}

}  // namespace lockstep::LOCKSTEP_ISA
