// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/signal_hook.h"

#include "core/run_signals.h"
#include "session/hook_context.h"

namespace lockstep {

namespace {
/// A USR2 to all ranks may reach them before different steps. Within this time it counts once.
constexpr double kSameSignalSeconds = 1;
}  // namespace

void SignalHook::begin(HookContext& context) { context.interruptions().add(signal_request); }

void SignalHook::before_run(HookContext& context) {
  const unsigned saves = save_signals();
  if (saves == saves_seen_) return;
  saves_seen_ = saves;
  if (!saved_ || since_save_.seconds() >= kSameSignalSeconds) context.request_save();
}

void SignalHook::after_run(HookContext& context, const StepResult&) {
  if (!context.save_request().pending()) return;
  saved_ = true;
  since_save_.restart();
}

}  // namespace lockstep
