// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// When a checkpoint is due: after so many steps, epochs or seconds, or as often as the time between failures
// makes worth while. No files, no clock of its own.
#pragma once

#include <cstdint>
#include <optional>

namespace lockstep {

/// The interval in seconds between checkpoints that loses least time, to writing them and to computing again
/// what a failure took: J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart
/// dumps", Future Generation Computer Systems 22 (2006), equation 37, which refines
/// sqrt(2 cost mtbf) of J. W. Young, "A first order approximation to the optimum checkpoint interval",
/// Communications of the ACM 17 (1974). `cost_seconds`: that training stands still for one checkpoint;
/// `mtbf_seconds` > 0: mean time between failures.
double optimal_checkpoint_interval(double cost_seconds, double mtbf_seconds);

struct CheckpointTriggers {
  std::optional<std::int64_t> every_steps, every_epochs;
  std::optional<double> every_seconds, mtbf_seconds;
  bool at_start = false;
};

class CheckpointSchedule {
 public:
  /// `now`: of a steady clock, in seconds; the first interval begins here.
  CheckpointSchedule(const CheckpointTriggers& triggers, double now);

  /// By steps or epochs done: the same on all ranks. `epochs_done` counts the epoch that just ended.
  bool due_by_count(std::int64_t step, bool epoch_ended, std::int64_t epochs_done) const;
  /// By time: the chief's clock decides.
  bool due_by_time(double now) const;
  /// Seconds between checkpoints that due_by_time() goes by; nullopt if time does not matter.
  std::optional<double> interval_seconds() const;

  /// A checkpoint was begun: intervals count from here.
  void began(double now) { last_ = now; }
  /// What one took: of training's time, and of the disk's.
  void measured(double blocked_seconds, double write_seconds);

 private:
  CheckpointTriggers triggers_;
  double last_;
  double cost_seconds_ = 1, write_seconds_ = 0;  // a guess until the first is measured
};

}  // namespace lockstep
