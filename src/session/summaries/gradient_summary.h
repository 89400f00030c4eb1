// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// gradients/<variable>: a histogram of the gradient that the update used: of the whole global batch, after
// clipping. gradient_norm/<layer>: the norm over the variables of a layer. All ranks measure, the chief
// writes.
#pragma once

#include <string>
#include <vector>

#include "session/summaries/variable_summary.h"

namespace lockstep {

class GradientSummary final : public VariableSummary {
 public:
  struct Options {
    Common common;
    bool norms = true;
  };
  GradientSummary(const Options& options, const Params& params);

  RecordedText recorded(const Run& run) const override;

 private:
  void declare(HookContext& context) override;
  void prepare(HookContext& context) override;
  void collect(HookContext& context, StepSummary& summary) override;

  bool norms_;
  std::vector<std::string> layer_tags_;  ///< gradient_norm/<layer>
  std::vector<std::size_t> layer_of_;    ///< by variable
};

}  // namespace lockstep
