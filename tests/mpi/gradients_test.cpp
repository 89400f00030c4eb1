// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The two halves of a step: compute_gradients(), a change, apply_gradients(). Unchanged they have the bits of
// the whole step; changed, those of the same change on one rank.
#include "train/gradients.h"

#include <gtest/gtest.h>

#include <functional>

#include "comm/self_communicator.h"
#include "support/error_support.h"
#include "support/mpi_world.h"
#include "support/tiny_run.h"
#include "train/step_metrics.h"

namespace lockstep {
namespace {

constexpr const char* kNet = "[flatten, dense: {units: 9}, batch_norm, relu, dense: {units: 3}]";
constexpr const char* kTable = "[flatten, embedding: {rows: 900, units: 4}, flatten, dense: {units: 3}]";

std::string message(const std::function<void()>& action) {
  return testing::message_of(action, ErrorKind::usage);
}

using Change = std::function<void(Gradients&)>;

TinyRunOptions net(const char* optimizer = "adam") {
  return {.layers = kNet, .optimizer = optimizer, .shards = 5};
}
TinyRunOptions table() { return {.layers = kTable, .features = {7}, .shards = 5, .ids = 900}; }

/// Variables after some steps; without a change in one half.
std::uint64_t digest(Communicator& world, const TinyRunOptions& options, const Change& change = {},
                     int steps = 4) {
  TinyRun run(world, options);
  for (int i = 0; i < steps; ++i) {
    if (!change) {
      run.trainer().minimize();
      continue;
    }
    Gradients& gradients = run.trainer().compute_gradients();
    EXPECT_EQ(gradients.result().step, i + 1);
    change(gradients);
    EXPECT_EQ(run.trainer().apply_gradients(gradients).step, i + 1);
    EXPECT_EQ(run.trainer().global_step(), i + 1);
  }
  return run.variables().hash();
}

void multiply(Gradients& gradients, float factor) {
  for (const GradientAndVariable& pair : gradients)
    for (float& value : pair.gradient) value *= factor;
}

TEST(TwoHalves, HaveTheBitsOfTheStep) {
  SelfCommunicator self;
  for (TinyRunOptions options : {net(), table(), net("lamb"), net("muon")})
    for (const bool shard : {false, true})
      for (const int threads : {1, 2}) {
        if (shard && options.optimizer != "adam") continue;
        options.clip = {.by = ClipRule::By::global_norm, .limit = 0.2};
        const std::uint64_t expected = digest(self, options);
        TinyRunOptions own = options;
        own.shard = shard;
        own.threads = threads;
        own.overlap = threads == 2;
        EXPECT_EQ(digest(test_world(), own, [](Gradients&) {}), expected)
            << options.layers << ' ' << options.optimizer << ' ' << shard << ' ' << threads;
      }
}

/// Doubled gradients of gradient descent are a doubled rate; negated ones go uphill.
TEST(TwoHalves, AChangeHasItsEffect) {
  const auto doubled = [](Gradients& gradients) { multiply(gradients, 2); };
  EXPECT_EQ(digest(test_world(), net("gradient_descent: {learning_rate: 0.0625}"), doubled),
            digest(test_world(), net("gradient_descent: {learning_rate: 0.125}")));
  TinyRun up(test_world(), net("gradient_descent: {learning_rate: 0.05}"));
  double first = 0, last = 0;
  for (int i = 0; i < 12; ++i) {
    Gradients& gradients = up.trainer().compute_gradients();
    (i == 0 ? first : last) = gradients.result().loss;
    multiply(gradients, -1);
    up.trainer().apply_gradients(gradients);
  }
  EXPECT_GT(last, 1.2 * first);
}

/// The same change has the same bits on any number of ranks and threads, also where ranks share the update.
TEST(TwoHalves, AChangeHasTheBitsOfOneRank) {
  SelfCommunicator self;
  const Change change = [](Gradients& gradients) {
    float largest = 0;  // needs all gradients on each rank
    for (const GradientAndVariable& pair : gradients)
      for (const float value : pair.gradient) largest = std::max(largest, std::abs(value));
    for (const GradientAndVariable& pair : gradients)
      for (float& value : pair.gradient) value = std::clamp(value, -0.25F * largest, 0.25F * largest);
  };
  for (const TinyRunOptions& options : {net(), table()}) {
    const std::uint64_t expected = digest(self, options, change);
    EXPECT_NE(expected, digest(self, options));
    for (const bool shard : {false, true})
      for (const int threads : {1, 2}) {
        TinyRunOptions own = options;
        own.shard = shard;
        own.threads = threads;
        EXPECT_EQ(digest(test_world(), own, change), expected) << options.layers << ' ' << shard;
      }
  }
}

/// apply_gradients() clips what the change left: the norms are measured again.
TEST(TwoHalves, ClippingFollowsTheChange) {
  TinyRunOptions clipped = net("gradient_descent: {learning_rate: 0.1}");
  clipped.clip = {.by = ClipRule::By::global_norm, .limit = 0.125};
  const auto large = [](Gradients& gradients) { multiply(gradients, 1024); };
  const auto larger = [](Gradients& gradients) { multiply(gradients, 2048); };
  EXPECT_EQ(digest(test_world(), clipped, large), digest(test_world(), clipped, larger));
  TinyRun run(test_world(), clipped);
  Gradients& gradients = run.trainer().compute_gradients();
  const double before = run.trainer().metrics().value("gradient_norm").value();
  multiply(gradients, 2);
  run.trainer().apply_gradients(gradients);
  EXPECT_EQ(run.trainer().metrics().value("gradient_norm").value(), 2 * before);
}

TEST(TwoHalves, PairsAreTheVariables) {
  TinyRunOptions options = table();
  TinyRun run(test_world(), options);
  Gradients& gradients = run.trainer().compute_gradients();
  std::size_t trainable = 0;
  for (const Variable& variable : run.variables().variables()) trainable += variable.trainable ? 1 : 0;
  EXPECT_EQ(gradients.size(), trainable);
  const GradientAndVariable& embeddings = gradients.of("embedding1/embeddings");
  EXPECT_TRUE(embeddings.is_sparse());
  ASSERT_GT(embeddings.rows.size(), 0U);
  EXPECT_LE(embeddings.rows.size(), 16U * 7);
  EXPECT_EQ(embeddings.gradient.size(), embeddings.rows.size() * 4);
  const GradientAndVariable& kernel = gradients.of("dense1/kernel");
  EXPECT_EQ(kernel.variable->shape, (Shape{28, 3}));
  EXPECT_EQ(kernel.gradient.size(), 84U);
  EXPECT_TRUE(kernel.rows.empty());
  EXPECT_NE(message([&] { gradients.of("dense2/kernel"); }).find("no variable dense2/kernel"),
            std::string::npos);
}

TEST(TwoHalves, WrongOrderIsAnError) {
  TinyRun run(test_world(), net()), other(test_world(), net());
  Trainer& trainer = run.trainer();
  EXPECT_NE(message([&] { trainer.gradients(); }).find("no gradients of step 1 yet"), std::string::npos);
  EXPECT_NE(message([&] { trainer.apply(true); }).find("step 1 is not computed"), std::string::npos);
  Gradients& gradients = trainer.compute_gradients();
  Gradients& others = other.trainer().compute_gradients();
  EXPECT_NE(message([&] { trainer.apply_gradients(others); }).find("another trainer"), std::string::npos);
  trainer.apply_gradients(gradients);
  EXPECT_NE(message([&] { trainer.apply_gradients(gradients); }).find("step 2 is not computed"),
            std::string::npos);
  EXPECT_EQ(trainer.global_step(), 1);
}

/// Computing again starts from the statistics before the step, and drops a change.
TEST(TwoHalves, AStepIsComputedAgain) {
  TinyRun once(test_world(), net()), again(test_world(), net());
  for (int i = 0; i < 3; ++i) {
    once.trainer().minimize();
    multiply(again.trainer().compute_gradients(), 100);
    again.trainer().apply_gradients(again.trainer().compute_gradients());
  }
  EXPECT_EQ(again.variables().hash(), once.variables().hash());
  // A new position drops what is computed: the statistics stay as they are restored.
  again.trainer().compute();
  const std::uint64_t before = again.variables().hash();
  again.trainer().set_position(3, again.trainer().cursor());
  EXPECT_EQ(again.variables().hash(), before);
  EXPECT_NE(message([&] { again.trainer().apply(true); }).find("step 4 is not computed"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
