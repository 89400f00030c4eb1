// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Training steps without a session: where the trainer scales the loss, the scale moves as in a run,
// so that a step costs what it costs there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/error.h"
#include "driver/loss_scale.h"
#include "driver/trainer.h"

namespace lockstep {

class LossScaledSteps {
 public:
  explicit LossScaledSteps(Trainer& trainer) : trainer_(trainer) {
    if (trainer.scales_loss()) state_.scale = LossScale::kDynamicInitial;
  }
  /// All ranks. Throws Error(numeric) where no scale makes the gradients finite.
  void step() {
    if (!trainer_.scales_loss()) return void(trainer_.step());
    trainer_.set_loss_scale(state_.scale);
    const bool finite = trainer_.compute().finite_gradients;
    trainer_.apply(finite);
    if (finite) return state_.finite({});
    LOCKSTEP_REQUIRE(state_.overflowed(), ErrorKind::numeric,
                     "the gradients are not finite at a loss scale of 1");
    ++left_out_;
  }
  double scale() const { return state_.scale; }
  /// Steps whose gradients overflowed: without an update.
  std::size_t left_out() const { return left_out_; }

 private:
  Trainer& trainer_;
  LossScaleState state_;
  std::size_t left_out_ = 0;
};

}  // namespace lockstep
