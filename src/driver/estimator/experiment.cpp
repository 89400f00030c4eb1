// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/estimator/experiment.h"

#include <algorithm>
#include <cstdlib>

#include "comm/shared_error.h"
#include "core/run_signals.h"
#include "driver/config/yaml_node.h"
#include "session/run_state.h"

namespace lockstep {

namespace {

/// A set's options for evaluations, with those of the training set in their place.
void train_as_eval(Node& sets) {
  const Node* const train = sets.find("train");
  set_option(sets, "eval", train != nullptr && !is_null(*train) ? *train : options_map({}));
}

/// A configuration whose evaluation set is the training set, in its order.
std::string evaluating_training_set(const std::string& text) {
  Node root = parse_yaml(text, "the estimator's configuration");
  const Node* const found = root.find("data");
  LOCKSTEP_CHECK(found != nullptr, "a configuration without data");
  Node data = *found;
  train_as_eval(data);
  for (const char* const key : {"inputs", "targets"}) {
    const Node* const entries = data.find(key);
    if (entries == nullptr || is_null(*entries)) continue;
    Node changed = *entries;
    for (auto& [name, entry] : changed.entries) train_as_eval(entry);
    set_option(data, key, changed);
  }
  set_option(root, "data", data);
  return to_yaml(root);
}

}  // namespace

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
      require(is_export_name(strategy.name), "an export has no name for its folder",
              "Give letters, digits, - and _.");
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

EvaluationOutcome Experiment::told(EvaluationOutcome evaluation) const {
  if (spec_.evaluated) spec_.evaluated(evaluation);
  return evaluation;
}

TrainingOutcome Experiment::train() {
  return estimator_.train(spec_.train_input,
                          {.max_steps = spec_.train_steps, .evaluates = false, .hooks = spec_.train_hooks});
}

EvaluationOutcome Experiment::evaluate(const std::string& name) {
  return told(estimator_.evaluate(spec_.eval_input, {.name = name}));
}

TrainingOutcome Experiment::train_and_evaluate() {
  TrainingOutcome outcome = estimator_.train(spec_.train_input, {.max_steps = spec_.train_steps,
                                                                 .eval_input = spec_.eval_input,
                                                                 .eval_every_steps = spec_.min_eval_frequency,
                                                                 .hooks = spec_.train_hooks});
  // The exports need the checkpoint's own numbers, which the last evaluation of this job may not be.
  if (outcome.exit_code == 0 && !spec_.exports.empty())
    export_now(told(estimator_.evaluate(spec_.eval_input)), true);
  return outcome;
}

TrainingOutcome Experiment::continuous_train_and_eval(const Predicate& go_on) {
  const std::int64_t each = spec_.train_steps_per_iteration.value_or(
      spec_.train_steps ? std::max<std::int64_t>(*spec_.train_steps / 10, 1) : 1000);
  std::int64_t reached = 0;
  for (;;) {
    // Iterations end at multiples, so that a job which was killed within one goes on to the same end.
    const std::int64_t next = (reached / each + 1) * each;
    const TrainingOutcome outcome = estimator_.train(
        spec_.train_input,
        {.max_steps = spec_.train_steps, .stop_at = next, .evaluates = false, .hooks = spec_.train_hooks});
    if (outcome.exit_code != 0) return outcome;
    const bool no_progress = reached == outcome.global_step;  // a hook ends each job
    reached = outcome.global_step;
    if (reached > next && !outcome.finished) continue;  // an earlier job was here
    const EvaluationOutcome evaluation = evaluate();
    const bool ends = outcome.finished || no_progress || (go_on && !go_on(evaluation));
    export_now(evaluation, ends);
    if (ends) return outcome;
  }
}

WatchOutcome Experiment::watch(bool train_data, const std::string& name, const Predicate& go_on) {
  install_run_signals([](const char* variable) -> const char* { return std::getenv(variable); });
  const InputFunction& input = train_data ? spec_.train_input : spec_.eval_input;
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
             const std::string text = estimator_.configuration(Mode::evaluate, input);
             constexpr const char* kSource = "the estimator's configuration";
             return config_from_text(train_data && !input ? evaluating_training_set(text) : text, kSource);
           },
       .evaluated =
           [&](const EvaluationOutcome& evaluation) {
             told(evaluation);
             if (!train_data)
               export_now(evaluation, spec_.train_steps && evaluation.global_step >= *spec_.train_steps);
             return !go_on || go_on(evaluation);
           }});
}

WatchOutcome Experiment::continuous_eval(const Predicate& go_on) { return watch(false, "continuous", go_on); }

WatchOutcome Experiment::continuous_eval_on_train_data(const Predicate& go_on) {
  return watch(true, "continuous_on_train_data", go_on);
}

EvaluationOutcome Experiment::test() {
  Communicator& world = estimator_.ranks().world();
  const FoundCheckpoint found = shared([&] { return find_checkpoint(world, estimator_.model_dir(), ""); });
  estimator_.train(spec_.train_input, {.max_steps = spec_.train_steps,
                                       .stop_at = found.exists() ? found.header.global_step + 1 : 1,
                                       .evaluates = false,
                                       .hooks = spec_.train_hooks});
  EvaluationOutcome evaluation = told(estimator_.evaluate(spec_.eval_input));
  export_now(evaluation, true);
  return evaluation;
}

}  // namespace lockstep
