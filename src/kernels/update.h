// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Optimizer updates, each in one fused pass over a flat range. They are element-wise with a fixed rounding
// order, so any split of the range has the same bits. kernels/rules.h lists the rules. This header uses plain
// types only (isa.h).
#pragma once

#include <cstdint>

#include "core/sparse_rows.h"
#include "kernels/lane.h"
#include "kernels/rules/rule_step.h"

namespace lockstep {

/// An update of table rows with a sparse gradient. Addresses are device addresses.
struct RowUpdate {
  std::int64_t first = 0, last = 0;     ///< the table rows that this call updates
  std::int64_t width = 0;               ///< numbers per row
  const std::int32_t* count = nullptr;  ///< number of rows with a gradient, in the whole table
  std::int64_t most = 0;                ///< a bound on it, by which a GPU's launch is sized; not for the CPU
  const std::int32_t* rows = nullptr;   ///< [count] their indices, ascending, distinct
  const float* values = nullptr;        ///< [count][width] their gradients
  /// True: rows without a gradient are updated with a zero gradient. False: they and their slots stay
  /// unchanged.
  bool others = true;
};

/// What UpdateKernels::look() has found so far, in device memory, or in pinned memory that the host reads.
struct NumbersFound {
  std::int32_t large = 0;       ///< 1: a magnitude above the most that is good, or NaN
  std::int32_t not_finite = 0;  ///< 1: one of those is infinite or NaN
};

class UpdateKernels {
 public:
  virtual ~UpdateKernels();

  /// Sets what it finds in `found`, and leaves the rest of that unchanged. `most` may be infinite.
  virtual void look(const Lane&, std::int64_t count, const float* values, float most,
                    NumbersFound* found) const = 0;
  /// The same for the values of rows[first] to rows[last - 1], or of as many of these as exist; `width` per
  /// row.
  virtual void look_at_rows(const Lane&, const SparseRows& gradient, std::int64_t first, std::int64_t last,
                            std::int64_t width, float most, NumbersFound* found) const = 0;

  /// g = factor * g. *not_finite = 1 if any result is NaN or infinite; otherwise unchanged. not_finite is
  /// device memory, or pinned memory that the host reads.
  virtual void unscale(const Lane&, std::int64_t count, float factor, float* g,
                       std::int32_t* not_finite) const = 0;
  /// The same for the values of rows[first] to rows[last - 1], or of as many of these as exist; `width` per
  /// row.
  virtual void unscale_rows(const Lane&, const SparseRows& gradient, std::int64_t first, std::int64_t last,
                            std::int64_t width, float factor, std::int32_t* not_finite) const = 0;
  /// A step of a rule for `count` elements: w, the gradients g and the slots.
  virtual void apply(const Lane&, const RuleStep&, std::int64_t count, float* w, const float* g,
                     const RuleSlots& slots) const = 0;
  /// The same for table rows; w and the slots begin with row 0 of the table. The bits are those of apply()
  /// with a gradient that is zero in the rows without one.
  virtual void apply_rows(const Lane&, const RuleStep&, const RowUpdate&, float* w,
                          const RuleSlots& slots) const = 0;
};

}  // namespace lockstep
