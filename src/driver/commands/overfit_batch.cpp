// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep check --overfit-batch`: a model that can learn anything learns one batch by heart. If its loss
// does not fall to about 0, the net, the loss, the labels or the learning rate are not what they should be.
#include <fmt/format.h>

#include <cmath>

#include "api/launch.h"
#include "comm/agree.h"
#include "comm/shared_error.h"
#include "driver/commands/check.h"
#include "io/print_result.h"
#include "run/setup/data_trial.h"
#include "tools/trial/trial_training.h"

namespace lockstep {

namespace {

/// The batch is learnt when the loss is below this share of the first one.
constexpr double kLearnt = 0.05;

constexpr const char* kAdvice =
    "                  It stays where labels do not belong to their samples, where the learning rate is too "
    "small or\n"
    "                  too large (`lockstep lr-find`), where a warm-up is longer than the trial "
    "(--overfit-steps), and\n"
    "                  where the loss cannot be 0: dropout, noise, regularization, label smoothing, soft "
    "labels, equal\n"
    "                  samples with different labels. Switch these off with --set to see the rest.\n";

bool is_shown(std::int64_t step, std::int64_t steps) {
  std::int64_t unit = 1;
  while (unit * 10 <= step) unit *= 10;
  return step == steps || step == unit || step == 2 * unit || step == 5 * unit;
}

std::string step_text(std::int64_t step, const StepResult& result) {
  return fmt::format("  step {:>7}    loss {:.6g}, learning rate {:.4g}\n", step, result.loss,
                     result.learning_rate);
}

struct Learnt {
  std::string text;
  bool is_learnt = false;
};

/// All ranks; the same result on all.
Learnt learn(TrialTraining& training, std::int64_t steps) {
  Learnt learnt;
  double first = 0;
  StepResult result;
  std::int64_t step = 0;
  while (step < steps && !learnt.is_learnt) {
    result = training.step_on_first_batch();
    ++step;
    if (step == 1) first = result.loss;
    learnt.is_learnt = first > 0 && result.loss <= kLearnt * first;
    const bool ends = learnt.is_learnt || !std::isfinite(result.loss);
    if (ends || is_shown(step, steps)) learnt.text += step_text(step, result);
    if (!std::isfinite(result.loss)) break;
  }
  learnt.text =
      fmt::format("one batch         {} samples, at most {} steps\n", result.samples, steps) + learnt.text;
  if (learnt.is_learnt)
    learnt.text += fmt::format("learnt            the loss is {:.2g} % of the first one after {} steps\n",
                               100 * result.loss / first, step);
  else if (first > 0)
    learnt.text +=
        fmt::format(
            "not learnt        the loss is {:.3g} % of the first one after {} steps, and 5 % is wanted\n",
            100 * result.loss / first, step) +
        kAdvice;
  else
    learnt.text +=
        fmt::format("not judged        the loss begins at {:.4g}: only one above 0 can fall to 0\n", first);
  return learnt;
}

}  // namespace

int overfit_batch(const CheckArguments& arguments) {
  Config config = load_config(arguments.config, arguments.overrides);
  try_data_on_chief(config, {}, {.eval = false});
  return run_on_ranks({config.comm.timeout_seconds, config.comm.start_timeout_seconds}, true,
                      [&](CommEnvironment& environment) {
                        TrialTraining training(environment, config, arguments.overfit_steps);
                        const Learnt learnt = learn(training, arguments.overfit_steps);
                        shared([&] {
                          agree(
                              environment.world(),
                              [&] {
                                if (training.is_chief()) print_lines(learnt.text);
                              },
                              "writing the result");
                        });
                        return learnt.is_learnt ? 0 : 1;
                      });
}

}  // namespace lockstep
