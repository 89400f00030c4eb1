// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// updates/<variable>: a histogram of what a step adds to a variable. update_ratio/<variable>: its norm,
// divided by the norm of the variable after the step. Where it is written, the chosen variables before the
// step are kept in a copy. All ranks measure, the chief writes.
#pragma once

#include <string>
#include <vector>

#include "core/buffer.h"
#include "session/summaries/variable_summary.h"

namespace lockstep {

class UpdateSummary final : public VariableSummary {
 public:
  struct Options {
    Common common;
    bool ratios = true;
  };
  UpdateSummary(const Options& options, const Params& params);

  RecordedText recorded(const Run& run) const override;
  void before_run(HookContext& context) override;

 private:
  void declare(HookContext& context) override;
  void collect(HookContext& context, StepSummary& summary) override;

  bool ratios_;
  std::vector<std::string> ratio_tags_;  ///< update_ratio/<variable>
  Buffer before_;                        ///< the chosen variables, on the device
  /// Neighbours in the store are copied at once.
  struct Part {
    const float* from;
    std::int64_t first, count;  ///< in before_
  };
  std::vector<Part> parts_;
};

}  // namespace lockstep
