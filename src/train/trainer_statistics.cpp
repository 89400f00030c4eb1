// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The moving statistics of batch norm that go with the averaged variables, computed anew: the mean over
// batches of each batch's mean and unbiased variance, as PyTorch's update_bn computes it. The passes are
// those of training, with dropout.
#include <algorithm>

#include "train/trainer.h"

namespace lockstep {

double Trainer::recompute_statistics(FunctionRef<double()> interruption) {
  if (!average_ || !average_->rule().recomputes() || !average_->rule().has_begun(step_) || statistics_fit_ ||
      !executor_.has_statistics())
    return 0;
  LOCKSTEP_CHECK(!computed_, "between compute() and apply()");
  exchange_average();
  const Lane& lane = context_.lanes.front();
  context_.device.copy(lane.stream, held_.data(), context_.variables.others_address(), held_.size_bytes());
  if (schedules_ != nullptr) schedules_->set(std::max(step_ - 1, std::int64_t{0}));
  executor_.refresh_weights();
  StepObserver* const observer = executor_.observer();
  executor_.observe(nullptr);
  const std::int64_t most = average_->rule().batches;
  std::vector<double> all(static_cast<std::size_t>(control_.size()));
  double interrupted = 0;
  std::int64_t n = 0;
  for (Cursor cursor; cursor.epoch == 0 && (most == 0 || n < most) && interrupted == 0; ++n) {
    const auto done = static_cast<double>(n);
    executor_.collect_statistics({.source = source_, .batch = plan_.batch(cursor), .step = n},
                                 done / (done + 1));
    cursor = plan_.advance(cursor);
    const double mine = interruption();
    control_.allgather(&mine, sizeof mine, all.data(), "computing batch norm's statistics");
    interrupted = std::ranges::max(all);
  }
  executor_.observe(observer);
  if (interrupted != 0)
    context_.device.copy(lane.stream, context_.variables.others_address(), held_.data(), held_.size_bytes());
  exchange_average();
  statistics_fit_ = interrupted == 0;
  return interrupted;
}

}  // namespace lockstep
