// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Sequences on the CPU, per instruction-set level (isa.h).
#include "kernels/sequence.h"

#include "kernels/isa.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

inline void copy(std::int64_t count, const float* from, float* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
}
inline void zero(std::int64_t count, float* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = 0.0F;
}

/// The row that counts as the last one, or -1.
inline std::int64_t last_row(const SequenceShape& s, const float* lengths, std::int64_t sample) {
  if (lengths == nullptr || !(lengths[sample] < static_cast<float>(s.steps))) return s.steps - 1;
  return lengths[sample] < 1.0F ? -1 : static_cast<std::int64_t>(lengths[sample]) - 1;
}

class Sequence final : public SequenceKernels {
 public:
  void to_time_major(const Lane&, const SequenceShape& s, const float* from, float* to) const override {
    for (std::int64_t sample = 0; sample < s.n; ++sample)
      for (std::int64_t t = 0; t < s.steps; ++t)
        copy(s.features, from + (sample * s.steps + t) * s.features, to + (t * s.n + sample) * s.features);
  }

  void to_batch_major(const Lane&, const SequenceShape& s, const float* from, float* to) const override {
    for (std::int64_t sample = 0; sample < s.n; ++sample)
      for (std::int64_t t = 0; t < s.steps; ++t)
        copy(s.features, from + (t * s.n + sample) * s.features, to + (sample * s.steps + t) * s.features);
  }

  void copy_rows(const Lane&, std::int64_t rows, std::int64_t columns, const float* from,
                 std::int64_t from_stride, float* to, std::int64_t to_stride) const override {
    for (std::int64_t row = 0; row < rows; ++row)
      copy(columns, from + row * from_stride, to + row * to_stride);
  }

  void last_step(const Lane&, const SequenceShape& s, const float* x, const float* lengths,
                 float* y) const override {
    for (std::int64_t sample = 0; sample < s.n; ++sample) {
      const std::int64_t last = last_row(s, lengths, sample);
      if (last < 0)
        zero(s.features, y + sample * s.features);
      else
        copy(s.features, x + (sample * s.steps + last) * s.features, y + sample * s.features);
    }
  }

  void last_step_backward(const Lane&, const SequenceShape& s, const float* dy, const float* lengths,
                          float* dx) const override {
    for (std::int64_t sample = 0; sample < s.n; ++sample) {
      const std::int64_t last = last_row(s, lengths, sample);
      zero(s.steps * s.features, dx + sample * s.steps * s.features);
      if (last >= 0) copy(s.features, dy + sample * s.features, dx + (sample * s.steps + last) * s.features);
    }
  }

  void lengths(const Lane&, std::int64_t n, std::int64_t steps, const float* x, float padding,
               float* lengths) const override {
    for (std::int64_t sample = 0; sample < n; ++sample) {
      std::int64_t length = steps;
      while (length > 0 && x[sample * steps + length - 1] == padding) --length;
      lengths[sample] = static_cast<float>(length);
    }
  }

  void mask(const Lane&, std::int64_t rows, std::int64_t features, const float* x, float value, float* y,
            float* mask) const override {
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* from = x + row * features;
      std::int64_t equal = 0;
      for (std::int64_t i = 0; i < features; ++i) equal += from[i] == value ? 1 : 0;
      mask[row] = equal == features ? 0.0F : 1.0F;
      if (equal == features)
        zero(features, y + row * features);
      else
        copy(features, from, y + row * features);
    }
  }

  void mask_backward(const Lane&, std::int64_t rows, std::int64_t features, const float* dy,
                     const float* mask, float* dx) const override {
    for (std::int64_t row = 0; row < rows; ++row)
      if (dy == nullptr || mask[row] == 0.0F)
        zero(features, dx + row * features);
      else
        copy(features, dy + row * features, dx + row * features);
  }
};

}  // namespace

const SequenceKernels& sequence_kernels() {
  static const Sequence kernels;
  return kernels;
}

}  // namespace lockstep::LOCKSTEP_ISA
