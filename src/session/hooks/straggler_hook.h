// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Names a rank that slows all others down, by the time that each worked without waiting for others
// (rank_times.h). The chief decides (comm/straggler.h).
#pragma once

#include <vector>

#include "comm/straggler.h"
#include "session/hook.h"

namespace lockstep {

class StragglerHook : public Hook {
 public:
  StragglerHook(int ranks, StragglerOptions options);
  Verdict before_update(HookContext& context, const StepResult& result) override;

 private:
  StragglerOptions options_;
  StragglerDetector detector_;
  std::vector<double> seconds_;
};

}  // namespace lockstep
