// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Sequences: n samples of `steps` rows of `features` numbers, row-major, with lengths. Lengths are whole
// numbers stored as float, clamped to 0 .. steps. No aliasing. Data arguments have any activation type, the
// same for all of a call unless stated otherwise. This header uses plain types only (isa.h).
#pragma once

#include <cstdint>

#include "core/data.h"
#include "kernels/lane.h"

namespace lockstep {

struct SequenceShape {
  std::int64_t n = 0, steps = 0, features = 0;
};

class SequenceKernels {
 public:
  virtual ~SequenceKernels();

  /// to[t][s] = from[s][t]: converts n x steps rows of features to steps x n.
  virtual void to_time_major(const Lane&, const SequenceShape&, ConstData from, Data to) const = 0;
  /// The inverse: from is steps x n.
  virtual void to_batch_major(const Lane&, const SequenceShape&, ConstData from, Data to) const = 0;
  /// Copies rows of `columns` numbers between two matrices with their own row strides (in elements), in to's
  /// type. One of the two is float32, or both have one type.
  virtual void copy_rows(const Lane&, std::int64_t rows, std::int64_t columns, ConstData from,
                         std::int64_t from_stride, Data to, std::int64_t to_stride) const = 0;

  /// y[s] = row length - 1 of sample s (lengths null: row steps - 1); zeros if the length is 0.
  virtual void last_step(const Lane&, const SequenceShape&, ConstData x, const float* lengths,
                         Data y) const = 0;
  /// dx = dy in the row that last_step reads, 0 elsewhere.
  virtual void last_step_backward(const Lane&, const SequenceShape&, ConstData dy, const float* lengths,
                                  Data dx) const = 0;
  /// lengths[s] = 1 + the position of the last number of x (n x steps) that is not `padding`, or 0.
  virtual void lengths(const Lane&, std::int64_t n, std::int64_t steps, const float* x, float padding,
                       float* lengths) const = 0;
  /// mask[row] = 0 where all numbers of the row equal `value`, rounded to their type, else 1. y = x where the
  /// mask is 1, else 0.
  virtual void mask(const Lane&, std::int64_t rows, std::int64_t features, ConstData x, float value, Data y,
                    Data mask) const = 0;
  /// dx = dy where the mask is 1, 0 elsewhere (dy null: 0 everywhere).
  virtual void mask_backward(const Lane&, std::int64_t rows, std::int64_t features, ConstData dy,
                             ConstData mask, Data dx) const = 0;
};

}  // namespace lockstep
