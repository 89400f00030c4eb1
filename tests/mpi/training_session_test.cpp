// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A training whose loop is the program's: the bits of an Estimator on any number of ranks, its variables,
// files of variables, and how it ends.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>

#include "api/training_session.h"
#include "comm/shared_error.h"
#include "io/checkpoint_tools.h"
#include "io/event_reader.h"
#include "session/hooks/function_hooks.h"
#include "session/run_state.h"
#include "support/estimator_run.h"
#include "support/hook_run.h"

namespace lockstep {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string digest_of(const std::string& run_dir) {
  return find_checkpoint(test_world(), run_dir, "").header.digest;
}

template <typename Body>
std::string message_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

RunConfig until(const std::string& run_dir, std::int64_t steps) {
  RunConfig run = small_run(run_dir);
  run.train = {.batch_size = 16, .steps = steps};
  return run;
}

/// What an Estimator trains.
std::string estimator_digest(const std::string& name, std::int64_t steps) {
  const std::string run_dir = fresh_run_dir(name);
  Estimator(test_environment(), small_model, small_run(run_dir)).train(class_input(), {.max_steps = steps});
  return digest_of(run_dir);
}

TEST(TrainingSession, HasTheCheckpointOfTheSameTrainingByAnEstimator) {
  const std::string run_dir = fresh_run_dir("session");
  TrainingSession session =
      monitored_training_session(test_environment(), small_model, class_input(), until(run_dir, 9));
  EXPECT_EQ(session.restored_step(), std::nullopt);
  std::int64_t steps = 0;
  while (!session.should_stop()) EXPECT_EQ(session.run().step, ++steps);
  const TrainingOutcome outcome = session.finish();
  EXPECT_EQ(steps, 9);
  EXPECT_EQ(outcome.global_step, 9);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(outcome.finished);
  EXPECT_EQ(outcome.reason, "the run is at its end, step 9");
  EXPECT_EQ(digest_of(run_dir), estimator_digest("session_estimator", 9));
}

TEST(TrainingSession, HalvesOfAStepHaveItsBitsAlsoInTwoJobsAndOnTwoThreads) {
  const std::string run_dir = fresh_run_dir("halves");
  for (const std::int64_t until_step : {4, 9}) {
    RunConfig run = until(run_dir, until_step);
    run.general.threads = 2;
    TrainingSession session = monitored_training_session(test_environment(), small_model, class_input(), run);
    EXPECT_EQ(session.restored_step().value_or(0), until_step == 4 ? 0 : 4);
    while (!session.should_stop()) {
      Gradients& gradients = session.compute_gradients();
      EXPECT_EQ(gradients.of("logits/kernel").gradient.size(), 24U);
      const StepResult step = session.apply_gradients(gradients);
      EXPECT_EQ(step.step, session.global_step());
      EXPECT_GT(step.loss, 0);
    }
    session.finish();
  }
  EXPECT_EQ(digest_of(run_dir), estimator_digest("halves_estimator", 9));
}

TEST(TrainingSession, LayersAndSamplesMayBeValues) {
  const Features features;
  const EstimatorSpec spec = small_model(features, LabelColumns(), Mode::train, Params());
  const std::string run_dir = fresh_run_dir("values");
  TrainingSession session =
      monitored_training_session(test_environment(), spec, class_input()(), until(run_dir, 4));
  while (!session.should_stop()) session.run();
  session.finish();
  EXPECT_EQ(digest_of(run_dir), estimator_digest("values_estimator", 4));
}

TEST(TrainingSession, AChangeOfTheGradientsIsApplied) {
  const std::string run_dir = fresh_run_dir("changed");
  RunConfig run = until(run_dir, 3);
  TrainingSession session = monitored_training_session(test_environment(), small_model, class_input(), run);
  const std::vector<float> before(session.variable("logits/kernel").values.begin(),
                                  session.variable("logits/kernel").values.end());
  std::vector<float> other(session.variable("dense1/kernel").values.begin(),
                           session.variable("dense1/kernel").values.end());
  while (!session.should_stop()) {
    Gradients& gradients = session.compute_gradients();
    std::ranges::fill(gradients.of("logits/kernel").gradient, 0.0F);
    session.apply_gradients(gradients);
  }
  EXPECT_TRUE(std::ranges::equal(before, session.variable("logits/kernel").values));
  EXPECT_FALSE(std::ranges::equal(other, session.variable("dense1/kernel").values));
  session.finish();
  const std::string changed = digest_of(run_dir), plain = estimator_digest("changed_estimator", 3);
  if (test_world().rank() == 0) {  // which has the digests
    EXPECT_NE(changed, plain);
  }
}

TEST(TrainingSession, VariablesAreFoundByNameAndATypoNamesTheNearest) {
  TrainingSession session = monitored_training_session(test_environment(), small_model, class_input(),
                                                       until(fresh_run_dir("variables"), 3));
  EXPECT_EQ(session.variable("logits/kernel").shape, (Shape{8, 3}));
  EXPECT_EQ(session.variable("logits/bias").values.size(), 3U);
  EXPECT_THAT(
      message_of([&] { session.variable("logits/kernal"); }),
      AllOf(HasSubstr("there is no variable logits/kernal"), HasSubstr("Did you mean logits/kernel?")));
  session.set_variable("logits/bias", std::vector<float>{1, 2, 3});
  EXPECT_THAT(session.variable("logits/bias").values, testing::ElementsAre(1, 2, 3));
  EXPECT_THAT(message_of([&] { session.set_variable("logits/bias", std::vector<float>{1}); }),
              HasSubstr("has 3 values, and is set to 1"));
  EXPECT_EQ(session.evaluation("loss"), std::nullopt) << "there is no evaluation";
  while (!session.should_stop()) session.run();
  session.finish();
}

TEST(TrainingSession, EvaluationsAreFoundByName) {
  TrainingSession session = monitored_training_session(
      test_environment(), small_model, class_input(), until(fresh_run_dir("evaluated"), 2),
      {.eval_input = class_input("eval", 31), .eval_every_steps = 0});
  while (!session.should_stop()) session.run();
  EXPECT_EQ(session.evaluation("accuracy"), std::nullopt);
  const TrainingOutcome outcome = session.finish();
  EXPECT_EQ(outcome.evaluation.count("eval/accuracy"), 1U);
}

TEST(TrainingSession, SavesChosenVariablesUnderNamesAndTakesThemBack) {
  const std::string folder = fresh_run_dir("saver"), file = folder + "_weights.h5";
  const VariableChoice choice{.variables = {"logits/*"},
                              .names = {{"logits/", "head/"}, {"logits/bias", "b"}}};
  TrainingSession session =
      monitored_training_session(test_environment(), small_model, class_input(), until(folder, 3));
  while (!session.should_stop()) session.run();
  session.save_variables(file, choice);
  const std::vector<float> kernel(session.variable("logits/kernel").values.begin(),
                                  session.variable("logits/kernel").values.end());
  if (session.is_chief()) {
    const CheckpointFile written(file);
    ASSERT_EQ(written.entries().size(), 2U);
    EXPECT_EQ(written.entries()[0].path, "variables/b");
    EXPECT_EQ(written.entries()[1].path, "variables/head/kernel");
    EXPECT_TRUE(written.header().weights_only);
    EXPECT_EQ(written.header().global_step, 3);
  }
  session.set_variable("logits/kernel", std::vector<float>(24, 0.0F));
  session.restore_variables(file, choice);
  EXPECT_TRUE(std::ranges::equal(kernel, session.variable("logits/kernel").values));
  session.finish();

  // A new run begins with them.
  RunConfig run = until(fresh_run_dir("saver_next"), 3);
  run.warm_start = init_from(file, {{"logits/kernel", "head/kernel"}});
  run.warm_start->variables = {"logits/kernel"};
  TrainingSession next = monitored_training_session(test_environment(), small_model, class_input(), run);
  EXPECT_TRUE(std::ranges::equal(kernel, next.variable("logits/kernel").values));
  while (!next.should_stop()) next.run();
  next.finish();
  test_world().barrier("the file is read");
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
}

TEST(TrainingSession, APatternOrANameThatFitsNoVariableIsAnErrorOfAllRanks) {
  TrainingSession session = monitored_training_session(test_environment(), small_model, class_input(),
                                                       until(fresh_run_dir("patterns"), 3));
  EXPECT_THAT(message_of([&] { session.save_variables("/nowhere/a.h5", {.variables = {"logits/kernal"}}); }),
              AllOf(HasSubstr("no variable of the model matches 'logits/kernal'"),
                    HasSubstr("Did you mean logits/kernel?")));
  EXPECT_THAT(message_of([&] { session.run(); }), HasSubstr("an error has ended it"));
}

TEST(TrainingSession, OwnNumbersAreInTheEventFilesOfTheRun) {
  const std::string run_dir = fresh_run_dir("summaries");
  TrainingSession session =
      monitored_training_session(test_environment(), small_model, class_input(), until(run_dir, 2));
  while (!session.should_stop()) {
    session.run();
    session.add_scalar("own/number", 10.0 * static_cast<double>(session.global_step()));
    session.add_histogram("own/kernel", session.variable("logits/kernel").values);
    session.add_histogram("own/doubles", std::vector<double>{1, 2, std::numeric_limits<double>::quiet_NaN()});
  }
  session.finish();
  if (test_world().rank() != 0) return;
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(run_dir)) {
    if (entry.path().filename().string().find("tfevents") == std::string::npos) continue;
    EventReader reader(entry.path().string());
    while (const auto record = reader.next())
      for (const EventValue& value : record->values)
        if (value.tag.starts_with("own/"))
          found.push_back(fmt::format("{} {}{}", record->step, value.tag,
                                      value.tag == "own/number" ? fmt::format(" {}", value.number) : ""));
  }
  for (const std::string wanted :
       {"1 own/number 10", "2 own/number 20", "2 own/kernel", "1 own/doubles", "1 own/doubles/not_finite"})
    EXPECT_THAT(found, testing::Contains(wanted));
}

