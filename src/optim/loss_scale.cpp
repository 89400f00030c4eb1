// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/loss_scale.h"

#include <algorithm>

namespace lockstep {

void LossScaleState::finite(const LossScale& options) {
  good_steps += 1;
  if (good_steps < static_cast<double>(options.growth_steps)) return;
  scale = std::min(2 * scale, LossScale::kMost);
  good_steps = 0;
}

bool LossScaleState::overflowed() {
  good_steps = 0;
  if (scale <= 1) return false;
  scale /= 2;
  return true;
}

}  // namespace lockstep
