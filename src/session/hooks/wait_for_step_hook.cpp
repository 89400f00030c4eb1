// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/wait_for_step_hook.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "comm/communicator.h"
#include "comm/flight_recorder.h"
#include "comm/shared_error.h"
#include "config/option.h"
#include "core/timer.h"
#include "io/checkpoint_store.h"
#include "session/hook_context.h"
#include "session/hooks/hook_table.h"

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

namespace {

struct WaitForStepOptions {
  std::string run_dir;
  std::int64_t step = 0;
  double poll_seconds = 0, timeout_seconds = 0;
};
constexpr ParamSpec kWaitForStep[] = {
    option<&WaitForStepOptions::run_dir>("run_dir", kRequired, {}, "The run directory of the other run.",
                                         Change::free),
    option<&WaitForStepOptions::step>("step", kRequired, between(0, 1e12),
                                      "Wait until its newest checkpoint is of this step or later.",
                                      Change::free),
    option<&WaitForStepOptions::poll_seconds>("poll_seconds", "0.5", above(0).up_to(10, "seconds"),
                                              "How often to look.", Change::free),
    option<&WaitForStepOptions::timeout_seconds>("timeout_seconds", "7200", above(0).up_to(1e9, "seconds"),
                                                 "How long to wait before it is an error (exit code 4).",
                                                 Change::free),
};

}  // namespace

extern const HookEntry kWaitForStepHook = {
    "wait_for_step", "Waits for a checkpoint of another run before the first step.", kWaitForStep,
    [](const Params& p, const HookSetting& setting) -> std::unique_ptr<Hook> {
      const auto options = p.as<WaitForStepOptions>();
      return std::make_unique<WaitForStepHook>(setting.resolved(options.run_dir), options.step,
                                               options.poll_seconds, options.timeout_seconds);
    },
    Change::free};

}  // namespace lockstep
