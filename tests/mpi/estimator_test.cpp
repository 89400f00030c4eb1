// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Estimators on any number of ranks: how long they train, what evaluations and predictions give, samples of
// the program, and the errors of their functions.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>

#include "comm/shared_error.h"
#include "config/params.h"
#include "core/error.h"
#include "io/checkpoint.h"
#include "run/sections/config.h"
#include "session/hooks/checkpoint_saver_hook.h"
#include "session/run_state.h"
#include "support/estimator_run.h"
#include "support/hook_run.h"
#include "support/shared_error_text.h"

namespace lockstep {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string digest_of(const std::string& run_dir) {
  return find_checkpoint(test_world(), run_dir, "").header.digest;
}

TEST(Estimator, StepsAreAddedAndMaxStepsAreNot) {
  Estimator estimator(test_environment(), small_model, small_run(fresh_run_dir("steps")));
  EXPECT_EQ(estimator.train(class_input(), {.steps = 5}).global_step, 5);
  EXPECT_EQ(estimator.train(class_input(), {.steps = 5}).global_step, 10);
  EXPECT_EQ(estimator.train(class_input(), {.max_steps = 12}).global_step, 12);
  const TrainingOutcome again = estimator.train(class_input(), {.max_steps = 12});
  EXPECT_EQ(again.global_step, 12);
  EXPECT_THAT(again.reason, HasSubstr("12"));
}

TEST(Estimator, TrainingInPartsHasTheBitsOfTrainingAtOnce) {
  const std::string parts = fresh_run_dir("parts"), whole = fresh_run_dir("whole");
  Estimator first(test_environment(), small_model, small_run(parts));
  first.train(class_input(), {.steps = 3});
  first.train(class_input(), {.steps = 4});
  Estimator other(test_environment(), small_model, small_run(whole));
  other.train(class_input(), {.max_steps = 7});
  EXPECT_EQ(digest_of(parts), digest_of(whole));
}

TEST(Estimator, EvaluationBesideTrainingIsThatAfterwards) {
  const std::string run_dir = fresh_run_dir("evaluate");
  Estimator estimator(test_environment(), small_model, small_run(run_dir));
  const TrainingOutcome trained =
      estimator.train(class_input(), {.max_steps = 8, .eval_input = class_input("eval", 31)});
  const EvaluationOutcome result = estimator.evaluate(class_input("eval", 31), {.name = "again"});
  EXPECT_EQ(result.samples, 31);
  EXPECT_EQ(result.global_step, 8);
  EXPECT_EQ(trained.evaluation.at("eval/loss"), result.loss);
  EXPECT_EQ(trained.evaluation.at("eval/accuracy"), result.value("accuracy"));
  EXPECT_GT(result.value("accuracy"), 0.4);
  if (test_world().rank() == 0) {
    EXPECT_TRUE(std::filesystem::exists(run_dir + "/eval_again"));
  }
  EXPECT_THROW(static_cast<void>(result.value("recall")), Error);
}

TEST(Estimator, ExportsTheNewestOrTheBestCheckpointAsARunDirectoryForEvaluations) {
  const std::string run_dir = fresh_run_dir("export"), elsewhere = fresh_run_dir("elsewhere");
  RunConfig run = small_run(run_dir);
  run.checkpoint.every_steps = 2;
  run.checkpoint.keep_best = 1;
  run.checkpoint.keep = 1;
  // The same in all evaluations, so the first one is the best.
  run.checkpoint.best_metric = "percentage_below";
  run.checkpoint.best_mode = "max";
  run.train = {.batch_size = 16, .steps = 8};
  const ModelFunction counted = [](const Features& features, const LabelColumns& labels, Mode mode,
                                   const Params& params) {
    EstimatorSpec spec = small_model(features, labels, mode, params);
    spec.eval_metrics = {metrics::percentage_below({.threshold = 1e6})};
    return spec;
  };
  Estimator estimator(test_environment(), counted, run);
  EXPECT_THAT(shared_error([&] {
                Estimator(test_environment(), small_model, small_run(fresh_run_dir("empty"))).export_model();
              }),
              HasSubstr("no checkpoint to export"));
  estimator.train(class_input(), {.eval_input = class_input("eval", 31), .eval_every_steps = 2});
  const std::string newest = estimator.export_model(),
                    best = estimator.export_model({.folder = elsewhere, .best = true});
  EXPECT_EQ(newest, run_dir + "/export/model/step-00000008");
  EXPECT_EQ(best, elsewhere + "/step-00000002");
  EXPECT_EQ(estimator.export_model(), newest);  // it is there
  for (const auto& [word, step] : {std::pair("best", 2), std::pair("last", 8), std::pair("", 8)})
    EXPECT_EQ(estimator.evaluate(class_input("eval", 31), {.checkpoint = word}).global_step, step) << word;
  // An estimator with the export as its run directory evaluates as one with the run's.
  RunConfig of_export = run;
  of_export.model_dir = newest;
  of_export.checkpoint.keep_best = 0;
  Estimator served(test_environment(), counted, of_export);
  EXPECT_EQ(served.evaluate(class_input("eval", 31)).loss, estimator.evaluate(class_input("eval", 31)).loss);
  EXPECT_EQ(estimator.evaluate(class_input("eval", 31), {.checkpoint = best + "/weights.h5"}).global_step, 2);
  EXPECT_THAT(shared_error([&] { served.train(class_input(), {.steps = 1}); }), HasSubstr("weights only"));
  // Another run's export of the same step is no reason to keep this one.
  RunConfig other = of_export;
  other.model_dir = fresh_run_dir("other");
  other.general.seed = 4;
  Estimator second(test_environment(), small_model, other);
  second.train(class_input(), {.max_steps = 2});
  EXPECT_THAT(shared_error([&] { second.export_model({.folder = elsewhere}); }), HasSubstr("other weights"));
  Estimator third(test_environment(), small_model, other);
  EXPECT_THAT(shared_error([&] { third.export_model({.checkpoint = "x.h5", .best = true}); }),
              HasSubstr("best"));
  Estimator fourth(test_environment(), small_model, other);
  EXPECT_THAT(shared_error([&] { fourth.export_model({.best = true}); }),
              HasSubstr("no checkpoint has a metric"));
}

TEST(Estimator, PredictsEachSampleOnceInOrder) {
  const std::string run_dir = fresh_run_dir("predict");
  Estimator estimator(test_environment(), small_model, small_run(run_dir));
  estimator.train(class_input(), {.max_steps = 4});
  const auto stream = estimator.predict(class_input("eval", 37));
  EXPECT_EQ(stream->size(), 37);
  std::vector<float> rows;
  std::int64_t samples = 0;
  while (stream->next()) {
    EXPECT_EQ(stream->first(), samples);
    samples += stream->count();
    rows.insert(rows.end(), stream->values().begin(), stream->values().end());
  }
  EXPECT_EQ(samples, 37);
  if (test_world().rank() != 0) {
    EXPECT_TRUE(rows.empty());
    return;
  }
  ASSERT_EQ(rows.size(), 37U * 3);
  for (std::size_t i = 0; i < 37; ++i) EXPECT_NEAR(rows[3 * i] + rows[3 * i + 1] + rows[3 * i + 2], 1, 1e-6);
}

TEST(Estimator, PredictsNamedOutputsOfLayers) {
  const auto model = [](const Features& features, const LabelColumns& labels, Mode mode,
                        const Params& params) {
    if (mode != Mode::predict) return small_model(features, labels, mode, params);
    const LayerOutput hidden = layers::relu(layers::dense(features, {.units = 8}));
    const LayerOutput logits = layers::dense(hidden, {.name = "logits", .units = 3});
    return EstimatorSpec{.predictions = {{"hidden", hidden}, {"scores", logits}}};
  };
  const std::string run_dir = fresh_run_dir("named");
  Estimator estimator(test_environment(), model, small_run(run_dir));
  estimator.train(class_input(), {.max_steps = 4});
  const auto named = estimator.predict(class_input());
  Estimator plain(test_environment(), small_model, small_run(run_dir));
  const auto classes = plain.predict(class_input());
  ASSERT_TRUE(named->next() && classes->next());
  EXPECT_THAT(named->names(), ElementsAre("hidden", "scores"));
  EXPECT_EQ(named->shape(0), Shape{8});
  EXPECT_THROW(static_cast<void>(named->values("other")), Error);
  if (test_world().rank() != 0) return;
  EXPECT_EQ(named->values("hidden").size(), 16U * 8);
  const std::span<const float> scores = named->values("scores");
  double sum = 0;  // the softmax of the scores is what the loss makes of them
  for (std::size_t k = 0; k < 3; ++k) sum += std::exp(static_cast<double>(scores[k]));
  EXPECT_NEAR(classes->values()[0], std::exp(static_cast<double>(scores[0])) / sum, 1e-6);
}

TEST(Estimator, ComputedSamplesHaveTheBitsOfTheSameArrays) {
  const std::string arrays = fresh_run_dir("arrays"), computed = fresh_run_dir("computed");
  Estimator(test_environment(), small_model, small_run(arrays)).train(class_input(), {.max_steps = 9});
  const SampleArrays all = class_samples();
  const auto compute = [&] {
    return Input::computed(
        "train", {.size = 60,
                  .shape = Shape{6},
                  .has_classes = true,
                  .fill = [&](std::int64_t sample, float* features, std::int32_t* label, float* /*targets*/) {
                    std::copy_n(&all.features[static_cast<std::size_t>(6 * sample)], 6, features);
                    *label = all.classes[static_cast<std::size_t>(sample)];
                  }});
  };
  Estimator(test_environment(), small_model, small_run(computed)).train(compute, {.max_steps = 9});
  EXPECT_EQ(digest_of(arrays), digest_of(computed));
}

class CountingListener final : public CheckpointSaverListener {
 public:
  explicit CountingListener(std::vector<std::string>& calls) : calls_(calls) {}
  void before_save(HookContext&, std::int64_t step) override {
    calls_.push_back(fmt::format("before {}", step));
  }
  bool after_save(HookContext&, std::int64_t step, const std::string&) override {
    calls_.push_back(fmt::format("after {}", step));
    return false;
  }
  void end(HookContext&, std::int64_t step) override { calls_.push_back(fmt::format("end {}", step)); }