TEST(TrainingSession, StopsOfOneRankReachAll) {
  const int last = test_world().size() - 1;
  for (const bool for_good : {false, true}) {
    const std::string run_dir = fresh_run_dir("stops");
    std::optional<TrainingSession> first(  // it has the run directory until it is destroyed
        monitored_training_session(test_environment(), small_model, class_input(), until(run_dir, 9)));
    TrainingSession& session = *first;
    while (!session.should_stop())
      if (session.run().step == 3 && test_world().rank() == last) {
        if (for_good)
          session.stop_for_good("enough");
        else
          session.request_stop("enough");
      }
    const TrainingOutcome outcome = session.finish();
    EXPECT_EQ(outcome.global_step, 4);
    EXPECT_THAT(outcome.reason, testing::StartsWith("enough"));
    EXPECT_EQ(outcome.finished, for_good);
    first.reset();
    TrainingSession again =
        monitored_training_session(test_environment(), small_model, class_input(), until(run_dir, 9));
    EXPECT_EQ(again.should_stop(), for_good);
    while (!again.should_stop()) again.run();
    const TrainingOutcome second = again.finish();
    EXPECT_EQ(second.global_step, for_good ? 4 : 9);
    EXPECT_THAT(second.reason, HasSubstr(for_good ? "enough" : "step 9"));
  }
}

