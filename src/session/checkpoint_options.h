// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The section `checkpoint` of a configuration: when checkpoints are written, and which are kept.
#pragma once

#include <span>
#include <string>

#include "config/params.h"
#include "model/direction.h"
#include "session/checkpoint_schedule.h"
#include "session/saver.h"

namespace lockstep {

struct CheckpointOptions {
  CheckpointTriggers triggers;
  SaverOptions saver;
  std::string best_metric = "loss";  ///< of the evaluation: what saver.retention.keep_best compares
  /// As it is given; none: that of the metric. saver.retention.larger_is_better is what follows from both.
  Direction best_mode = Direction::none;

  /// Sets saver.retention.larger_is_better; `metrics`: eval.metrics.
  void follow_metrics(std::span<const MetricSpec> metrics);
};

/// Options of the section `checkpoint`.
std::span<const ParamSpec> checkpoint_table();
/// `section` is checked against checkpoint_table().
CheckpointOptions checkpoint_options(const Params& section);

}  // namespace lockstep
