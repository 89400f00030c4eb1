// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/drift_check_hook.h"

#include "comm/shared_error.h"
#include "comm/startup_check.h"
#include "session/hook_context.h"
#include "train/trainer.h"
#include "train/variable_fingerprint.h"

namespace lockstep {

void DriftCheckHook::after_run(HookContext& context, const StepResult& result) {
  if (every_steps_ <= 0 || result.step % every_steps_ != 0) return;
  shared([&] {
    require_same_bits(context.control(), context.trainer().fingerprint().take().hash,
                      fmt::format("the variables after step {}", result.step).c_str());
  });
}

}  // namespace lockstep
