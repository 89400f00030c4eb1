// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// gradients/<variable>: a histogram of the gradient that the update used: of the whole global batch, after
// clipping. gradient_norm/<layer>: the norm over the variables of a layer. All ranks measure, the chief
// writes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "session/hook.h"
#include "session/hooks/hook_timer.h"
#include "train/distribution_meter.h"

namespace lockstep {

class GradientSummary final : public Hook {
 public:
  static std::span<const ParamSpec> table();
  explicit GradientSummary(const Params& options);

  bool communicates() const override { return true; }
  void check(const RunNames& names) const override;
  void begin(HookContext& context) override;
  void after_run(HookContext& context, const StepResult& result) override;

 private:
  Params options_;
  HookTimer timer_;
  bool histograms_, norms_;
  std::vector<VariableId> variables_;
  std::vector<std::string> layer_tags_;  ///< gradient_norm/<layer>
  std::vector<std::size_t> layer_of_;    ///< by variable
  std::vector<DistributionMeter::Array> arrays_;
  std::unique_ptr<DistributionMeter> meter_;
};

}  // namespace lockstep
