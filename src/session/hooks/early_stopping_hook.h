// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Early stopping by the results of evaluations (HookContext::eval_metrics()). The decision is the same on all
// ranks. What it depends on is kept in checkpoints, so that a resumed run stops at the same step as one that
// was not interrupted.
#pragma once

#include <string_view>

#include "model/direction.h"
#include "session/hook.h"

namespace lockstep {

// `metric`: "accuracy" or "eval/accuracy".

/// Stops when an evaluation's metric is above (`higher`) or below the threshold, at `min_steps` or later.
class StopAtThresholdHook : public Hook {
 public:
  StopAtThresholdHook(std::string name, std::string_view metric, bool higher, double threshold,
                      std::int64_t min_steps);
  void check(const RunNames& names) const override;
  void after_run(HookContext& context, const StepResult& result) override;

 private:
  std::string metric_;
  bool higher_;
  double threshold_;
  std::int64_t min_steps_;
  std::uint64_t seen_version_ = 0;
};

/// Stops when the best value so far is `max_steps` steps old or more, or `patience` evaluations. Better is
/// strictly larger (`increase`) or smaller. Evaluations before `min_steps` do not count; NaN is never better.
class StopWithoutProgressHook : public Hook {
 public:
  StopWithoutProgressHook(std::string name, std::string_view metric, bool increase, std::int64_t max_steps,
                          std::int64_t min_steps, std::int64_t patience = 0);
  void check(const RunNames& names) const override;
  void begin(HookContext& context) override;
  void after_run(HookContext& context, const StepResult& result) override;

  const std::string& metric() const { return metric_; }
  /// Throws Error(config) if the metric is better the other way round: training would end just when it
  /// improves.
  void require_direction(Direction of_metric) const;

 private:
  std::string metric_;
  bool increase_;
  std::int64_t max_steps_, min_steps_;
  std::uint64_t seen_version_ = 0;
  std::int64_t patience_;     ///< 0: by max_steps; above: by evaluations
  double best_[2] = {0, -1};  ///< value, step; step -1: none yet
  double worse_[1] = {0};     ///< evaluations since then; kept where patience_ is above 0
};

}  // namespace lockstep
