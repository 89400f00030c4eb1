// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Profiles a few steps: every rank and thread, layer by layer, on one clock, with arrows between ranks, in
// one file for Perfetto or chrome://tracing (trace_file.h).
#pragma once

#include <vector>

#include "comm/clock_offsets.h"
#include "session/hook.h"

namespace lockstep {

class ProfilerHook : public Hook {
 public:
  /// Profiles the steps that make global_step `first` to `last`. `every` > 0: again after `every` steps. The
  /// chief writes RUN_DIR/profile/trace-<first>-<last>.json, and its own times of layers to the event file.
  ProfilerHook(std::int64_t first, std::int64_t last, std::int64_t every);

  bool communicates() const override { return true; }
  void begin(HookContext& context) override;
  void before_run(HookContext& context) override;
  void after_run(HookContext& context, const StepResult& result) override;
  /// Writes what there is after a stop in the middle of a profile.
  void end(HookContext& context) override;

 private:
  void write(HookContext& context, std::int64_t last);

  std::int64_t first_, last_, every_;
  std::vector<ClockOffset> clocks_;  ///< on the chief: at the begin of the present profile
  std::int64_t started_ = -1;        ///< the first step of the present profile; -1: none
  int profiles_ = 0;
};

}  // namespace lockstep
