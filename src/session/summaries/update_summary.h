// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// updates/<variable>: a histogram of what a step adds to a variable. update_ratio/<variable>: its norm,
// divided by the norm of the variable after the step. Where it is written, the variables before the step are
// kept in a copy. All ranks measure, the chief writes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/buffer.h"
#include "session/hook.h"
#include "session/hooks/hook_timer.h"
#include "train/distribution_meter.h"

namespace lockstep {

class UpdateSummary final : public Hook {
 public:
  static std::span<const ParamSpec> table();
  explicit UpdateSummary(const Params& options);

  bool communicates() const override { return true; }
  void check(const RunNames& names) const override;
  void begin(HookContext& context) override;
  void before_run(HookContext& context) override;
  void after_run(HookContext& context, const StepResult& result) override;

 private:
  Params options_;
  HookTimer timer_;
  bool histograms_, ratios_;
  std::vector<VariableId> variables_;
  std::vector<std::string> ratio_tags_;           ///< update_ratio/<variable>
  Buffer before_;                                 ///< all trained variables, flat, on the device
  std::vector<DistributionMeter::Array> arrays_;  ///< by variable: its update, then its values
  std::unique_ptr<DistributionMeter> meter_;
};

}  // namespace lockstep
