// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A profile of a few steps: every rank and thread, layer by layer, in one file that Perfetto and
// chrome://tracing open.
#pragma once

#include "session/hook.h"

namespace lockstep {

class ProfilerHook : public Hook {
 public:
  /// Of the steps that make global_step `first` to `last`. `every` > 0: again after so many steps. Written to
  /// RUN_DIR/profile/trace-<first>-<last>.json by the chief.
  ProfilerHook(std::int64_t first, std::int64_t last, std::int64_t every);

  bool communicates() const override { return true; }
  void begin(HookContext& context) override;
  void before_run(HookContext& context) override;
  void after_run(HookContext& context, const StepResult& result) override;
  /// A stop in the middle: what there is.
  void end(HookContext& context) override;

 private:
  void write(HookContext& context, std::int64_t last);

  std::int64_t first_, last_, every_;
  std::int64_t started_ = -1;  ///< the first step of the profile that is going on; -1: none
};

}  // namespace lockstep
