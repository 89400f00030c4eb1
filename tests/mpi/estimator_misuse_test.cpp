// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a program may do wrong with an Estimator on one rank only: each is one clear error of all ranks.
#include <gmock/gmock.h>

#include "comm/shared_error.h"
#include "config/params.h"
#include "support/estimator_run.h"
#include "support/shared_error_text.h"

namespace lockstep {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

bool is_last() { return test_world().rank() == test_world().size() - 1; }

/// Another net on the last rank, from the second call of the function on.
ModelFunction changing_model(int& calls) {
  return [&calls](const Features& features, const LabelColumns& labels, Mode mode, const Params& params) {
    if (++calls == 1 || !is_last()) return small_model(features, labels, mode, params);
    const LayerOutput logits = layers::dense(features, {.name = "logits", .units = 3});
    return EstimatorSpec{.loss = losses::softmax_cross_entropy(labels, logits),
                         .train_op = {.optimizer = optimizers::adam()}};
  };
}

InputFunction wide_on_the_last_rank() {
  return [] {
    SampleArrays samples = class_samples();
    if (is_last()) {
      samples.shape = Shape{12};
      samples.classes.resize(30);
    }
    return Input::arrays("wide", std::move(samples));
  };
}

TEST(Misuse, AnotherModelOnOneRankIsNamedInEachMethod) {
  if (test_world().size() == 1) GTEST_SKIP() << "needs several ranks";
  const auto named = AllOf(HasSubstr("rank"), AnyOf(HasSubstr("configuration"), HasSubstr("model")));
  for (const std::string method : {"train", "evaluate", "predict"}) {
    int calls = 0;
    Estimator estimator(test_environment(), changing_model(calls), small_run(fresh_run_dir("model")));
    estimator.train(class_input(), {.max_steps = 2});
    EXPECT_THAT(shared_error([&] {
                  if (method == "train") estimator.train(class_input(), {.max_steps = 4});
                  if (method == "evaluate") estimator.evaluate(class_input());
                  if (method == "predict") estimator.predict(class_input());
                }),
                named)
        << method;
  }
}

TEST(Misuse, SamplesOfAnotherShapeOnOneRankAreNamedInEachMethod) {
  if (test_world().size() == 1) GTEST_SKIP() << "needs several ranks";
  for (const std::string method : {"train", "evaluate", "predict"}) {
    Estimator estimator(test_environment(), small_model, small_run(fresh_run_dir("wide")));
    if (method != "train") estimator.train(class_input(), {.max_steps = 2});
    EXPECT_THAT(shared_error([&] {
                  if (method == "train") estimator.train(wide_on_the_last_rank(), {.max_steps = 4});
                  if (method == "evaluate") estimator.evaluate(wide_on_the_last_rank());
                  if (method == "predict") estimator.predict(wide_on_the_last_rank());
                }),
                HasSubstr("rank"))
        << method;
  }
}

TEST(Misuse, AnInputFunctionThatThrowsOnOneRankEndsEachMethodOnAll) {
  const InputFunction broken = []() -> Input {
    if (is_last()) throw std::runtime_error("the tape is torn");
    return Input::arrays("train", class_samples());
  };
  for (const std::string method : {"train", "evaluate", "predict"}) {
    Estimator estimator(test_environment(), small_model, small_run(fresh_run_dir("torn")));
    EXPECT_THAT(shared_error([&] {
                  if (method == "train") estimator.train(broken, {.max_steps = 4});
                  if (method == "evaluate") estimator.evaluate(broken);
                  if (method == "predict") estimator.predict(broken);
                }),
                HasSubstr("the tape is torn"))
        << method;
  }
}

TEST(Misuse, AfterAnErrorEachMethodRefusesAndNamesIt) {
  Estimator estimator(test_environment(), small_model, small_run(fresh_run_dir("after_an_error")));
  estimator.train(class_input(), {.max_steps = 2});
  EXPECT_THAT(shared_error([&] { estimator.evaluate(InputFunction()); }), HasSubstr("no input function"));
  const auto refused =
      AllOf(HasSubstr("after an error"), HasSubstr("no input function"), HasSubstr("Make a new estimator"));
  EXPECT_THAT(shared_error([&] { estimator.train(class_input(), {.max_steps = 4}); }), refused);
  EXPECT_THAT(shared_error([&] { estimator.evaluate(class_input()); }), refused);
  EXPECT_THAT(shared_error([&] { estimator.predict(class_input()); }), refused);
  EXPECT_THAT(shared_error([&] { estimator.export_model(); }), refused);
  EXPECT_THAT(shared_error([&] { estimator.cluster(); }), refused);
  // A new one goes on.
  Estimator again(test_environment(), small_model, small_run(estimator.model_dir()));
  EXPECT_EQ(again.train(class_input(), {.max_steps = 4}).global_step, 4);
}

}  // namespace
}  // namespace lockstep
