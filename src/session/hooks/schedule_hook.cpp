// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/schedule_hook.h"

#include "core/log.h"
#include "session/hook_context.h"

namespace lockstep {

namespace {

/// The name under which checkpoints keep the state. An on-disk name: do not change.
std::string state_key(std::string_view option) {
  std::string key(option);  // "dropout1/rate" is one name
  for (char& c : key)
    if (c == '/') c = '.';
  return key;
}

/// The best value, and how long ago it was. How the value falls may change.
StateSettings settings_of(const HookContext& context, const MetricFollower& follower) {
  StateSettings settings = context.settings_of(follower.metric());
  settings.emplace_back("better", follower.larger_is_better() ? "larger" : "smaller");
  return settings;
}

}  // namespace

ScheduleHook::ScheduleHook(const RunSchedules& schedules) : Hook("schedules") {
  for (ScheduledNumber* const number : schedules.numbers())
    if (MetricFollower* const follower = number->follower())
      followed_.push_back({number->option(), follower});
}

std::vector<CheckpointTensor> ScheduleHook::tensors() const {
  std::vector<CheckpointTensor> tensors;
  for (const Followed& followed : followed_) {
    const std::span<double> values = followed.follower->state();
    tensors.push_back({HookState::path(*this, state_key(followed.option)),
                       Tensor(values.data(), DType::f64, Shape({static_cast<std::int64_t>(values.size())}))});
  }
  return tensors;
}

void ScheduleHook::begin(HookContext& context) {
  for (const Followed& followed : followed_)
    context.declare_state(*this, state_key(followed.option), followed.follower->state(),
                          settings_of(context, *followed.follower), followed.follower->lasting_state());
}

void ScheduleHook::after_run(HookContext& context, const StepResult& result) {
  const MetricBoard& board = context.eval_metrics();
  if (board.version() == seen_version_) return;
  seen_version_ = board.version();
  for (const Followed& followed : followed_) {
    const std::optional<MetricBoard::Entry> entry = board.latest(followed.follower->metric());
    if (!entry || entry->step != result.step) continue;
    const std::optional<std::string> change = followed.follower->observe(entry->value);
    if (change && context.is_chief()) log_info("step {}: {} {}", result.step, followed.option, *change);
  }
}

}  // namespace lockstep
