// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// <metric>/matrix: the confusion matrix of an evaluation as a picture, for each metric confusion_matrix of
// eval.metrics. Row by row the label's class, column by column the predicted one. A row's shades are square
// roots of shares of its samples, so that single errors are visible: white is none, dark blue all. The chief
// alone, after each evaluation.
#pragma once

#include "session/summaries/summary_hook.h"

namespace lockstep {

class ConfusionSummary final : public SummaryHook {
 public:
  explicit ConfusionSummary(const Params& params);

  RecordedText recorded(const Run& run) const override;
  void check(const RunNames& names) const override;
  void begin(HookContext&) override { drawn_ = 0; }
  void after_run(HookContext& context, const StepResult& result) override;
  void end(HookContext& context) override;

 private:
  void draw(HookContext& context);

  std::string where_;
  std::uint64_t drawn_ = 0;  ///< the version of the tables that were drawn last
};

}  // namespace lockstep
