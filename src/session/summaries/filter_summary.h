// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// filters/<layer>: the filters of a two-dimensional convolution on 1 or 3 channels, as a contact sheet. Grey
// is 0; the largest number of the layer is white, or black if it is negative. The chief alone.
#pragma once

#include <string>
#include <vector>

#include "session/hook_timer.h"
#include "session/summaries/chosen_names.h"
#include "session/summaries/summary_hook.h"

namespace lockstep {

class FilterSummary final : public SummaryHook {
 public:
  struct Options {
    ChosenNames layers;
    std::int64_t every_steps = 0;
  };
  FilterSummary(Options options, const Params& params);

  RecordedText recorded(const Run& run) const override;
  void check(const RunNames& names) const override;
  void begin(HookContext& context) override;
  void after_run(HookContext& context, const StepResult& result) override;

 private:
  /// Throws Error(config) if there are none.
  std::vector<VariableId> kernels_of(const Graph& graph, const VariableStore& store) const;

  Options options_;
  std::string where_;
  HookTimer timer_;
  std::vector<VariableId> kernels_;
};

}  // namespace lockstep
