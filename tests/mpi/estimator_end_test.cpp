// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How calls of an Estimator end, and what its structs mean: the reason of each end, checkpoints at the times
// that are given and no others, mistakes that are found at the start, predictions of samples without labels.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "api/formula.h"
#include "comm/shared_error.h"
#include "model/losses/formula_loss.h"
#include "run/setup/run_context.h"
#include "session/hooks/early_stopping_hook.h"
#include "session/run_state.h"
#include "support/estimator_run.h"
#include "support/hook_run.h"
#include "support/shared_error_text.h"
#include "train/evaluation.h"

namespace lockstep {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Without the checkpoints of small_run().
RunConfig plain_run() {
  return {.model_dir = "", .train = {.batch_size = 16}, .general = {.seed = 3, .shards = 4, .threads = 1}};
}

TrainingOutcome train(const std::string& run_dir, const TrainOptions& options, RunConfig run = plain_run()) {
  run.model_dir = run_dir;
  return Estimator(test_environment(), small_model, run).train(class_input(), options);
}

HookFunction at(const std::string& method, int rank, std::int64_t step, At::Function function) {
  return [=] { return std::make_unique<At>(method, rank, step, function); };
}

TEST(TrainingEnd, SaysWhyInEachWayThatATrainingEnds) {
  const int last = test_world().size() - 1;
  EXPECT_EQ(train(fresh_run_dir("end"), {.max_steps = 2}).reason, "the run is at its end, step 2");
  RunConfig epochs = plain_run();
  epochs.train.epochs = 2;
  EXPECT_EQ(train(fresh_run_dir("end"), {}, epochs).reason, "the run is at its end, 2 epochs");
  const std::string parts = fresh_run_dir("end");
  EXPECT_EQ(train(parts, {.max_steps = 9, .stop_at = 2}).reason, "the job was to end at step 2");
  EXPECT_EQ(train(parts, {.max_steps = 9, .stop_at = 2}).reason, "the run is at step 2 already");
  EXPECT_THAT(train(parts, {.max_steps = 2}).reason, HasSubstr("this run is finished: step 2"));
  // By hooks: on all ranks, on one rank, without a reason.
  EXPECT_EQ(train(fresh_run_dir("end"),
                  {.max_steps = 9,
                   .hooks = {at("after_run", -1, 3, [](HookContext& c) { c.stop_now("it is enough"); })}})
                .reason,
            "it is enough (hook at_after_run)");
  EXPECT_EQ(train(fresh_run_dir("end"),
                  {.max_steps = 9, .hooks = {at("after_run", -1, 3, [](HookContext& c) { c.stop_now(); })}})
                .reason,
            "hook at_after_run ended it");
  const TrainingOutcome requested =
      train(fresh_run_dir("end"), {.max_steps = 9, .hooks = {at("after_run", last, 3, [](HookContext& c) {
                                                     c.request_stop("the sensor is off");
                                                   })}});
  EXPECT_THAT(requested.reason, testing::StartsWith("the sensor is off (hook at_after_run)"));
  EXPECT_EQ(requested.global_step, 4);
  // By an interruption.
  const TrainingOutcome interrupted = train(
      fresh_run_dir("end"),
      {.max_steps = 9, .hooks = {at("begin", last, -1, [](HookContext& c) {
                         c.interruptions().add([&c] {
                           return c.global_step() < 2
                                      ? InterruptionRequest{}
                                      : InterruptionRequest{Interruption::requeue,
                                                            static_cast<int>(InterruptionReason::time_limit)};
                         });
                       })}});
  EXPECT_EQ(interrupted.reason, "the time of the job is nearly over");
  EXPECT_EQ(interrupted.exit_code, 75);
}

TEST(TrainingEnd, AStopForGoodOfOneRankStopsAllWithinAStepAndNamesItsHook) {
  const int last = test_world().size() - 1;
  for (const char* method : {"before_run", "before_update", "after_run"}) {
    const std::string run_dir = fresh_run_dir("for_good");
    const TrainingOutcome outcome =
        train(run_dir,
              {.max_steps = 9,
               .hooks = {at(method, last, 3, [](HookContext& c) { c.stop_for_good("the loss is low"); })}});
    EXPECT_EQ(outcome.global_step, std::string_view(method) == "before_update" ? 5 : 4) << method;
    EXPECT_TRUE(outcome.finished);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_THAT(outcome.reason, testing::StartsWith(fmt::format("the loss is low (hook at_{})", method)));
    if (last > 0) {
      EXPECT_THAT(outcome.reason, HasSubstr(fmt::format("rank {}", last)));
    }
    const TrainingOutcome again = train(run_dir, {.max_steps = 9});
    EXPECT_EQ(again.global_step, outcome.global_step) << "it is finished";
    EXPECT_THAT(again.reason, HasSubstr("the loss is low"));
  }
}

std::vector<std::string> checkpoints_of(const std::string& run_dir) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(run_dir + "/checkpoints"))
    names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