 private:
  std::vector<std::string>& calls_;
};

TEST(Estimator, ListenersSeeSavesAndInitFnBeginsNewRunsOnly) {
  const std::string run_dir = fresh_run_dir("listener");
  std::vector<std::string> calls;
  int initialised = 0;
  const TrainOptions options{.steps = 3,
                             .saving_listeners = {[&] { return std::make_unique<CountingListener>(calls); }},
                             .init_fn = [&](VariableStore& variables) {
                               ++initialised;
                               EXPECT_GT(variables.variables().size(), 0U);
                             }};
  RunConfig run = small_run(run_dir);
  run.checkpoint.background = false;
  Estimator estimator(test_environment(), small_model, run);
  estimator.train(class_input(), options);
  EXPECT_EQ(initialised, 1);
  if (test_world().rank() == 0) {
    EXPECT_THAT(calls, testing::Contains("after 3"));
    EXPECT_EQ(calls.back(), "end 3");
  } else {
    EXPECT_TRUE(calls.empty());
  }
  estimator.train(class_input(), options);
  EXPECT_EQ(initialised, 1);
}

TEST(Estimator, AHookThatThrowsInAnyMethodEndsTheCallOnAllRanks) {
  const int last = test_world().size() - 1;
  for (const char* method :
       {"begin", "after_create_session", "before_run", "before_update", "after_run", "end"}) {
    Estimator estimator(test_environment(), small_model, small_run(fresh_run_dir("throws")));
    const auto train = [&] {
      estimator.train(
          class_input(),
          {.max_steps = 3, .hooks = {[&] {
                             return std::make_unique<At>(
                                 method, last, std::string_view(method) == "end" ? 3 : -1,
                                 [](HookContext&) { throw Error(ErrorKind::data, "the sensor is broken"); });
                           }}});
    };
    EXPECT_THAT(shared_error(train), HasSubstr("the sensor is broken")) << method;
    EXPECT_THAT(shared_error(train), AllOf(HasSubstr("after an error"), HasSubstr("the sensor is broken")))
        << method;
  }
}

TEST(Estimator, AnotherModelOnOneRankIsNamed) {
  if (test_world().size() == 1) GTEST_SKIP() << "needs several ranks";
  const auto model = [](const Features& features, const LabelColumns& labels, Mode mode,
                        const Params& params) {
    if (test_world().rank() == 0) return small_model(features, labels, mode, params);
    const LayerOutput logits = layers::dense(features, {.name = "logits", .units = 3});
    return EstimatorSpec{.loss = losses::softmax_cross_entropy(labels, logits),
                         .train_op = {.optimizer = optimizers::adam()}};
  };
  Estimator estimator(test_environment(), model, small_run(fresh_run_dir("other_model")));
  EXPECT_THAT(shared_error([&] { estimator.train(class_input(), {.max_steps = 3}); }),
              AllOf(HasSubstr("configuration"), HasSubstr("rank")));
}

TEST(Estimator, OtherSamplesOnOneRankAreNamed) {
  if (test_world().size() == 1) GTEST_SKIP() << "needs several ranks";
  const auto input = [] {
    SampleArrays samples = class_samples();
    if (test_world().rank() == 1) samples.features[5] += 1;
    return Input::arrays("train", std::move(samples));
  };
  Estimator estimator(test_environment(), small_model, small_run(fresh_run_dir("other_samples")));
  EXPECT_THAT(shared_error([&] { estimator.train(input, {.max_steps = 3}); }), HasSubstr("training data"));
}

TEST(Estimator, AnInputOfAnotherShapeIsRefused) {
  Estimator estimator(test_environment(), small_model, small_run(fresh_run_dir("shape")));
  estimator.train(class_input(), {.max_steps = 3});
  const auto wide = [] {
    SampleArrays samples = class_samples();
    samples.shape = Shape{12};
    samples.classes.resize(30);
    return Input::arrays("wide", std::move(samples));
  };
  EXPECT_THAT(shared_error([&] { estimator.evaluate(wide); }),
              HasSubstr("training samples are 6, evaluation samples 12"));
}

TEST(Estimator, AModelFunctionThatThrowsOnOneRankEndsTheCallOnAll) {
  const int last = test_world().size() - 1;
  const auto model = [&](const Features& features, const LabelColumns& labels, Mode mode,
                         const Params& params) {
    if (test_world().rank() == last) throw std::runtime_error("no such table");
    return small_model(features, labels, mode, params);
  };
  Estimator estimator(test_environment(), model, small_run(fresh_run_dir("model_throws")));
  EXPECT_THAT(shared_error([&] { estimator.train(class_input(), {.max_steps = 3}); }),
              HasSubstr("no such table"));
}

TEST(Estimator, MistakesOfAProgramAreErrorsWithAdvice) {
  const auto message = [](const ModelFunction& model, const TrainOptions& options,
                          const InputFunction& input) {
    Estimator estimator(test_environment(), model, small_run(fresh_run_dir("mistakes")));
    return shared_error([&] { estimator.train(input, options); });
  };
  EXPECT_THAT(message(small_model, {.steps = 3, .max_steps = 4}, class_input()), HasSubstr("one of them"));
  EXPECT_THAT(message(small_model, {.steps = 0}, class_input()), HasSubstr("no steps"));
  EXPECT_THAT(message(small_model, {.steps = 3}, {}), HasSubstr("no input function"));
  const auto modes = [](const Features& features, const LabelColumns& labels, Mode mode, const Params&) {
    const LayerOutput logits = layers::dense(features, {.units = mode == Mode::train ? 3 : 4});
    return EstimatorSpec{.loss = losses::softmax_cross_entropy(labels, logits),
                         .train_op = {.optimizer = optimizers::adam()}};
  };
  EXPECT_THAT(
      message(modes, {.steps = 3, .eval_input = class_input()}, class_input()),
      AllOf(HasSubstr("two models"), HasSubstr("'units: 3' for training, 'units: 4' for evaluation")));
  const auto no_train_op = [](const Features& features, const LabelColumns& labels, Mode, const Params&) {
    return EstimatorSpec{.loss =
                             losses::softmax_cross_entropy(labels, layers::dense(features, {.units = 3}))};
  };
  EXPECT_THAT(message(no_train_op, {.steps = 3}, class_input()), HasSubstr("train_op"));
  const auto range = [](const Features& features, const LabelColumns& labels, Mode, const Params&) {
    return EstimatorSpec{.loss = losses::softmax_cross_entropy(labels, layers::dense(features, {.units = 0})),
                         .train_op = {.optimizer = optimizers::adam()}};
  };
  EXPECT_THAT(message(range, {.steps = 3}, class_input()), AllOf(HasSubstr("units"), HasSubstr("16777216")));
  const auto few = [] {
    SampleArrays samples = class_samples();
    samples.classes.pop_back();
    return Input::arrays("few", std::move(samples));
  };
  EXPECT_THAT(message(small_model, {.steps = 3}, few), HasSubstr("59 labels for 60 samples"));
}

TEST(Estimator, OfAConfigurationTakesItsSamplesAndTheStepsOfTheCall) {
  const std::string run_dir = fresh_run_dir("of_configuration");
  Estimator program(test_environment(), small_model, small_run(run_dir + "_program"));
  const Config config =
      config_from_text(program.configuration(Mode::train, class_input(), class_input("eval", 31)) +
                           "\neval: {every_epochs: 0}\n",
                       "test", std::vector<std::string>{"train.steps=4"});
  Estimator estimator(test_environment(), config, run_dir);
  EXPECT_EQ(estimator.train(InputFunction(), {.max_steps = 6, .eval_every_steps = 2}).global_step, 6);
  EXPECT_EQ(estimator.train(InputFunction(), {.steps = 3}).global_step, 9);
  EXPECT_EQ(estimator.evaluate().samples, 31);
  EXPECT_EQ(estimator.predict({})->size(), 31);
  EXPECT_THAT(shared_error([&] { estimator.evaluate(class_input()); }), HasSubstr("has an input function"));
}

TEST(Estimator, EvaluatesAndPredictsWithoutAWayToTrain) {
  const auto model = [](const Features& features, const LabelColumns& labels, Mode mode,
                        const Params& params) {
    EstimatorSpec spec = small_model(features, labels, mode, params);
    if (mode != Mode::train) spec.train_op = {};
    return spec;
  };
  RunConfig run = small_run(fresh_run_dir("no_way"));
  run.train = {.batch_size = 16};
  Estimator estimator(test_environment(), model, run), other(test_environment(), small_model, run);
  estimator.train(class_input(), {.max_steps = 4});
  const Config config = estimator.config(Mode::evaluate, class_input("eval", 31));
  EXPECT_EQ(config.root.find("optimizer"), nullptr);
  EXPECT_FALSE(config.can_train());
  EXPECT_EQ(estimator.evaluate(class_input("eval", 31)).loss, other.evaluate(class_input("eval", 31)).loss);
  EXPECT_EQ(estimator.predict(class_input("eval", 31))->size(), 31);
}

TEST(Estimator, AMistakeIsNamedWithThePathOfItsOption) {
  const auto model = [](const Features& features, const LabelColumns& labels, Mode mode,
                        const Params& params) {
    EstimatorSpec spec = small_model(features, labels, mode, params);
    spec.train_op.optimizer = optimizers::adam({.learning_rate = 0.1, .beta1 = 2});
    return spec;
  };
  Estimator estimator(test_environment(), model, small_run(fresh_run_dir("path")));
  EXPECT_THAT(shared_error([&] { estimator.train(class_input(), {.max_steps = 2}); }),
              HasSubstr("the estimator's configuration, optimizer.adam.beta1"));
}

TEST(Estimator, NothingToEvaluateOrToPredictWith) {
  Estimator estimator(test_environment(), small_model, small_run(fresh_run_dir("nothing")));
  EXPECT_THAT(shared_error([&] { estimator.evaluate(class_input()); }), HasSubstr("no checkpoint"));
  Estimator other(test_environment(), small_model, small_run(fresh_run_dir("nothing")));
  EXPECT_THAT(shared_error([&] { other.predict(class_input()); }), HasSubstr("no checkpoint"));
}

}  // namespace
}  // namespace lockstep
