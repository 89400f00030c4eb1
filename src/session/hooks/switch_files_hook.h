// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Files that a person creates in the run directory where signals cannot be sent: STOP (save and stop) and
// SAVE (save and continue). The chief looks for them once a second and removes those that it acts on.
#pragma once

#include <string>

#include "core/timer.h"
#include "session/hook.h"
#include "session/interruption.h"

namespace lockstep {

class SwitchFilesHook : public Hook {
 public:
  explicit SwitchFilesHook(const std::string& run_dir)
      : Hook("switch_files", HookScope::chief_only), stop_(run_dir + "/STOP"), save_(run_dir + "/SAVE") {}
  void begin(HookContext& context) override;

 private:
  InterruptionRequest look(HookContext& context);

  std::string stop_, save_;
  bool looked_ = false;
  Timer since_;
};

}  // namespace lockstep
