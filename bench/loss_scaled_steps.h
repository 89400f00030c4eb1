// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Training steps without a session: where the trainer scales the loss, the scale moves as LossScaleHook moves
// it in a run, so that a step costs what it costs there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/error.h"
#include "driver/loss_scale.h"
#include "driver/trainer.h"

namespace lockstep {

class LossScaledSteps {
 public:
  explicit LossScaledSteps(Trainer& trainer) : trainer_(trainer) {
    if (trainer.scales_loss()) scale_ = kInitial;
  }
  /// All ranks. Throws Error(numeric) where no scale makes the gradients finite.
  void step() {
    if (!trainer_.scales_loss()) return void(trainer_.step());
    trainer_.set_loss_scale(scale_);
    const bool finite = trainer_.compute().finite_gradients;
    trainer_.apply(finite);
    if (!finite) {
      LOCKSTEP_REQUIRE(scale_ > 1, ErrorKind::numeric, "the gradients are not finite at a loss scale of 1");
      scale_ /= 2, good_ = 0, ++left_out_;
    } else if (++good_ == LossScale{}.growth_steps) {
      scale_ = std::min(2 * scale_, LossScale::kMost), good_ = 0;
    }
  }
  double scale() const { return scale_; }
  /// Steps whose gradients overflowed: without an update.
  std::size_t left_out() const { return left_out_; }

 private:
  static constexpr double kInitial = 0x1p16;  // precision.loss_scale: dynamic
  Trainer& trainer_;
  double scale_ = 1;
  std::int64_t good_ = 0;
  std::size_t left_out_ = 0;
};

}  // namespace lockstep
