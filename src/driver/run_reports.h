// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a training run tells while it runs: progress, event files, metrics.jsonl, the log. On the chief only;
// on other ranks every call does nothing.
#pragma once

#include <memory>
#include <string>

#include "core/timer.h"
#include "driver/config.h"
#include "driver/evaluation.h"
#include "driver/progress.h"
#include "driver/trainer.h"
#include "io/event_writer.h"
#include "io/metrics_log.h"

namespace lockstep {

class RunReports {
 public:
  /// `first_step`: where the run begins; what an earlier part wrote beyond it is dropped.
  RunReports(bool is_chief, const Config& config, const std::string& run_dir, std::int64_t first_step,
             bool accuracy, bool quiet);

  void begin(const ProgressSample& start);
  /// After each step; writes a summary if its time has come.
  void step(const StepResult& result, const ProgressSample& sample);
  void evaluated(const StepResult& at, const EvaluationResult& result);
  void finish(const ProgressSample& sample);
  /// An event that belongs between progress lines ("checkpoint ...").
  void note(const std::string& text);

 private:
  bool is_chief_, accuracy_, quiet_;
  std::int64_t every_steps_;
  std::unique_ptr<EventWriter> train_events_, eval_events_;
  std::unique_ptr<MetricsLog> metrics_;
  std::unique_ptr<Progress> progress_;
  Timer since_summary_;
  std::int64_t samples_since_ = 0, steps_since_ = 0;
};

}  // namespace lockstep
