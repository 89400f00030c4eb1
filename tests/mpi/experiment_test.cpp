// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Experiments on any number of ranks: how many trainings and evaluations each method makes, also when jobs
// before it did a part, and what is exported.
#include "api/experiment.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "comm/shared_error.h"
#include "core/error.h"
#include "io/event_reader.h"
#include "run/jobs/export_strategy.h"
#include "session/run_state.h"
#include "support/estimator_run.h"
#include "support/hook_run.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// The steps of the evaluations in a folder of the run directory, in the order in which they were written.
std::vector<std::int64_t> evaluated_steps(const std::string& folder) {
  std::vector<std::int64_t> steps;
  std::vector<std::string> files;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none))
    if (entry.path().filename().string().starts_with("events")) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    EventReader reader(file);
    while (const auto record = reader.next())
      for (const EventValue& value : record->values)
        if (value.tag == "loss") steps.push_back(record->step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::vector<std::string> folders_in(const std::string& path) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(path, none))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// What the chief has written is there for all.
void meet() { test_world().barrier("files are written"); }

ExperimentSpec small_experiment() {
  return {.train_input = class_input(), .eval_input = class_input("eval", 31), .train_steps = 12};
}

TEST(Experiment, TrainAndEvaluateEvaluatesAfterCheckpointsAndAtTheEnd) {
  const std::string run_dir = fresh_run_dir("train_and_evaluate");
  RunConfig run = small_run(run_dir);
  run.checkpoint.every_steps = 4;
  ExperimentSpec spec = small_experiment();
  spec.train_steps = 10;
  spec.min_eval_frequency = 3;  // with checkpoints every 4 steps: every 4
  spec.exports = {{.when = ExportStrategy::When::final, .name = "final"},
                  {.when = ExportStrategy::When::latest, .name = "each"},
                  {.when = ExportStrategy::When::best, .name = "best", .keep = 0}};
  Estimator waiting(test_environment(), small_model, run);
  int told = 0;
  spec.evaluated = [&](const EvaluationOutcome&) { ++told; };
  const TrainingOutcome outcome = Experiment(waiting, spec).train_and_evaluate();
  meet();
  EXPECT_EQ(outcome.global_step, 10);
  EXPECT_THAT(evaluated_steps(run_dir + "/eval"), ElementsAre(4, 8, 10));
  EXPECT_EQ(told, 0);  // no evaluation apart from training
  EXPECT_THAT(folders_in(run_dir + "/export/each"),
              ElementsAre("step-00000004", "step-00000008", "step-00000010"));
  // The loss falls, so the last one is the best.
  EXPECT_EQ(folders_in(run_dir + "/export/best").back(), "step-00000010");
  meet();                          // all have looked
  if (test_world().rank() == 0) {  // as if killed between the evaluation and its exports
    std::filesystem::remove(run_dir + "/export/exported");
    std::filesystem::remove_all(run_dir + "/export/each/step-00000010");
  }
  meet();
  spec.train_steps = 11;
  EXPECT_EQ(Experiment(waiting, spec).train_and_evaluate().global_step, 11);
  EXPECT_EQ(told, 1);
  meet();
  EXPECT_THAT(folders_in(run_dir + "/export/each"),
              ElementsAre("step-00000004", "step-00000008", "step-00000010", "step-00000011"));
  EXPECT_EQ(Experiment(waiting, spec).train_and_evaluate().global_step, 11);
  EXPECT_EQ(told, 2);  // a run at its end is evaluated for its last exports
  meet();
  EXPECT_THAT(folders_in(run_dir + "/export/final"), ElementsAre("step-00000010", "step-00000011"));
  EXPECT_TRUE(std::filesystem::exists(run_dir + "/export/final/step-00000010/weights.h5"));
  EXPECT_TRUE(std::filesystem::exists(run_dir + "/export/final/step-00000010/config.yaml"));
}

TEST(Experiment, FrequencyZeroEvaluatesAtTheEndOnly) {
  const std::string run_dir = fresh_run_dir("at_the_end");
  Estimator estimator(test_environment(), small_model, small_run(run_dir));
  ExperimentSpec spec = small_experiment();
  spec.min_eval_frequency = 0;
  Experiment(estimator, spec).train_and_evaluate();
  meet();
  EXPECT_THAT(evaluated_steps(run_dir + "/eval"), ElementsAre(12));
}

