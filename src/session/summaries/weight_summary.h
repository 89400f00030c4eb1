// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// weights/<variable>: a histogram of each chosen variable, after the update of a step. All ranks measure, the
// chief writes.
#pragma once

#include "session/summaries/variable_summary.h"

namespace lockstep {

class WeightSummary final : public VariableSummary {
 public:
  using Options = Common;
  explicit WeightSummary(Options options);

  RecordedText recorded(const Run& run) const override;

 private:
  void declare(HookContext& context) override;
  void collect(HookContext& context, StepSummary& summary) override;
};

}  // namespace lockstep
