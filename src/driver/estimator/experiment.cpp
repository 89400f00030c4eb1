// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/estimator/experiment.h"

#include <algorithm>
#include <cstdlib>

#include "comm/shared_error.h"
#include "core/run_signals.h"

namespace lockstep {

Experiment::Experiment(Estimator& estimator, ExperimentSpec spec)
    : estimator_(estimator), spec_(std::move(spec)) {
  shared([&] {
    const auto require = [](bool fits, const char* what, const char* advice) {
      if (!fits) throw Error(ErrorKind::usage, what, "experiment", advice);
    };
    require(spec_.train_steps.value_or(1) >= 1, "train_steps is less than 1", "Give 1 or more, or nothing.");
    require(spec_.min_eval_frequency >= 0, "min_eval_frequency is negative", "Give 0 or more.");
    require(spec_.train_steps_per_iteration.value_or(1) >= 1, "train_steps_per_iteration is less than 1",
            "Give 1 or more, or nothing.");
    require(spec_.eval_delay_seconds >= 0 && spec_.continuous_eval_throttle_seconds >= 0 &&
                spec_.most_wait_seconds >= 0,
            "a time is negative", "Give 0 or more seconds.");
    for (std::size_t i = 0; i < spec_.exports.size(); ++i) {
      const ExportStrategy& strategy = spec_.exports[i];
      require(strategy.keep >= 0, "an export keeps fewer than no folders", "Give 0 (all) or more.");
      require(
          !strategy.name.empty() && strategy.name.find('/') == std::string::npos && strategy.name[0] != '.',
          "an export has no name for its folder", "Give letters and digits.");
      for (std::size_t j = 0; j < i; ++j)
        require(spec_.exports[j].name != strategy.name, "two exports have the same name",
                "Rename one of them.");
    }
  });
}

void Experiment::export_now(const EvaluationOutcome& evaluation, bool is_final) {
  if (!spec_.exports.empty())
    export_evaluated(estimator_.ranks().world(), estimator_.model_dir(), spec_.exports, evaluation, is_final);
}

TrainingOutcome Experiment::train() {
  return estimator_.train(spec_.train_input, {.max_steps = spec_.train_steps, .hooks = spec_.train_hooks});
}

EvaluationOutcome Experiment::evaluate(const std::string& name) {
  return estimator_.evaluate(spec_.eval_input, {.name = name});
}

TrainingOutcome Experiment::train_and_evaluate() {
  TrainingOutcome outcome = estimator_.train(spec_.train_input, {.max_steps = spec_.train_steps,
                                                                 .eval_input = spec_.eval_input,
                                                                 .eval_every_steps = spec_.min_eval_frequency,
                                                                 .hooks = spec_.train_hooks});
  // The exports need the checkpoint's own numbers, which the last evaluation of this job may not be.
  if (outcome.exit_code == 0 && !spec_.exports.empty())
    export_now(estimator_.evaluate(spec_.eval_input), true);
  return outcome;
}

TrainingOutcome Experiment::continuous_train_and_eval(const Predicate& go_on) {
  const std::int64_t each = spec_.train_steps_per_iteration.value_or(
      spec_.train_steps ? std::max<std::int64_t>(*spec_.train_steps / 10, 1) : 1000);
  TrainingOutcome outcome;
  std::int64_t reached = -1;
  for (;;) {
    TrainOptions options{.hooks = spec_.train_hooks};
    // Iterations end at multiples, so that a job which was killed within one goes on to the same end.
    const std::int64_t from = std::max<std::int64_t>(reached, 0);
    const std::int64_t next = (from / each + 1) * each;
    options.max_steps = spec_.train_steps ? std::min(next, *spec_.train_steps) : next;
    outcome = estimator_.train(spec_.train_input, options);
    if (outcome.exit_code != 0) return outcome;
    const bool further = outcome.global_step > *options.max_steps;  // an earlier job was here
    const bool again = reached == outcome.global_step;              // the run ended for another reason
    reached = outcome.global_step;
    if (further) continue;
    const bool is_final = again || (spec_.train_steps && reached >= *spec_.train_steps);
    const EvaluationOutcome evaluation = evaluate();
    const bool ends = is_final || (go_on && !go_on(evaluation));
    export_now(evaluation, ends);
    if (ends) return outcome;
  }
}

WatchOutcome Experiment::watch(const InputFunction& input, const std::string& name, bool exports,
                               const Predicate& go_on) {
  install_run_signals([](const char* variable) -> const char* { return std::getenv(variable); });
  return watch_checkpoints(
      estimator_.ranks(),
      {.run_dir = estimator_.model_dir(),
       .name = name,
       .delay_seconds = spec_.eval_delay_seconds,
       .throttle_seconds = spec_.continuous_eval_throttle_seconds,
       .most_wait_seconds = spec_.most_wait_seconds,
       .last_step = spec_.train_steps,
       .config =
           [&] {
             return config_from_text(estimator_.configuration(Mode::evaluate, input),
                                     "the estimator's configuration");
           },
       .evaluated =
           [&](const EvaluationOutcome& evaluation) {
             if (exports)
               export_now(evaluation, spec_.train_steps && evaluation.global_step >= *spec_.train_steps);
             return !go_on || go_on(evaluation);
           }});
}

WatchOutcome Experiment::continuous_eval(const Predicate& go_on) {
  return watch(spec_.eval_input, "continuous", true, go_on);
}

WatchOutcome Experiment::continuous_eval_on_train_data(const Predicate& go_on) {
  return watch(spec_.train_input, "continuous_on_train_data", false, go_on);
}

EvaluationOutcome Experiment::test() {
  estimator_.train(spec_.train_input, {.steps = 1, .hooks = spec_.train_hooks});
  EvaluationOutcome evaluation = estimator_.evaluate(spec_.eval_input);
  export_now(evaluation, true);
  return evaluation;
}

}  // namespace lockstep
