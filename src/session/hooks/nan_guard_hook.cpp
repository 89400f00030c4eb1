// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/nan_guard_hook.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "comm/shared_error.h"
#include "config/option.h"
#include "core/log.h"
#include "core/message_lines.h"
#include "optim/gating.h"
#include "session/hook_context.h"
#include "session/hooks/hook_table.h"
#include "session/number_text.h"
#include "train/number_watch.h"
#include "train/step_update.h"
#include "train/trainer.h"

namespace lockstep {

namespace {

void keep_setbacks(HookContext& context, const Hook& hook, GuardAction action) {
  const bool rollback = action == GuardAction::rollback;
  if (rollback || action == GuardAction::skip) context.keep_setbacks(hook, rollback);
}

/// For the error that ends a run: what has become of the variables in a step, as StepResult::step.
std::string state_of_variables(HookContext& context, std::int64_t step, const char* gradients) {
  const Trainer& trainer = context.trainer();
  const auto updated = [&](std::string_view why, std::string_view advice) {
    return fmt::format("The variables were updated with {} ({}), and are not saved; {}. {}", gradients, why,
                       context.checkpoint_text(), advice);
  };
  if (trainer.gating() != Gating::graph)
    return updated(fmt::format("optimizer.gating: {}", name_of(trainer.gating())),
                   "With gating: graph the step is found before its update, and computed once more to find "
                   "out what is wrong in it.");
  if (step > trainer.global_step())
    return fmt::format("The variables were not updated with {}; {}.", gradients, context.checkpoint_text());
  if (trainer.servers() != nullptr)
    return updated("cluster.meet_every_steps",
                   "With meet_every_steps: 1 they are looked at before the update.");
  return updated("no step waits for the GPU", "With train.on_nan: rollback each step does.");
}

const char* with(GradientState gradients) {
  return gradients == GradientState::good ? "its gradients" : "them";
}

/// What is wrong with the numbers of a step. `loss`: empty, if it is not known.
BadStep bad_numbers(HookContext& context, const StepState& state, std::optional<double> loss) {
  const std::string although = loss ? fmt::format(", although {} loss is {}",
                                                  state.finite_statistics ? "the" : "its", number_text(*loss))
                                    : std::string();
  const std::string variables = state_of_variables(context, state.step, with(state.gradients));
  if (!state.finite_statistics)
    return {.step = state.step,
            .what = fmt::format("the moving statistics of step {} are not finite{}", state.step, although),
            .advice = variables + " Look at the data of this step.",
            .numbers = BadNumbers::large};
  if (state.gradients == GradientState::large)
    return {.step = state.step,
            .what = fmt::format("a gradient of step {} exceeds {:.2g}, too large for an update{}", state.step,
                                kMostGradient, although),
            .advice = variables + " Look at the data of this step, or try a smaller learning rate.",
            .numbers = BadNumbers::large};
  return {.step = state.step,
          .what = fmt::format("the gradients of step {} are not finite: training has diverged", state.step),
          .advice = variables + " Try a smaller learning rate."};
}

}  // namespace

Verdict guard(HookContext& context, GuardAction action, const BadStep& bad) {
  if (action == GuardAction::warn) {
    if (context.is_chief()) log_warning("{}", bad.what);
    return Verdict::update;
  }
  const std::string found = find_bad_step(context.trainer(), context.control(), bad.step, bad.numbers);
  switch (action) {
    case GuardAction::stop:
      if (context.is_chief()) log_warning("{}{}", bad.what, MessageLines{found});
      context.stop_now(bad.what);
      return Verdict::skip;
    case GuardAction::skip:
      if (context.is_chief())
        log_warning("{}: this step's update is skipped{}", bad.what, MessageLines{found});
      context.setbacks().skipped(bad.step, bad.what, bad.advice);
      return Verdict::skip;
    case GuardAction::rollback:
      if (context.is_chief()) log_warning("{}: the run goes back{}", bad.what, MessageLines{found});
      context.setbacks().set_reason(bad.what);
      return Verdict::rollback;
    case GuardAction::error:
    case GuardAction::warn:
      break;
  }
  throw SharedError(error_of_lines(ErrorKind::numeric, bad.what + found, "", bad.advice));
}

void NanGuardHook::begin(HookContext& context) { keep_setbacks(context, *this, action_); }

Verdict NanGuardHook::before_update(HookContext& context, const StepResult& result) {
  const StepState state = context.trainer().update().state(prevents_update(action_));
  if (!state.good() && state.step < result.step) return look_at_numbers(context, result, state);
  if (std::isfinite(result.loss)) return look_at_numbers(context, result, state);
  return guard(
      context, action_,
      {.step = result.step,
       .what = fmt::format("the loss of step {} is {}: training has diverged", result.step, result.loss),
       .advice = state_of_variables(context, result.step, "it") + " Try a smaller learning rate."});
}

Verdict NanGuardHook::look_at_numbers(HookContext& context, const StepResult& result,
                                      const StepState& state) {
  if (state.good()) return Verdict::update;
  if (state.finite_statistics) {
    if (!result.finite_gradients) return Verdict::update;  // the loss scale decides
    const std::optional<double> norm =
        state.step == result.step ? context.step_metrics().value("gradient_norm") : std::nullopt;
    if (norm && !std::isfinite(*norm)) return Verdict::update;  // the guard of the gradients decides
  }
  const StepResult& before = context.last_step();
  std::optional<double> loss;
  if (state.step == result.step) loss = result.loss;
  if (state.step == before.step) loss = before.loss;
  return guard(context, action_, bad_numbers(context, state, loss));
}

void NanGuardHook::end(HookContext& context) {
  if (action_ != GuardAction::warn) return require_good_step(context);
  Trainer& trainer = context.trainer();
  const StepState state = trainer.update().state_after(trainer.global_step());
  if (!state.good() && context.is_chief()) log_warning("{}", bad_numbers(context, state, {}).what);
}

void require_good_step(HookContext& context) {
  Trainer& trainer = context.trainer();
  const StepState state = trainer.update().state_after(trainer.global_step());
  if (state.good()) return;
  const BadStep bad = bad_numbers(context, state, {});
  throw SharedError(error_of_lines(
      ErrorKind::numeric, bad.what + find_bad_step(trainer, context.control(), bad.step, bad.numbers), "",
      bad.advice));
}

void GradientGuardHook::begin(HookContext& context) {
  norm_ = context.step_metrics().find("gradient_norm");
  LOCKSTEP_CHECK(norm_ != StepMetrics::kNone, "no step measures the gradients");
}

Verdict GradientGuardHook::before_update(HookContext& context, const StepResult& result) {
  if (!std::isfinite(result.loss)) return Verdict::update;  // the NaN guard has decided
  const StepMetrics& metrics = context.step_metrics();
  if (metrics.may_wait(norm_) && (action_ == GuardAction::error || action_ == GuardAction::warn))
    return Verdict::update;
  const double norm = metrics.value(norm_).value();
  if (std::isfinite(norm)) return Verdict::update;
  return guard(
      context, action_,
      {.step = result.step,
       .what = fmt::format("the norm of the gradients of step {} is {}: training has diverged", result.step,
                           norm),
       .advice = state_of_variables(context, result.step, "them") + " Try a smaller learning rate."});
}

LossSpikeHook::LossSpikeHook(double factor, std::int64_t window, GuardAction action)
    : Hook("loss_spike"),
      factor_(factor),
      action_(action),
      losses_(static_cast<std::size_t>(window)),
      sorted_(static_cast<std::size_t>(window)) {}

void LossSpikeHook::begin(HookContext& context) {
  // The window is where a loss lies, and how many there are.
  const StateSettings settings{{"window", fmt::format("{}", losses_.size())}};
  context.declare_state(*this, "losses", losses_, settings);
  context.declare_state(*this, "seen", {&seen_, 1}, settings);
  keep_setbacks(context, *this, action_);
}

Verdict LossSpikeHook::before_update(HookContext& context, const StepResult& result) {
  if (!std::isfinite(result.loss)) return Verdict::update;  // the NaN guard decides
  const auto seen = static_cast<std::size_t>(seen_);
  if (seen >= losses_.size()) {
    std::copy(losses_.begin(), losses_.end(), sorted_.begin());
    const auto middle = sorted_.begin() + static_cast<std::ptrdiff_t>(sorted_.size() / 2);
    std::nth_element(sorted_.begin(), middle, sorted_.end());
    if (result.loss > factor_ * *middle)
      return guard(context, action_,
                   {.step = result.step,
                    .what = fmt::format(
                        "the loss of step {} is {}, over {} times the median {} of the last {}", result.step,
                        number_text(result.loss), factor_, number_text(*middle), losses_.size()),
                    .advice = "Look at the data of this step, or try a smaller learning rate.",
                    .numbers = BadNumbers::spike});
  }
  losses_[seen % losses_.size()] = result.loss;
  seen_ += 1;
  return Verdict::update;
}

namespace {

struct LossSpikeOptions {
  double factor = 0;
  std::int64_t window = 0;
  GuardAction action = GuardAction::error;
};
constexpr ParamSpec kLossSpike[] = {
    option<&LossSpikeOptions::factor>("factor", "3", above(1).up_to(1e6),
                                      "A loss above factor times the median is a spike."),
    option<&LossSpikeOptions::window>("window", "100", between(3, 1000000, "steps"),
                                      "How many losses the median is computed from."),
    option<&LossSpikeOptions::action>(
        "action", "warn", one_of("error|stop|skip|rollback|warn"),
        "error: end with exit code 1. stop: save and end. skip: skip the update of this step. rollback: go "
        "back to the last checkpoint, and on after the samples of this step. warn: log a warning."),
};

}  // namespace

extern const HookEntry kLossSpikeHook = {
    "loss_spike", "Acts on a loss that jumps, before the variables are updated.", kLossSpike,
    [](const Params& p, const HookSetting&) -> std::unique_ptr<Hook> {
      const auto [factor, window, action] = p.as<LossSpikeOptions>();
      return std::make_unique<LossSpikeHook>(factor, window, action);
    }};

}  // namespace lockstep
