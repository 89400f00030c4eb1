// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Ranks that share the update (optimizer.shard): the bits of one rank that updates everything.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "comm/self_communicator.h"
#include "core/range.h"
#include "optim/moving_average.h"
#include "session/distributed_state.h"
#include "session/run_state.h"
#include "support/error_support.h"
#include "support/mpi_world.h"
#include "support/tiny_run.h"
#include "train/step_metrics.h"
#include "train/step_update.h"

namespace lockstep {
namespace {

constexpr const char* kDense =
    "[flatten, dense: {units: 300}, relu, dense: {units: 40}, relu, dense: {units: 3}]";
constexpr const char* kTable = "[flatten, embedding: {rows: 900, units: 4}, flatten, dense: {units: 3}]";

TinyRunOptions options_of(const std::string& rule, const char* layers, int shards) {
  TinyRunOptions options{
      .layers = layers, .optimizer = rule, .features = {3, 6}, .samples = 40, .shards = shards};
  if (layers == kTable) options.ids = 900;
  return options;
}

/// Compares variables with one rank's, and each slot where this rank holds it.
void expect_same(TinyRun& run, TinyRun& one, const std::string& what) {
  const std::span<const float> values = run.variables().trainable_values();
  EXPECT_EQ(std::memcmp(values.data(), one.variables().trainable_values().data(), values.size_bytes()), 0)
      << what;
  std::vector<Range> held(run.optimizer().slots().held().begin(), run.optimizer().slots().held().end());
  if (held.empty()) held.push_back({0, run.variables().trainable_elements()});
  for (std::size_t slot = 0; slot < run.optimizer().slot_names().size(); ++slot)
    for (const Range& part : held)
      EXPECT_TRUE(part.size() == 0 || std::memcmp(run.optimizer().slots().values(slot) +
                                                      run.optimizer().slots().place(part.first),
                                                  one.optimizer().slots().values(slot) + part.first,
                                                  static_cast<std::size_t>(part.size()) * sizeof(float)) == 0)
          << what << ", slot " << slot;
}

TEST(SharedUpdate, SameBitsAsOneRank) {
  SelfCommunicator self;
  for (const int shards : {4, 5, 8})
    for (const char* layers : {kDense, kTable})
      for (const char* rule :
           {"adam", "adamw: {weight_decay: 0.1, lazy: true}",
            "momentum: {learning_rate: 0.05, nesterov: true}", "gradient_descent: {learning_rate: 0.05}",
            "lars: {learning_rate: 0.5, trust_coefficient: 0.1, weight_decay: 0.1}",
            "lamb: {learning_rate: 0.01, adapt_vectors: true}"}) {
        const TinyRunOptions options = options_of(rule, layers, shards);
        TinyRun one(self, options);
        for (int i = 0; i < 4; ++i) one.trainer().minimize();
        for (const int threads : {1, 2}) {
          TinyRunOptions own = options;
          own.threads = threads;
          own.overlap = threads == 2;
          own.shard = true;
          TinyRun run(test_world(), own);
          for (int i = 0; i < 4; ++i) run.trainer().minimize();
          expect_same(run, one, fmt::format("{}, {} shards, {} threads", rule, shards, threads));
        }
      }
}

TEST(SharedUpdate, ClippingAndAveragesAreThoseOfOneRank) {
  SelfCommunicator self;
  using By = ClipRule::By;
  for (const By by : {By::global_norm, By::norm, By::average_norm, By::value, By::nothing})
    for (const char* layers : {kDense, kTable}) {
      TinyRunOptions options = options_of("adam", layers, 4);
      options.clip = {.by = by, .limit = by == By::average_norm ? 1e-5 : 0.05, .low = -1e-3F, .high = 1e-3F};
      options.clip.record_norm = true;
      options.average = AverageRule{.decay = 0.9F, .first = 1};
      TinyRun one(self, options);
      options.shard = true;
      options.threads = 2;
      TinyRun run(test_world(), options);
      for (int i = 0; i < 4; ++i) {
        const StepResult expected = one.trainer().minimize(), found = run.trainer().minimize();
        EXPECT_EQ(expected.loss, found.loss);
        EXPECT_EQ(one.trainer().metrics().value("gradient_norm"),
                  run.trainer().metrics().value("gradient_norm"));
      }
      expect_same(run, one, fmt::format("clipping {}", static_cast<int>(by)));
      for (const Variable& variable : run.variables().variables()) {
        if (!variable.trainable) continue;
        EXPECT_EQ(std::memcmp(run.trainer().update().average()->address(variable),
                              one.trainer().update().average()->address(variable),
                              static_cast<std::size_t>(variable.shape.num_elements()) * sizeof(float)),
                  0)
            << variable.name;
      }
    }
}

/// All ranks know of an infinite gradient that one of them has, and a step without update changes nothing.
TEST(SharedUpdate, AllRanksSeeAnInfiniteGradient) {
  SelfCommunicator self;
  // The first layer has the largest gradients and is one block of one rank.
  constexpr const char* kSmallFirst =
      "[flatten, dense: {units: 50}, relu, dense: {units: 300}, relu, dense: {units: 3}]";
  TinyRunOptions options = options_of("adam", kSmallFirst, 4);
  options.scales_loss = true;
  TinyRun one(self, options);
  options.shard = true;
  TinyRun run(test_world(), options);
  for (TinyRun* each : {&one, &run})
    for (float& value : each->variables().trainable_values()) value *= 100;
  int infinite = 0;
  // At some scale the largest gradients overflow alone, which one rank has.
  for (int exponent = 96; exponent < 128; ++exponent) {
    for (TinyRun* each : {&one, &run}) each->trainer().set_loss_scale(std::ldexp(1.0, exponent));
    const StepResult expected = one.trainer().compute(), found = run.trainer().compute();
    EXPECT_EQ(expected.finite_gradients, found.finite_gradients) << exponent;
    infinite += expected.finite_gradients ? 0 : 1;
    one.trainer().apply(expected.finite_gradients);
    run.trainer().apply(found.finite_gradients);
  }
  EXPECT_GT(infinite, 0);
  EXPECT_LT(infinite, 32);
  expect_same(run, one, "loss scale");
}

/// The slots of all ranks together are those of one: memory falls with the number of ranks.
TEST(SharedUpdate, RanksHoldPartsOfTheSlots) {
  TinyRunOptions options = options_of("adam", kDense, 8);
  options.shard = true;
  TinyRun run(test_world(), options);
  const std::size_t mine = run.optimizer().slots().bytes();
  std::vector<std::size_t> all(static_cast<std::size_t>(test_world().size()));
  test_world().allgather(&mine, sizeof mine, all.data(), "slots");
  std::size_t sum = 0;
  for (const std::size_t bytes : all) sum += bytes;
  EXPECT_EQ(sum, 2 * sizeof(float) * static_cast<std::size_t>(run.variables().trainable_elements()));
  EXPECT_TRUE(test_world().size() == 1 || mine < sum);
}

/// Checkpoints in small pieces: the file of one rank; the error of the disk on the chief; what is read.
class ShardedCheckpoints : public ::testing::Test {
 protected:
  ShardedCheckpoints() : one_(self_, options_), run_(test_world(), shared(options_)), slots_(slots_of(run_)) {
    for (int i = 0; i < 3; ++i) {
      one_.trainer().minimize();
      run_.trainer().minimize();
    }
  }
  static TinyRunOptions shared(TinyRunOptions options) {
    options.shard = true;
    return options;
  }
  static DistributedState slots_of(TinyRun& run) {
    return {run.control(), distributed_slots(run.optimizer(), run.variables(), *run.ownership()), 64};
  }
  std::vector<CheckpointTensor> tensors() {
    return state_tensors(run_.variables(), &run_.optimizer(), false, nullptr, &slots_);
  }
  std::string path(const char* name) const {  // the chief's folder is used
    return (folder_.path() / name).string();
  }

