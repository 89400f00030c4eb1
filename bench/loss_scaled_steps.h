// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Training steps without a session. If the trainer scales the loss, the scale changes as in a run, so that a
// step has the same cost.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/error.h"
#include "optim/loss_scale.h"
#include "train/step_update.h"
#include "train/trainer.h"

namespace lockstep {

class LossScaledSteps {
 public:
  explicit LossScaledSteps(Trainer& trainer) : trainer_(trainer) {
    if (trainer.update().scales_loss()) state_.scale = LossScale::kDynamicInitial;
  }
  /// All ranks. Throws Error(numeric) if no scale makes the gradients finite.
  void step() {
    if (!trainer_.update().scales_loss()) {
      trainer_.compute();
      return trainer_.apply(true);
    }
    trainer_.set_loss_scale(state_.scale);
    const bool finite = trainer_.compute().finite_gradients;
    trainer_.apply(finite);
    if (finite) return state_.finite({});
    LOCKSTEP_REQUIRE(state_.overflowed(), ErrorKind::numeric,
                     "the gradients are not finite at a loss scale of 1");
    ++skipped_;
  }
  double scale() const { return state_.scale; }
  /// Steps without an update, because their gradients overflowed.
  std::size_t skipped() const { return skipped_; }

 private:
  Trainer& trainer_;
  LossScaleState state_;
  std::size_t skipped_ = 0;
};

}  // namespace lockstep
