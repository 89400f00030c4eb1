// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Evaluates on all ranks with the variables in memory, or with their moving averages, every sample once. The
// results go to HookContext::eval_metrics() ("eval/loss", "eval/accuracy"), the reports and the log.
#pragma once

#include "session/hook.h"
#include "train/evaluation.h"

namespace lockstep {

class EvaluationHook : public Hook {
 public:
  /// Evaluates every `every_epochs` epochs and `every_steps` steps (0: never for this reason), and always at
  /// the end. `use_averages`: with the averages of the variables, where the run has averages that have begun.
  /// `evaluation` outlives it.
  EvaluationHook(Evaluation& evaluation, std::int64_t every_epochs, std::int64_t every_steps,
                 bool use_averages = true)
      : Hook("evaluation"),
        evaluation_(evaluation),
        every_epochs_(every_epochs),
        every_steps_(every_steps),
        use_averages_(use_averages) {}

  bool communicates() const override { return true; }
  void after_create_session(HookContext& context) override;
  void after_run(HookContext& context, const StepResult& result) override;
  void end(HookContext& context) override;

 private:
  void evaluate(HookContext& context);

  Evaluation& evaluation_;
  std::int64_t every_epochs_, every_steps_, evaluated_step_ = -1;
  bool use_averages_, said_without_ = false;
};

}  // namespace lockstep