TEST(CheckpointTimes, AreTheGivenOnesAndNoOthers) {
  // An epoch has 4 steps of 16 samples.
  RunConfig run = plain_run();
  run.checkpoint = {.every_steps = 3, .keep = 0, .background = false};
  const std::string steps = fresh_run_dir("times_steps"), epochs = fresh_run_dir("times_epochs"),
                    both = fresh_run_dir("times_both"), seconds = fresh_run_dir("times_seconds");
  train(steps, {.max_steps = 10}, run);
  run.checkpoint = {.keep = 0, .background = false};
  train(epochs, {.max_steps = 10}, run);
  run.checkpoint = {.every_steps = 3, .every_epochs = 2, .keep = 0, .background = false};
  train(both, {.max_steps = 10}, run);
  run.checkpoint = {.every_seconds = 1e6, .keep = 0, .background = false};
  train(seconds, {.max_steps = 10}, run);
  if (test_world().rank() != 0) return;
  EXPECT_THAT(checkpoints_of(steps), testing::ElementsAre(testing::EndsWith("3"), testing::EndsWith("6"),
                                                          testing::EndsWith("9"), testing::EndsWith("10")));
  EXPECT_EQ(checkpoints_of(epochs).size(), 3U) << "4, 8, and the last one";
  EXPECT_EQ(checkpoints_of(both).size(), 5U) << "3, 6, 8, 9, 10";
  EXPECT_EQ(checkpoints_of(seconds).size(), 1U);
}

TEST(EvaluationTimes, AreTheGivenOnesAndNoOthers) {
  Estimator estimator(test_environment(), small_model, [] {
    RunConfig run = small_run(fresh_run_dir("eval_times"));
    run.train.steps = 8;
    run.eval.every_steps = 3;
    return run;
  }());
  const Config config = estimator.config(Mode::train, class_input(), class_input("eval"));
  EXPECT_EQ(config.eval.every_steps, 3);
  EXPECT_EQ(config.eval.every_epochs, 0);
}

ModelFunction with_metric(const std::string& name) {
  return [=](const Features& features, const LabelColumns& labels, Mode mode, const Params& params) {
    EstimatorSpec spec = small_model(features, labels, mode, params);
    spec.eval_metrics = {Choice{name}};
    return spec;
  };
}

TEST(Mistakes, AMetricThatDoesNotExistIsAnErrorOfTheTrainingWithoutAnEvaluation) {
  Estimator estimator(test_environment(), with_metric("top_3_acuracy"), small_run(fresh_run_dir("metric")));
  EXPECT_THAT(shared_error([&] { estimator.train(class_input(), {.max_steps = 2}); }),
              HasSubstr("top_3_acuracy"));
  Estimator right(test_environment(), with_metric("confusion_matrix"), small_run(fresh_run_dir("metric")));
  EXPECT_EQ(right.train(class_input(), {.max_steps = 2}).global_step, 2);
}

