// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/wait_for_step_hook.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "comm/communicator.h"
#include "comm/flight_recorder.h"
#include "comm/shared_error.h"
#include "core/timer.h"
#include "io/checkpoint_store.h"
#include "session/hook_context.h"

namespace lockstep {

void WaitForStepHook::after_create_session(HookContext& context) {
  if (std::exchange(waited_, true)) return;
  set_long_phase("waiting for another run");
  Communicator& control = context.control();
  const Timer since;
  // The chief looks and tells all ranks. No rank waits longer than one poll in a collective call.
  for (bool first = true;; first = false) {
    std::int64_t answer[2] = {-1, 0};  // newest step, out of time
    if (control.rank() == 0) {
      answer[0] = newest_checkpoint_step(run_dir_).value_or(-1);
      answer[1] = since.seconds() >= timeout_seconds_ ? 1 : 0;
      if (first && answer[0] < step_)
        context.reports().note(fmt::format("waiting for step {} of {}", step_, run_dir_));
    }
    control.broadcast(answer, sizeof answer, 0, "waiting for another run");
    if (answer[0] >= step_) return;
    if (agreed(control, context.interruptions().look(), "waiting for another run").any()) return;
    if (answer[1] != 0)
      throw SharedError(
          Error(ErrorKind::checkpoint,
                fmt::format("waited {:.0f} s for a checkpoint of step {}, and there is {}", timeout_seconds_,
                            step_, answer[0] < 0 ? "none" : fmt::format("only one of step {}", answer[0])),
                run_dir_, "Check that the other run is going on, or raise timeout_seconds."));
    std::this_thread::sleep_for(std::chrono::duration<double>(poll_seconds_));
  }
}

}  // namespace lockstep
