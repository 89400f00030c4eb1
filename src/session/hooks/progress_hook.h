// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Shows progress on the chief: a bar on a terminal, or a line every few seconds in a log.
#pragma once

#include <memory>
#include <optional>

#include "session/hook.h"
#include "session/progress.h"
#include "session/run_reports.h"
#include "train/step_metrics.h"

namespace lockstep {

class ProgressHook : public Hook {
 public:
  /// `total_steps`, `epochs`: the length of the run; 0: unknown.
  ProgressHook(std::int64_t total_steps, std::int64_t epochs)
      : Hook("progress", HookScope::chief_only), total_steps_(total_steps), epochs_(epochs) {}
  ~ProgressHook() override;

  void begin(HookContext& context) override;
  void after_create_session(HookContext& context) override;
  void after_run(HookContext& context, const StepResult& result) override;
  void end(HookContext& context) override;

 private:
  ProgressSample sample(HookContext& context) const;

  std::int64_t total_steps_, epochs_, samples_ = 0;
  double loss_ = 0;
  StepMetrics::Id communication_ = StepMetrics::kNone, input_ = StepMetrics::kNone;
  RunReports* reports_ = nullptr;
  std::unique_ptr<Progress> progress_;
};

}  // namespace lockstep
