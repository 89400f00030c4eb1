// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Names a rank that slows all others down. Each rank sends the time that it worked in a step, without waiting
// for others, with the exchange of the next step. The chief decides (comm/straggler.h).
#pragma once

#include <string>
#include <vector>

#include "comm/straggler.h"
#include "core/timer.h"
#include "session/hook.h"
#include "session/rank_values.h"

namespace lockstep {

class StragglerHook : public Hook {
 public:
  StragglerHook(int ranks, StragglerOptions options);
  bool communicates() const override { return true; }  // the hosts' names, in begin
  void begin(HookContext& context) override;
  void after_create_session(HookContext&) override { measured_ = false; }
  void before_run(HookContext& context) override;
  Verdict before_update(HookContext& context, const StepResult& result) override;

 private:
  double seconds_waited(HookContext& context) const;

  StragglerOptions options_;
  StragglerDetector detector_;
  RankValues::Slice slice_;
  StepMetrics::Id waiting_ = StepMetrics::kNone;
  std::vector<std::string> hosts_;
  std::vector<double> seconds_;
  Timer since_;
  double waited_ = 0;      ///< by this rank before the step
  double busy_ = 0;        ///< of the last step
  bool measured_ = false;  ///< busy_ is that of a step
};

}  // namespace lockstep
