// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "data/cursor.h"

namespace lockstep {

/// The numbers of one step; the same on all ranks.
struct StepResult {
  std::int64_t step = 0;   ///< global steps done
  Cursor cursor;           ///< of the next batch
  std::int64_t epoch = 0;  ///< of the batch, from 0
  bool epoch_ended = false;
  std::int64_t samples = 0;
  double loss = 0, accuracy = 0;  ///< means over the batch; the loss is of all heads and regularization
  double learning_rate = 0;
  double loss_scale = 1;
  bool finite_gradients = true;  ///< checked only where a loss scale is used
};

}  // namespace lockstep
