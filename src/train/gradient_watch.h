// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Looks at the summed gradients of a step before the update, for numbers that would ruin the optimizer's
// slots: those that are not finite, and those whose square is not, or nearly so. One huge value in a sample
// is enough, and the loss of its step may be an ordinary number.
//
// A read of bits without arithmetic, shared among ranks and threads: each looks at a part, and what it finds
// travels with the exchange of the step. On the CPU. Gradients that are clipped by norm need it not: their
// norm is known, and what is left of them is small.
#pragma once

#include <cstdint>
#include <memory>

#include "train/executor_context.h"

namespace lockstep {

class StepSums;
struct TrainerOptions;

/// What the gradients of a step are. Also those that are `large` are finite, but their squares are not, or
/// nearly so.
enum class GradientState { good, large, not_finite };

/// A quarter of the largest float32 is the square of this. Moving statistics and sums of a few squares are
/// still finite with it.
constexpr float kMostGradient = 0x1p63F;

/// The worst of `count` numbers. `only_nan`: of the others, all are good.
GradientState worst_of(const float* values, std::int64_t count, bool only_nan = false);
/// True: all are finite.
bool are_finite(const float* values, std::int64_t count);

class GradientWatch {
 public:
  /// Null where nothing is to be looked at: on a device, with servers, and where norms are clipped.
  static std::unique_ptr<GradientWatch> create(const ExecutorContext& context, StepSums& sums,
                                               const TrainerOptions& options);

  /// When the gradients are those that the update takes, before the exchange of the step. No communication,
  /// no allocation.
  void look();
  /// After that exchange: what was found on any rank; the same on all.
  GradientState found() const;

 private:
  GradientWatch(const ExecutorContext& context, StepSums& sums, bool only_nan);
  GradientState look_at_dense();
  GradientState look_at_rows() const;

  const ExecutorContext& context_;
  StepSums& sums_;
  const bool only_nan_;  ///< clipping by value takes care of the others
  std::vector<GradientState> of_thread_;
};

}  // namespace lockstep
