// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Takes the loss scale off the summed gradients, and finds out whether all of them are finite: an update with
// others is to be skipped (optim/loss_scale.h).
#pragma once

#include <cstdint>
#include <vector>

#include "core/buffer.h"
#include "train/executor_context.h"

namespace lockstep {

class StepSums;

class GradientUnscaler {
 public:
  /// References outlive it.
  GradientUnscaler(const ExecutorContext& context, Communicator& control, StepSums& sums);

  /// A power of two. The same on all ranks.
  void set_scale(double scale) { scale_ = scale; }
  /// Divides the summed gradients by the scale. Does not wait for a device.
  void run();
  /// After run(): whether all gradients are finite, the same on all ranks. A device may have had other work
  /// meanwhile, and the host the exchange of the losses. All ranks.
  bool are_finite();

 private:
  bool agreed(bool finite);

  const ExecutorContext& context_;
  Communicator& control_;
  StepSums& sums_;
  double scale_ = 1;
  DeviceEvent done_;
  Buffer not_finite_;         ///< pinned: a flag per lane
  std::vector<char> finite_;  ///< per rank, where ranks share the update
};

}  // namespace lockstep
