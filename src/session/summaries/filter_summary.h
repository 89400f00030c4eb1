// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// filters/<layer>: the filters of a two-dimensional convolution on 1 or 3 channels, as a contact sheet. Grey
// is 0; the largest number of the layer is white, or black if it is negative. The chief alone.
#pragma once

#include <string>
#include <vector>

#include "session/hook.h"
#include "session/hooks/hook_timer.h"

namespace lockstep {

class FilterSummary final : public Hook {
 public:
  static std::span<const ParamSpec> table();
  explicit FilterSummary(const Params& options);

  void check(const RunNames& names) const override;
  void begin(HookContext& context) override;
  void after_run(HookContext& context, const StepResult& result) override;

 private:
  Params options_;
  HookTimer timer_;
  std::vector<VariableId> kernels_;
};

}  // namespace lockstep
