// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/kept_statistics.h"

#include <algorithm>

#include "train/noise_scale.h"

namespace lockstep {

KeptStatistics::KeptStatistics(const ExecutorContext& context, NoiseScale* noise)
    : context_(context), noise_(noise), statistics_(context.device, context.variables.changing_bytes()) {}

void KeptStatistics::keep() {
  context_.device.copy(context_.stream(), statistics_.data(), context_.variables.others_address(),
                       statistics_.size_bytes());
  if (noise_ != nullptr) std::ranges::copy(noise_->state(), averages_.begin());
}

void KeptStatistics::give_back_statistics() {
  context_.device.copy(context_.stream(), context_.variables.others_address(), statistics_.data(),
                       statistics_.size_bytes());
}

void KeptStatistics::give_back() {
  give_back_statistics();
  if (noise_ != nullptr) std::ranges::copy(averages_, noise_->state().begin());
}

}  // namespace lockstep
