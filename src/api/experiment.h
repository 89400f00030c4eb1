// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// An estimator with its samples: the usual ways in which trainings and evaluations follow each other. All
// ranks call the same methods. A method that was killed is called again by the next job: it continues.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/estimator.h"
#include "run/sections/experiment_options.h"

namespace lockstep {

struct ExperimentSpec {
  /// Both are left out for an estimator of a configuration, which has samples.
  InputFunction train_input = {};
  InputFunction eval_input = {};
  /// The run ends at this step; none: where section `train` says.
  std::optional<std::int64_t> train_steps = {};
  std::vector<HookFunction> train_hooks = {};
  /// train_and_evaluate(): steps from one evaluation to the next, at least (TrainOptions::eval_every_steps);
  /// 0: one at the end.
  std::int64_t min_eval_frequency = 1;
  /// continuous_train_and_eval(); none: a tenth of train_steps, or 1000.
  std::optional<std::int64_t> train_steps_per_iteration = {};
  /// Worker i begins at step 8000 ln(i + 1) (TrainOptions::worker_delay_steps). Needs parameter servers.
  bool delay_workers_by_global_step = false;
  /// continuous_eval().
  double eval_delay_seconds = 120, continuous_eval_throttle_seconds = 60, most_wait_seconds = 7200;
  std::vector<ExportStrategy> exports = {};
  bool accept_changes = false;  ///< TrainOptions::accept_changes
  /// A function that is told of each evaluation, on all ranks, except those during train_and_evaluate()'s
  /// training.
  std::function<void(const EvaluationOutcome&)> evaluated = {};
};

class Experiment {
 public:
  /// Whether to go on after an evaluation. The same on all ranks.
  using Predicate = std::function<bool(const EvaluationOutcome&)>;

  /// `estimator` outlives it. Throws SharedError for numbers that make no sense.
  Experiment(Estimator& estimator, ExperimentSpec spec);

  /// Trains to the end, without evaluations.
  TrainingOutcome train();
  /// Evaluates the newest checkpoint, in eval_NAME.
  EvaluationOutcome evaluate(const std::string& name = "one_pass");
  /// One training with evaluations during it and at its end. An evaluation whose checkpoint is of
  /// the same step is exported when that is written. If this task is the evaluator (Estimator::cluster()), it
  /// is continuous_eval().
  TrainingOutcome train_and_evaluate();
  /// Trains some steps, evaluates and exports, and so on to the end. `go_on` may end it earlier. A job that
  /// was killed after an evaluation does not make it again.
  TrainingOutcome continuous_train_and_eval(const Predicate& go_on = {});
  /// A job in addition to the one that trains: it evaluates each new checkpoint, in eval_continuous, and
  /// exports. It ends with the run.
  WatchOutcome continuous_eval(const Predicate& go_on = {});
  /// continuous_eval() over the training samples, in eval_continuous_on_train_data, without exports.
  WatchOutcome continuous_eval_on_train_data(const Predicate& go_on = {});
  /// One step of training, if the run is not at its end, and one evaluation, to see whether everything fits
  /// together.
  EvaluationOutcome test();

 private:
  TrainOptions train_options() const;
  void export_lost();
  /// The path of a file in eval_one_pass that names the newest evaluated checkpoint. On-disk name: do not
  /// change.
  std::string mark() const;
  bool is_evaluated(const std::string& checkpoint) const;
  WatchOutcome watch(bool train_data, const std::string& name, const Predicate& go_on);
  EvaluationOutcome told(EvaluationOutcome evaluation) const;
  void export_now(const EvaluationOutcome& evaluation, bool is_final);

  Estimator& estimator_;
  ExperimentSpec spec_;
};

}  // namespace lockstep
