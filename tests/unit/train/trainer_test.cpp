// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Trainer::step on one rank: it learns, walks through epochs with an uneven last batch, keeps alignment gaps
// at zero, and stops at a loss that is not finite.
#include "train/trainer.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "comm/self_communicator.h"
#include "support/tiny_run.h"

namespace lockstep {
namespace {

constexpr const char* kNet = R"(
- conv2d: {filters: 5, kernel: 3}
- batch_norm
- relu: {name: r}
- conv2d: {filters: 5, kernel: 3, bias: false}
- batch_norm: {name: bn}
- add: {name: sum, inputs: [bn, r]}
- relu
- max_pool
- flatten
- dropout: {rate: 0.2}
- dense: {units: 3}
)";

TEST(Trainer, LearnsAndCounts) {
  SelfCommunicator self;
  TinyRun run(self, {.layers = kNet, .optimizer = "adam: {learning_rate: 0.01}"});
  StepResult result = run.trainer().minimize();
  const double first = result.loss;
  EXPECT_EQ(result.step, 1);
  EXPECT_EQ(result.samples, 16);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(result.epoch_ended);
    result = run.trainer().minimize();
  }
  EXPECT_TRUE(result.epoch_ended);
  EXPECT_EQ(result.samples, 12);  // 60 = 3 x 16 + 12
  EXPECT_EQ(result.epoch, 0);
  EXPECT_EQ(result.cursor, (Cursor{1, 0}));
  for (int i = 0; i < 60; ++i) result = run.trainer().minimize();
  EXPECT_EQ(run.trainer().global_step(), 64);
  EXPECT_LT(result.loss, 0.5 * first);
  EXPECT_GT(result.accuracy, 0.8);
}

TEST(Trainer, GapsStayZero) {
  SelfCommunicator self;
  for (const char* optimizer : {"gradient_descent: {learning_rate: 0.01}",
                                "momentum: {learning_rate: 0.01, nesterov: true}", "adam"}) {
    TinyRun run(self, {.layers = kNet, .optimizer = optimizer, .threads = 2});
    const auto before = run.variables().hash();
    for (int i = 0; i < 6; ++i) run.trainer().minimize();
    EXPECT_NE(run.variables().hash(), before);
    std::vector<bool> used(static_cast<std::size_t>(run.variables().trainable_elements()), false);
    for (const Variable& variable : run.variables().variables())
      for (std::int64_t i = 0; variable.trainable && i < variable.shape.num_elements(); ++i)
        used[static_cast<std::size_t>(variable.offset + i)] = true;
    std::size_t gaps = 0;
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (used[i]) continue;
      ++gaps;
      EXPECT_EQ(run.variables().trainable_values()[i], 0.0F) << optimizer << " " << i;
      for (std::size_t slot = 0; slot < run.optimizer().slot_names().size(); ++slot)
        EXPECT_EQ(run.optimizer().slots().values(slot)[i], 0.0F) << optimizer << " " << i;
    }
    EXPECT_GT(gaps, 20U);
  }
}

TEST(Trainer, DenseLabelsTrainLikeIndices) {
  SelfCommunicator self;
  TinyRun indices(self, {.layers = kNet}), rows(self, {.layers = kNet, .dense_labels = true});
  for (int i = 0; i < 5; ++i) {
    const StepResult a = indices.trainer().minimize(), b = rows.trainer().minimize();
    EXPECT_NEAR(a.loss, b.loss, 1e-5 * a.loss);
    EXPECT_EQ(a.accuracy, b.accuracy);
  }
}

TEST(Trainer, PositionContinuesARun) {
  SelfCommunicator self;
  TinyRun whole(self, {.layers = kNet, .optimizer = "gradient_descent: {learning_rate: 0.05}"});
  TinyRun resumed(self, {.layers = kNet, .optimizer = "gradient_descent: {learning_rate: 0.05}"});
  for (int i = 0; i < 5; ++i) whole.trainer().minimize();
  ASSERT_NE(whole.variables().hash(), resumed.variables().hash());
  for (const Variable& variable : whole.variables().variables()) {
    const VariableId id = whole.variables().find(variable.name);
    std::copy_n(whole.variables().value(id), variable.shape.num_elements(), resumed.variables().value(id));
  }
  resumed.trainer().set_position(5, whole.trainer().cursor());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(whole.trainer().minimize().loss, resumed.trainer().minimize().loss);
  EXPECT_EQ(whole.variables().hash(), resumed.variables().hash());
}

TEST(Trainer, WithoutAnUpdateVariablesAndStatisticsStay) {
  SelfCommunicator self;
  TinyRun run(self, {.layers = kNet});
  run.trainer().minimize();
  const std::uint64_t before = run.variables().hash();
  run.trainer().compute();
  EXPECT_NE(run.variables().hash(), before) << "running statistics move in the forward pass";
  run.trainer().apply(false);
  EXPECT_EQ(run.variables().hash(), before);
  EXPECT_EQ(run.trainer().global_step(), 2);
  run.trainer().minimize();
  EXPECT_NE(run.variables().hash(), before);
}

TEST(Trainer, AFeedChangesTheSamplesAndTheLabels) {
  SelfCommunicator self;
  TinyRun plain(self, {.layers = kNet}), fed(self, {.layers = kNet});
  fed.trainer().set_feed([](std::int64_t, const Microshard& m, float* features, Labels&) {
    for (std::int64_t i = 0; i < m.n * 6 * 6 * 2; ++i) features[i] = -features[i];
  });
  EXPECT_NE(plain.trainer().minimize().loss, fed.trainer().minimize().loss);
}

TEST(Trainer, AGroupThatDoesNotDivideTheShardsIsAnError) {
  SelfCommunicator self;
  try {
    TinyRun run(self, {.layers = "[flatten, batch_norm: {group: 3}, dense: {units: 3}]"});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("group 3 does not divide the 4 shards"));
  }
}

}  // namespace
}  // namespace lockstep