  testing::TemporaryFolder folder_;
  SelfCommunicator self_;
  TinyRunOptions options_ = options_of("adam", kTable, 5);
  TinyRun one_, run_;
  DistributedState slots_;
};

TEST_F(ShardedCheckpoints, AreTheFilesOfOneRank) {
  const CheckpointHeader header{.global_step = 3, .created = "now"};
  slots_.stream([&] { write_checkpoint(path("shared"), header, tensors()); });
  if (test_world().rank() != 0) return;
  write_checkpoint(path("one"), header, state_tensors(one_.variables(), &one_.optimizer()));
  std::ifstream a(path("one"), std::ios::binary), b(path("shared"), std::ios::binary);
  const std::string bytes_a(std::istreambuf_iterator<char>(a), {}),
      bytes_b(std::istreambuf_iterator<char>(b), {});
  EXPECT_GT(bytes_a.size(), 10000U);
  EXPECT_TRUE(bytes_a == bytes_b) << "the files differ";
  EXPECT_NO_THROW(CheckpointFile(path("shared")).verify());
}

/// At any piece; afterwards all ranks can go on.
TEST_F(ShardedCheckpoints, AnErrorOfTheChiefEndsTheStreamOnAllRanks) {
  for (int stop : {0, 1, 2, 7, 1000}) {
    int pieces = 0;
    const auto write = [&] {
      for (const CheckpointTensor& tensor : slots_.tensors())
        tensor.pieces([&](const void*, std::size_t) {
          if (pieces++ == stop) throw Error(ErrorKind::checkpoint, "the disk is full");
        });
    };
    const bool fails = test_world().rank() == 0 && stop < 1000;
    if (fails)
      EXPECT_THROW(slots_.stream(write), Error) << stop;
    else
      EXPECT_NO_THROW(slots_.stream(write)) << stop;
    EXPECT_TRUE(pieces <= stop + 1 || stop == 1000);
    test_world().barrier("all ranks are through");
  }
  EXPECT_NO_THROW(slots_.stream([] {}));
}

TEST_F(ShardedCheckpoints, AreReadByAnyRun) {
  std::string file = path("shared");
  slots_.stream([&] { write_checkpoint(file, {.global_step = 3}, tensors()); });
  const FoundCheckpoint found{.path = file, .header = {}};
  TinyRun again(test_world(), shared(options_)), whole(test_world(), options_);
  DistributedState slots = slots_of(again);
  restore_state(test_world(), found, again.variables(),
                {.optimizer = &again.optimizer(), .distributed = &slots});
  restore_state(test_world(), found, whole.variables(), {.optimizer = &whole.optimizer()});
  expect_same(again, one_, "with shared update");
  expect_same(whole, one_, "without");
}

}  // namespace
}  // namespace lockstep