TEST(Mistakes, AHookOfTheProgramIsCheckedBeforeTheFirstStep) {
  Estimator estimator(test_environment(), small_model, small_run(fresh_run_dir("hook_metric")));
  int steps = 0;
  EXPECT_THAT(shared_error([&] {
                estimator.train(class_input(),
                                {.max_steps = 5,
                                 .eval_input = class_input("eval"),
                                 .hooks = {at("before_run", -1, -1, [&](HookContext&) { ++steps; }), [] {
                                             return std::make_unique<StopWithoutProgressHook>(
                                                 "patience", "lss", false, 100, 0, 0);
                                           }}});
              }),
              HasSubstr("lss"));
  EXPECT_EQ(steps, 0);
}

TEST(Mistakes, AnEvaluationWithoutAnEvaluationSetIsAnError) {
  RunConfig run = small_run(fresh_run_dir("no_eval"));
  run.train.steps = 2;
  const Config config = Estimator(test_environment(), small_model, run).config(Mode::train, class_input());
  RunContext context(test_environment(), config, {}, {.train = true, .eval = true});
  EXPECT_EQ(context.eval_data(), nullptr);
  EXPECT_THAT(
      shared_error([&] {
        shared([&] { Evaluation(context.executor_context(), context.control(), context.eval_set(), 16); });
      }),
      HasSubstr("no evaluation set"));
}

TEST(Predict, TakesSamplesWithoutLabelsWithTheModelOfTraining) {
  Estimator estimator(test_environment(), small_model, small_run(fresh_run_dir("unlabelled")));
  estimator.train(class_input(), {.max_steps = 4});
  const InputFunction unlabelled = [] {
    SampleArrays samples = class_samples(37);
    samples.classes.clear();
    return Input::arrays("unlabelled", std::move(samples));
  };
  const auto with = estimator.predict(class_input("eval", 37)), without = estimator.predict(unlabelled);
  EXPECT_EQ(without->size(), 37);
  while (with->next()) {
    ASSERT_TRUE(without->next());
    EXPECT_TRUE(std::ranges::equal(with->values(), without->values()));
  }
  EXPECT_THAT(shared_error([&] { estimator.evaluate(unlabelled); }), HasSubstr("no labels"));
}

/// Samples with a number as their label.
Input numbers() {
  SampleArrays samples = class_samples();
  for (const std::int32_t label : samples.classes)
    samples.targets.push_back(static_cast<float>(label) - 0.5F);
  samples.classes.clear();
  samples.target_columns = 1;
  return Input::arrays("numbers", std::move(samples));
}

const LossEntry kOwnSquare = loss_formula("own_square", "for this test", [](auto output, auto label) {
  return (output - label) * (output - label);
});

TEST(FormulaLoss, TrainsAsTheBuiltInLossOnAnyNumberOfRanksAndThreads) {
  std::vector<std::string> digests;
  for (const int threads : {0, 1, 2}) {  // 0: the built-in loss
    const auto model = [=](const Features& features, const LabelColumns& labels, Mode, const Params&) {
      const LayerOutput y = layers::dense(layers::tanh(layers::dense(features, {.units = 5})), {.units = 1});
      return EstimatorSpec{.loss = threads == 0 ? losses::mean_squared_error(labels, y)
                                                : losses::formula(labels, y, kOwnSquare),
                           .train_op = {.optimizer = optimizers::adam({.learning_rate = 0.01})}};
    };
    RunConfig run = small_run(fresh_run_dir("formula"));
    run.general.threads = std::max(threads, 1);
    Estimator estimator(test_environment(), model, run);
    estimator.train(numbers, {.max_steps = 8});
    digests.push_back(find_checkpoint(test_world(), run.model_dir, "").header.digest);
    EXPECT_GT(estimator.evaluate(numbers).loss, 0);
  }
  EXPECT_EQ(digests[1], digests[0]);
  EXPECT_EQ(digests[2], digests[0]);
}

}  // namespace
}  // namespace lockstep
