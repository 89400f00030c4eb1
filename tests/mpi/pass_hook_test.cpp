// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Hooks of evaluations and predictions on any number of ranks: when they are called, and what their errors
// do.
#include "run/jobs/pass_hook.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "comm/shared_error.h"
#include "config/params.h"
#include "support/estimator_run.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Calls = std::vector<std::string>;

class NotingHook final : public PassHook {
 public:
  explicit NotingHook(Calls& calls) : calls_(calls) {}
  void begin(std::int64_t samples) override { calls_.push_back(fmt::format("begin {}", samples)); }
  void before_batch(const PassBatch& batch) override {
    EXPECT_EQ(batch.rank, test_world().rank());
    calls_.push_back(fmt::format("before {} {}+{}", batch.number, batch.first, batch.count));
  }
  void after_batch(const PassBatch& batch, const PredictionStream* predictions) override {
    calls_.push_back(fmt::format("after {}", batch.number));
    if (predictions == nullptr) return;
    EXPECT_EQ(predictions->first(), batch.first);
    EXPECT_EQ(predictions->count(), batch.count);
    EXPECT_EQ(predictions->values().empty(), test_world().rank() != 0);
  }
  void end(const EvaluationOutcome* outcome) override {
    calls_.push_back(outcome != nullptr ? fmt::format("end {}", outcome->samples) : "end");
  }

 private:
  Calls& calls_;
};

/// Throws in one method on the last rank.
class ThrowingHook final : public PassHook {
 public:
  explicit ThrowingHook(std::string where) : where_(std::move(where)) {}
  void begin(std::int64_t) override { fail("begin"); }
  void before_batch(const PassBatch& batch) override { fail(fmt::format("before {}", batch.number)); }
  void after_batch(const PassBatch& batch, const PredictionStream*) override {
    fail(fmt::format("after {}", batch.number));
  }
  void end(const EvaluationOutcome*) override { fail("end"); }

 private:
  void fail(const std::string& here) const {
    if (here == where_ && test_world().rank() == test_world().size() - 1)
      throw std::runtime_error("thrown in " + here);
  }
  std::string where_;
};

PassHookFunction noting(Calls& calls) {
  return [&calls] { return std::make_unique<NotingHook>(calls); };
}

InputFunction held_out() { return class_input("eval", 37); }

TEST(PassHook, IsCalledAroundEachBatchOfAnEvaluationAndAPrediction) {
  const std::string run_dir = fresh_run_dir("pass_hooks");
  Calls of_model_evaluating, of_model_predicting, of_call;
  const ModelFunction model = [&](const Features& features, const LabelColumns& labels, Mode mode,
                                  const Params& params) {
    EstimatorSpec spec = small_model(features, labels, mode, params);
    spec.evaluation_hooks = {noting(of_model_evaluating)};
    spec.prediction_hooks = {noting(of_model_predicting)};
    return spec;
  };
  Estimator estimator(test_environment(), model, small_run(run_dir));
  estimator.train(class_input(), {.max_steps = 2, .eval_input = held_out()});
  EXPECT_THAT(of_model_evaluating, ElementsAre());  // not during training
  const double loss = estimator.evaluate(held_out(), {.hooks = {noting(of_call)}}).loss;
  const auto expected = ElementsAre("begin 37", "before 0 0+16", "after 0", "before 1 16+16", "after 1",
                                    "before 2 32+5", "after 2", "end 37");
  EXPECT_THAT(of_model_evaluating, expected);
  EXPECT_THAT(of_call, expected);
  EXPECT_THAT(of_model_predicting, ElementsAre());
  Estimator plain(test_environment(), small_model, small_run(run_dir));
  EXPECT_EQ(plain.evaluate(held_out()).loss, loss);
  const auto stream = estimator.predict(held_out());
  EXPECT_THAT(of_model_predicting, ElementsAre("begin 37"));
  while (stream->next()) {
  }
  EXPECT_FALSE(stream->next());  // the end is told once
  EXPECT_THAT(of_model_predicting, ElementsAre("begin 37", "before 0 0+16", "after 0", "before 1 16+16",
                                               "after 1", "before 2 32+5", "after 2", "end"));
}

TEST(PassHook, AnErrorOfOneRankEndsThePassOnAll) {
  const std::string run_dir = fresh_run_dir("pass_hook_errors");
  Estimator(test_environment(), small_model, small_run(run_dir)).train(class_input(), {.max_steps = 2});
  for (const std::string where : {"begin", "before 0", "after 0", "before 1", "after 2", "end"}) {
    const PassHookFunction make = [&] { return std::make_unique<ThrowingHook>(where); };
    const auto fails = [&](auto body) {
      Estimator estimator(test_environment(), small_model, small_run(run_dir));
      try {
        body(estimator);
        ADD_FAILURE() << "no error: " << where;
      } catch (const SharedError& error) {
        EXPECT_THAT(error.what(), HasSubstr("thrown in " + where));
      }
    };
    fails([&](Estimator& estimator) { estimator.evaluate(held_out(), {.hooks = {make}}); });
    fails([&](Estimator& estimator) {
      const auto stream = estimator.predict(held_out(), {.hooks = {make}});
      while (stream->next()) {
      }
    });
  }
}

}  // namespace
}  // namespace lockstep
