// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// activations/<layer>: a histogram of a layer's output over the global batch of a training step.
// zero_fraction/<layer>: the share of zeros. saturation/<layer>: the share at the ends of the range of a
// sigmoid (below 0.01 or above 0.99), tanh (beyond +-0.98) or relu6 (6). All ranks measure, the chief writes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "session/hook_timer.h"
#include "session/summaries/chosen_names.h"
#include "session/summaries/summary_hook.h"
#include "train/activation_meter.h"

namespace lockstep {

class ActivationSummary final : public SummaryHook {
 public:
  struct Options {
    ChosenNames layers;
    std::int64_t every_steps = 0;
    bool histograms = true, fractions = true;
  };
  ActivationSummary(Options options, const Params& params);

  bool communicates() const override { return true; }
  RecordedText recorded(const Run& run) const override;
  void check(const RunNames& names) const override;
  void begin(HookContext& context) override;
  void after_create_session(HookContext& context) override;
  void before_run(HookContext& context) override;
  void after_run(HookContext& context, const StepResult& result) override;

 private:
  Options options_;
  HookTimer timer_;
  std::vector<std::string> zero_tags_, saturation_tags_;
  std::unique_ptr<ActivationMeter> meter_;
};

}  // namespace lockstep
