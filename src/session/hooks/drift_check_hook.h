// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares a hash of the variables of all ranks every so many steps: a rank that has drifted (broken memory,
// a defect) is named. Before each checkpoint the saver compares, too.
#pragma once

#include "session/hook.h"

namespace lockstep {

class DriftCheckHook : public Hook {
 public:
  /// `every_steps` 0: never.
  explicit DriftCheckHook(std::int64_t every_steps) : Hook("drift_check"), every_steps_(every_steps) {}
  bool communicates() const override { return true; }
  void after_run(HookContext& context, const StepResult& result) override;

 private:
  std::int64_t every_steps_;
};

}  // namespace lockstep