TEST(TrainingSession, MisuseIsAnErrorWithAdvice) {
  TrainingSession session = monitored_training_session(test_environment(), small_model, class_input(),
                                                       until(fresh_run_dir("misuse"), 2));
  EXPECT_THAT(message_of([&] { session.finish(); }), HasSubstr("before should_stop() says true"));
  Gradients& gradients = session.compute_gradients();
  session.apply_gradients(gradients);
  EXPECT_THAT(message_of([&] { session.apply_gradients(gradients); }), HasSubstr("not those of this step"));
  while (!session.should_stop()) session.run();
  EXPECT_THAT(message_of([&] { session.run(); }), HasSubstr("no step follows"));
  EXPECT_THAT(message_of([&] { session.compute_gradients(); }), HasSubstr("no step follows"));
  session.finish();
  EXPECT_THAT(message_of([&] { session.finish(); }), HasSubstr("has ended"));
}

/// Says rollback at one step, once.
class GoesBack final : public Hook {
 public:
  GoesBack(std::int64_t step, Verdict verdict) : Hook("goes_back"), step_(step), verdict_(verdict) {}
  void begin(HookContext& context) override { context.keep_setbacks(*this, true); }
  bool decides_update() const override { return true; }
  Verdict before_update(HookContext&, const StepResult& result) override {
    if (done_ || result.step != step_) return Verdict::update;
    done_ = true;
    return verdict_;
  }

 private:
  std::int64_t step_;
  Verdict verdict_;
  bool done_ = false;
};

TEST(TrainingSession, WhereAHookDecidesAgainstTheStepTheGradientsAreDropped) {
  for (const Verdict verdict : {Verdict::skip, Verdict::rollback}) {
    const auto hook = [=] { return std::make_unique<GoesBack>(3, verdict); };
    const std::string run_dir = fresh_run_dir("dropped"), other = fresh_run_dir("dropped_whole");
    RunConfig run = until(run_dir, 6);
    run.checkpoint.every_steps = 1;
    run.checkpoint.background = false;
    TrainingSession session =
        monitored_training_session(test_environment(), small_model, class_input(), run, {.hooks = {hook}});
    while (!session.should_stop()) session.apply_gradients(session.compute_gradients());
    EXPECT_EQ(session.finish().global_step, 6);
    run.model_dir = other;
    Estimator(test_environment(), small_model, run).train(class_input(), {.hooks = {hook}});
    EXPECT_EQ(digest_of(run_dir), digest_of(other));
  }
}

}  // namespace
}  // namespace lockstep
