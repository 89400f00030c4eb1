// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// All numbers of a run that are constant or follow a schedule: options of the optimizer (learning_rate,
// momentum), of layers ("dropout1/rate") and of the moving average ("average/decay"). The same on all ranks.
// One thread.
#pragma once

#include <deque>
#include <vector>

#include "model/graph.h"
#include "model/scheduled_layer.h"
#include "optim/average_rule.h"
#include "optim/scheduled_number.h"

namespace lockstep {

class Optimizer;

class RunSchedules {
 public:
  /// Both outlive it. Throws Error(config) with position for a layer's schedule.
  RunSchedules(Optimizer& optimizer, const Graph& graph, const std::optional<AverageOptions>& average = {});
  RunSchedules(const RunSchedules&) = delete;
  RunSchedules& operator=(const RunSchedules&) = delete;

  /// Called before the first step. Throws Error(config) with position.
  void begin(const ScheduleRun& run);
  /// Sets the numbers of layers to their values in the update of `step`; before each step.
  void set(std::int64_t step);

  const Optimizer& optimizer() const { return optimizer_; }
  /// The learning rate, then all others that follow a schedule.
  const std::vector<ScheduledNumber*>& numbers() const { return numbers_; }

 private:
  struct OfLayer {
    ScheduledNumber number;
    LayerNumber* value;
  };
  Optimizer& optimizer_;
  std::deque<OfLayer> layers_;
  std::shared_ptr<ScheduledNumber> average_;  ///< may be null
  std::vector<ScheduledNumber*> numbers_;
};

}  // namespace lockstep
