// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hook_context.h"

#include <utility>

#include "comm/communicator.h"
#include "session/run_names.h"
#include "train/step_sums.h"
#include "train/trainer.h"

namespace lockstep {

HookContext::HookContext(const SessionParts& parts, std::string run_dir, Coordinator& coordinator)
    : parts_(parts),
      is_chief_(parts.control.rank() == 0),
      run_dir_(std::move(run_dir)),
      coordinator_(coordinator),
      rank_values_(parts.trainer.sums().exchange(), parts.control.size()),
      stop_(is_chief_, parts.reports, rank_values_),
      save_(rank_values_),
      state_(deferred_) {}

const StepMetrics& HookContext::step_metrics() const { return parts_.trainer.metrics(); }
std::int64_t HookContext::global_step() const { return parts_.trainer.global_step(); }
Cursor HookContext::cursor() const { return parts_.trainer.cursor(); }

void HookContext::defer(const Hook& hook, const InterruptionRequest& interruption) {
  LOCKSTEP_CHECK(interruption.any());
  deferred_.set(ending_ ? DeferredCalls::Method::end : DeferredCalls::Method::after_run, hook.name(),
                last_step_);
  stop_.interrupt(interruption, global_step());
}

void HookContext::keep_setbacks(const Hook& hook, bool may_roll_back) {
  may_roll_back_ = may_roll_back_ || may_roll_back;
  if (!std::exchange(keeps_setbacks_, true)) declare_state(hook, "setbacks", setbacks_.state(), {});
}

StateSettings HookContext::settings_of(std::string_view metric) const {
  StateSettings settings{{"metric", with_split(metric)}};
  if (parts_.evaluation_settings)
    std::ranges::move(parts_.evaluation_settings(without_split(metric)), std::back_inserter(settings));
  return settings;
}

bool HookContext::has_begun_anew(const Hook& hook, const std::string& key) const {
  const auto found = std::ranges::find(outcomes_, HookState::path(hook, key), &PieceOutcome::name);
  return found != outcomes_.end() && found->changed;
}

void HookContext::keep_errors(const Hook& hook, FunctionRef<void()> body) {
  try {
    body();
  } catch (const Error& error) {
    stop_.keep_error(error, std::current_exception(), is_transient(error));
  } catch (const std::exception& error) {
    const Error named(ErrorKind::bug, fmt::format("hook {}: {}", hook.name(), error.what()));
    stop_.keep_error(named, std::make_exception_ptr(named), false);
  }
}

std::string HookContext::checkpoint_text() const {
  const std::int64_t step = std::max(saved_step_, restored_step_);
  return step < 0 ? "no checkpoint is on the disk yet"
                  : fmt::format("the checkpoint of step {} is intact", step);
}

void HookContext::feed(const Hook& hook, Feed feed) {
  LOCKSTEP_REQUIRE(feeding_ == nullptr, ErrorKind::config, "hooks {} and {} both feed the same step",
                   feeding_->name(), hook.name());
  feeding_ = &hook;
  parts_.trainer.set_feed(std::move(feed));
}

void HookContext::end_feed() {
  if (std::exchange(feeding_, nullptr) != nullptr) parts_.trainer.set_feed({});
}

}  // namespace lockstep