TEST(Experiment, TrainAndEvaluateGoesOnWhereAnEarlierJobEnded) {
  const std::string run_dir = fresh_run_dir("goes_on"), whole = fresh_run_dir("at_once");
  RunConfig run = small_run(run_dir);
  run.checkpoint.every_steps = 4;
  ExperimentSpec spec = small_experiment();
  spec.min_eval_frequency = 4;
  {
    Estimator first(test_environment(), small_model, run);
    ExperimentSpec half = spec;
    half.train_steps = 6;
    Experiment(first, half).train_and_evaluate();
  }
  Estimator second(test_environment(), small_model, run);
  EXPECT_EQ(Experiment(second, spec).train_and_evaluate().global_step, 12);
  run.model_dir = whole;
  Estimator once(test_environment(), small_model, run);
  Experiment(once, spec).train_and_evaluate();
  meet();
  EXPECT_THAT(evaluated_steps(run_dir + "/eval"), ElementsAre(4, 6, 8, 12));
  EXPECT_EQ(find_checkpoint(test_world(), run_dir, "").header.digest,
            find_checkpoint(test_world(), whole, "").header.digest);
}

TEST(Experiment, ContinuousTrainAndEvalAlternates) {
  const std::string run_dir = fresh_run_dir("alternates");
  Estimator estimator(test_environment(), small_model, small_run(run_dir));
  ExperimentSpec spec = small_experiment();
  spec.train_steps_per_iteration = 5;
  spec.exports = {{.when = ExportStrategy::When::latest, .name = "latest", .keep = 2}};
  std::vector<std::int64_t> seen;
  const auto note = [&](const EvaluationOutcome& evaluation) {
    seen.push_back(evaluation.global_step);
    return true;
  };
  EXPECT_EQ(Experiment(estimator, spec).continuous_train_and_eval(note).global_step, 12);
  meet();
  EXPECT_THAT(seen, ElementsAre(5, 10));  // the last evaluation ends it anyway
  EXPECT_THAT(evaluated_steps(run_dir + "/eval_one_pass"), ElementsAre(5, 10, 12));
  EXPECT_THAT(folders_in(run_dir + "/export/latest"), ElementsAre("step-00000010", "step-00000012"));
}

TEST(Experiment, ContinuousTrainAndEvalMakesEachEvaluationOnceAlsoWhenJobsDied) {
  const std::string run_dir = fresh_run_dir("died");
  ExperimentSpec spec = small_experiment();
  spec.train_steps_per_iteration = 5;
  std::vector<std::int64_t> seen;
  spec.evaluated = [&](const EvaluationOutcome& evaluation) { seen.push_back(evaluation.global_step); };
  // Dies in the step after an evaluation, whose checkpoint is the newest.
  const auto job_that_dies_in = [&](std::int64_t step) {
    ExperimentSpec dies = spec;
    dies.train_hooks = {[=] {
      return std::make_unique<At>("after_run", 0, step,
                                  [](HookContext&) { throw Error(ErrorKind::data, "the disk is gone"); });
    }};
    Estimator estimator(test_environment(), small_model, small_run(run_dir));
    EXPECT_THROW(Experiment(estimator, dies).continuous_train_and_eval(), SharedError);
  };
  const auto job = [&] {
    Estimator estimator(test_environment(), small_model, small_run(run_dir));
    EXPECT_EQ(Experiment(estimator, spec).continuous_train_and_eval().global_step, 12);
  };
  job_that_dies_in(6);
  EXPECT_THAT(seen, ElementsAre(5));
  job_that_dies_in(11);
  EXPECT_THAT(seen, ElementsAre(5, 10));
  meet();
  if (test_world().rank() == 0) std::filesystem::remove(run_dir + "/eval_one_pass/evaluated");
  meet();
  job_that_dies_in(11);  // as if the one before had died before its evaluation was complete
  EXPECT_THAT(seen, ElementsAre(5, 10, 10));
  job();
  EXPECT_THAT(seen, ElementsAre(5, 10, 10, 12));
  job();  // a run at its end
  EXPECT_THAT(seen, ElementsAre(5, 10, 10, 12));
}

TEST(Experiment, AnEvaluatorsTrainAndEvaluateIsContinuousEval) {
  const std::string run_dir = fresh_run_dir("evaluator");
  RunConfig run = small_run(run_dir);
  run.cluster.tasks = "TF_CONFIG";
  ::setenv("TF_CONFIG", R"({"task": {"type": "worker", "index": 0}})", 1);
  Estimator trains(test_environment(), small_model, run);
  EXPECT_FALSE(trains.cluster().is_evaluator());
  EXPECT_EQ(trains.cluster().num_worker_replicas(), test_world().size());
  trains.train(class_input(), {.max_steps = 12});
  meet();
  ::setenv("TF_CONFIG",
           R"({"cluster": {"chief": ["a:1"], "ps": ["b:1"]}, "task": {"type": "evaluator", "index": 0}})", 1);
  Estimator estimator(test_environment(), small_model, run);
  EXPECT_TRUE(estimator.cluster().is_evaluator());
  ExperimentSpec spec = small_experiment();
  spec.eval_delay_seconds = 0;
  EXPECT_TRUE(Experiment(estimator, spec).train_and_evaluate().finished);
  meet();
  EXPECT_THAT(evaluated_steps(run_dir + "/eval_continuous"), ElementsAre(12));
  try {
    estimator.train(class_input(), {.max_steps = 20});
    ADD_FAILURE() << "no error";
  } catch (const SharedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the evaluator, which does not train"));
  }
  ::unsetenv("TF_CONFIG");
}

