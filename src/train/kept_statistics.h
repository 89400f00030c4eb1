// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a step changes before its update: running statistics of batch norm, and the averages of the noise
// scale. They are kept from before the step, so that a step can be forgotten.
#pragma once

#include <array>

#include "core/buffer.h"
#include "train/executor_context.h"

namespace lockstep {

class NoiseScale;

class KeptStatistics {
 public:
  /// `noise` may be null. References outlive it.
  KeptStatistics(const ExecutorContext& context, NoiseScale* noise);

  void keep();
  /// The running statistics as they were at keep().
  void give_back_statistics();
  /// The same with the averages of the noise scale.
  void give_back();

 private:
  const ExecutorContext& context_;
  NoiseScale* noise_;
  Buffer statistics_;  ///< on the device
  std::array<double, 2> averages_{};
};

}  // namespace lockstep
