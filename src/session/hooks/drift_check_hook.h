// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares a hash of the variables of all ranks every N steps, and names a rank that differs (broken
// memory, a defect). The checkpoint saver makes the same check before each save.
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