TEST(Experiment, APredicateEndsIt) {
  const std::string run_dir = fresh_run_dir("predicate");
  Estimator estimator(test_environment(), small_model, small_run(run_dir));
  ExperimentSpec spec = small_experiment();
  spec.train_steps_per_iteration = 3;
  const auto until_six = [](const EvaluationOutcome& evaluation) { return evaluation.global_step < 6; };
  EXPECT_EQ(Experiment(estimator, spec).continuous_train_and_eval(until_six).global_step, 6);
}

TEST(Experiment, ContinuousEvalOfAFinishedRunEvaluatesItsLastCheckpoint) {
  const std::string run_dir = fresh_run_dir("watch_finished");
  Estimator estimator(test_environment(), small_model, small_run(run_dir));
  ExperimentSpec spec = small_experiment();
  spec.eval_delay_seconds = 0;
  Experiment experiment(estimator, spec);
  experiment.train();
  meet();
  EXPECT_EQ(experiment.continuous_eval().evaluations, 1);
  EXPECT_EQ(experiment.continuous_eval_on_train_data().evaluations, 1);
  meet();
  EXPECT_THAT(evaluated_steps(run_dir + "/eval_continuous"), ElementsAre(12));
  EXPECT_THAT(evaluated_steps(run_dir + "/eval_continuous_on_train_data"), ElementsAre(12));
}

TEST(Experiment, WaitingForACheckpointHasAnEnd) {
  Estimator estimator(test_environment(), small_model, small_run(fresh_run_dir("nobody_trains")));
  ExperimentSpec spec = small_experiment();
  spec.eval_delay_seconds = 0;
  spec.most_wait_seconds = 0.5;
  try {
    Experiment(estimator, spec).continuous_eval();
    ADD_FAILURE() << "no error";
  } catch (const SharedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no new checkpoint"));
  }
}

TEST(Experiment, BestExportsOnlyWhatIsBetter) {
  const std::string run_dir = fresh_run_dir("best");
  Estimator estimator(test_environment(), small_model, small_run(run_dir));
  EvaluationOutcome evaluation;
  const std::vector<ExportStrategy> best{{.when = ExportStrategy::When::best, .name = "best"}};
  const auto exported = [&](std::int64_t step, double loss) {
    estimator.train(class_input(), {.max_steps = step});
    evaluation = estimator.evaluate(class_input("eval", 31));
    evaluation.loss = loss;
    export_evaluated(test_world(), run_dir, best, evaluation, false);
    meet();
    const std::size_t found = folders_in(run_dir + "/export/best").size();
    meet();  // before the next one is written
    return found;
  };
  EXPECT_EQ(exported(3, 0.5), 1U);
  EXPECT_EQ(exported(4, 0.5), 1U);  // equal is not better
  EXPECT_EQ(exported(5, 0.6), 1U);
  EXPECT_EQ(exported(6, 0.4), 2U);
  const std::vector<ExportStrategy> unknown{
      {.when = ExportStrategy::When::best, .name = "other", .metric = "recall"}};
  EXPECT_THROW(export_evaluated(test_world(), run_dir, unknown, evaluation, false), SharedError);
}

TEST(Experiment, TestTrainsOneStepAndEvaluates) {
  const std::string run_dir = fresh_run_dir("test");
  Estimator estimator(test_environment(), small_model, small_run(run_dir));
  const EvaluationOutcome evaluation = Experiment(estimator, small_experiment()).test();
  EXPECT_EQ(evaluation.global_step, 1);
  EXPECT_EQ(evaluation.samples, 31);
}

TEST(Experiment, NumbersThatMakeNoSenseAreRefused) {
  Estimator estimator(test_environment(), small_model, small_run(fresh_run_dir("nonsense")));
  const auto refused = [&](auto change) {
    ExperimentSpec spec = small_experiment();
    change(spec);
    EXPECT_THROW(Experiment(estimator, spec), SharedError);
  };
  refused([](ExperimentSpec& spec) { spec.train_steps = 0; });
  refused([](ExperimentSpec& spec) { spec.min_eval_frequency = -1; });
  refused([](ExperimentSpec& spec) { spec.eval_delay_seconds = -1; });
  refused([](ExperimentSpec& spec) { spec.exports = {{.name = "a"}, {.name = "a"}}; });
  refused([](ExperimentSpec& spec) { spec.exports = {{.name = "../a"}}; });
}

}  // namespace
}  // namespace lockstep
