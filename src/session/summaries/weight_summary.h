// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// weights/<variable>: a histogram of each chosen variable, after the update of a step. All ranks measure, the
// chief writes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "session/hook.h"
#include "session/hooks/hook_timer.h"
#include "train/distribution_meter.h"

namespace lockstep {

class WeightSummary final : public Hook {
 public:
  static std::span<const ParamSpec> table();
  explicit WeightSummary(const Params& options);

  bool communicates() const override { return true; }
  void check(const RunNames& names) const override;
  void begin(HookContext& context) override;
  void after_run(HookContext& context, const StepResult& result) override;

 private:
  Params options_;
  HookTimer timer_;
  std::vector<VariableId> variables_;
  std::vector<DistributionMeter::Array> arrays_;
  std::unique_ptr<DistributionMeter> meter_;
};

}  // namespace lockstep
