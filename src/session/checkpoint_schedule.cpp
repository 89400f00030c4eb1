// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/checkpoint_schedule.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace lockstep {

double optimal_checkpoint_interval(double cost_seconds, double mtbf_seconds) {
  LOCKSTEP_CHECK(cost_seconds >= 0 && mtbf_seconds > 0, "cost {} s, mean time between failures {} s",
                 cost_seconds, mtbf_seconds);
  if (cost_seconds >= 2 * mtbf_seconds) return mtbf_seconds;
  const double ratio = cost_seconds / (2 * mtbf_seconds);
  return std::sqrt(2 * cost_seconds * mtbf_seconds) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - cost_seconds;
}

CheckpointSchedule::CheckpointSchedule(const CheckpointTriggers& triggers, double now)
    : triggers_(triggers), last_(now) {}

bool CheckpointSchedule::due_by_count(std::int64_t step, bool epoch_ended, std::int64_t epochs_done) const {
  return (triggers_.every_steps && step % *triggers_.every_steps == 0) ||
         (epoch_ended && triggers_.every_epochs && epochs_done % *triggers_.every_epochs == 0);
}

bool CheckpointSchedule::due_by_time(double now) const {
  const std::optional<double> interval = interval_seconds();
  return interval && now - last_ >= *interval;
}

std::optional<double> CheckpointSchedule::interval_seconds() const {
  std::optional<double> interval = triggers_.every_seconds;
  if (triggers_.mtbf_seconds) {
    // Not before the previous file is written.
    const double best =
        std::max(optimal_checkpoint_interval(cost_seconds_, *triggers_.mtbf_seconds), write_seconds_);
    interval = std::min(interval.value_or(best), best);
  }
  return interval;
}

void CheckpointSchedule::measured(double blocked_seconds, double write_seconds) {
  cost_seconds_ = blocked_seconds;
  write_seconds_ = write_seconds;
}

}  // namespace lockstep
