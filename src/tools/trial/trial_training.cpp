// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/trial/trial_training.h"

#include <cmath>

#include "comm/shared_error.h"
#include "run/setup/train_setup.h"
#include "session/warm_start.h"
#include "train/trainer.h"

namespace lockstep {

Config trial_config(const Config& config, std::int64_t steps, std::vector<std::string> overrides) {
  overrides.push_back(fmt::format("train.steps={}", steps));
  overrides.emplace_back("train.epochs=null");
  return changed_config(config, resolved_config(config), overrides);
}

TrialTraining::TrialTraining(CommEnvironment& environment, const Config& config, std::int64_t steps)
    : context_(std::make_unique<RunContext>(
          environment, trial_config(config, steps), std::nullopt,
          RunNeeds{.train = true, .updates = true, .ranks = environment.world().size()})),
      scale_(config.precision.loss_scale),
      scale_now_{.scale = scale_.initial} {
  shared([&] {
    if (config.warm_start) warm_start(context_->control(), *config.warm_start, *context_->model().variables);
    setup_ = make_trainer(*context_);
  });
}

TrialTraining::~TrialTraining() = default;

bool TrialTraining::is_chief() const { return context_->is_chief(); }

StepResult TrialTraining::step() {
  Trainer& trainer = *setup_->trainer;
  if (scale_.used()) trainer.set_loss_scale(scale_now_.scale);
  const StepResult result = trainer.compute();
  const bool updates = result.finite_gradients || !std::isfinite(result.loss);
  if (scale_.dynamic && result.finite_gradients) scale_now_.finite(scale_);
  if (scale_.dynamic && !updates) scale_now_.overflowed();
  trainer.apply(updates);
  return result;
}

StepResult TrialTraining::step_on_first_batch() {
  Trainer& trainer = *setup_->trainer;
  trainer.set_position(trainer.global_step(), {});
  return step();
}

}  // namespace lockstep
