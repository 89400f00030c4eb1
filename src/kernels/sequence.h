// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Sequences: n samples of `steps` rows of `features` numbers, row-major, and their lengths, which are whole
// numbers kept as floats; below 0 counts as 0, above `steps` as `steps`. No aliasing. What is Data is of any
// type of activations, of one in a call unless said otherwise. Plain types only (isa.h).
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

  /// to[t][s] = from[s][t]: n x steps rows of features become steps x n.
  virtual void to_time_major(const Lane&, const SequenceShape&, ConstData from, Data to) const = 0;
  /// The inverse: from is steps x n.
  virtual void to_batch_major(const Lane&, const SequenceShape&, ConstData from, Data to) const = 0;
  /// Rows of `columns` numbers from one matrix to another whose rows lie `stride` elements apart, in to's
  /// type: one of the two is float32, or both are of one type.
  virtual void copy_rows(const Lane&, std::int64_t rows, std::int64_t columns, ConstData from,
                         std::int64_t from_stride, Data to, std::int64_t to_stride) const = 0;

  /// y[s] = the last row of sample s, the one at its length - 1 (lengths null: steps - 1); length 0: zeros.
  virtual void last_step(const Lane&, const SequenceShape&, ConstData x, const float* lengths,
                         Data y) const = 0;
  /// dx = dy in that row, 0 elsewhere.
  virtual void last_step_backward(const Lane&, const SequenceShape&, ConstData dy, const float* lengths,
                                  Data dx) const = 0;
  /// lengths[s] = 1 + the position of the last number of x (n x steps) that is not `padding`, or 0.
  virtual void lengths(const Lane&, std::int64_t n, std::int64_t steps, const float* x, float padding,
                       float* lengths) const = 0;
  /// mask[row] = 0 where all numbers of the row equal `value`, rounded to their type, else 1; y = x where 1,
  /// 0 where 0.
  virtual void mask(const Lane&, std::int64_t rows, std::int64_t features, ConstData x, float value, Data y,
                    Data mask) const = 0;
  /// dx = dy where mask is 1, 0 elsewhere (dy null: 0 everywhere).
  virtual void mask_backward(const Lane&, std::int64_t rows, std::int64_t features, ConstData dy,
                             ConstData mask, Data dx) const = 0;
};

}  // namespace lockstep
