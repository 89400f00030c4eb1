// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Whole runs with every update rule: the same bits on any number of ranks and threads, of variables and
// slots, with dense and with sparse gradients; and after a checkpoint.
#include <gtest/gtest.h>

#include <filesystem>

#include "comm/self_communicator.h"
#include "io/checkpoint.h"
#include "session/distributed_state.h"
#include "session/run_state.h"
#include "support/error_support.h"
#include "support/mpi_world.h"
#include "support/tiny_run.h"
#include "train/step_update.h"

namespace lockstep {
namespace {

constexpr const char* kDense = "[flatten, dense: {units: 9}, relu, dense: {units: 3}]";
constexpr const char* kTable = "[flatten, embedding: {rows: 900, units: 4}, flatten, dense: {units: 3}]";

const std::vector<std::string>& rules() {
  static const std::vector<std::string> all = {
      "gradient_descent: {learning_rate: 0.05, weight_decay: 0.01}",
      "momentum: {learning_rate: 0.05, nesterov: true, weight_decay: 0.1, decoupled_weight_decay: true}",
      "adam: {amsgrad: true}",
      "adam: {lazy: true}",
      "adamw: {weight_decay: 0.1}",
      "nadam: {weight_decay: 0.01}",
      "radam: {beta2: 0.9}",
      "adagrad: {learning_rate: 0.1}",
      "adadelta: {learning_rate: 1}",
      "rmsprop: {learning_rate: 0.01, momentum: 0.9, centered: true}",
      "ftrl: {learning_rate: 0.1, learning_rate_power: -0.4, l1: 0.01, l2_shrinkage: 0.01}",
      "ftrl: {learning_rate: 0.1, lazy: true}",
      "proximal_gradient_descent: {learning_rate: 0.05, l1: 0.01}",
      "proximal_adagrad: {learning_rate: 0.05, l2: 0.1}",
      "adagrad_da: {learning_rate: 0.1, l1: 0.001}",
      "lion: {learning_rate: 0.003, weight_decay: 0.1}",
      "lars: {learning_rate: 0.05, trust_coefficient: 0.1, weight_decay: 0.1}",
      "lamb: {weight_decay: 0.1}",
      "muon: {learning_rate: 0.01}",
      "muon: {learning_rate: 0.01, adamw_for: [], scale: shape}",
      "shampoo: {learning_rate: 0.01, root_every: 1}",
      "shampoo: {learning_rate: 0.01, adamw_for: [], block_size: 3, start_step: 3, root_every: 7, grafting: "
      "sgd}",
  };
  return all;
}

TinyRunOptions options_of(const std::string& rule, const char* layers) {
  TinyRunOptions options{.layers = layers, .optimizer = rule, .features = {3, 2}, .samples = 40};
  if (layers == kTable) options.ids = 900;
  return options;
}

/// Of variables and slots.
std::string digest_of(TinyRun& run) {
  const std::vector<CheckpointTensor> tensors = state_tensors(run.variables(), &run.optimizer());
  return checkpoint_digest({}, tensors);
}

std::string digest_after(Communicator& world, const TinyRunOptions& options, int steps) {
  TinyRun run(world, options);
  for (int i = 0; i < steps; ++i) run.trainer().minimize();
  return digest_of(run);
}

TEST(OptimizerRules, EveryRuleIsTested) {
  for (const OptimizerEntry& entry : optimizer_table()) {
    const bool found = std::ranges::any_of(
        rules(), [&](const std::string& rule) { return rule.starts_with(std::string(entry.name) + ":"); });
    EXPECT_TRUE(found) << entry.name;
  }
}

TEST(OptimizerRules, SameBitsAsOneRank) {
  SelfCommunicator self;
  for (const std::string& rule : rules()) {
    const TinyRunOptions options = options_of(rule, kTable);  // a sparse gradient and dense ones
    const std::string expected = digest_after(self, options, 4);
    EXPECT_NE(expected, digest_after(self, options, 3)) << rule;
    for (const int threads : {1, 2}) {
      TinyRunOptions own = options;
      own.threads = threads;
      own.overlap = threads == 2;
      EXPECT_EQ(digest_after(test_world(), own, 4), expected) << rule << ", " << threads << " threads";
    }
  }
}

/// What only the owners of matrices have.
DistributedState distributed_state_of(TinyRun& run) {
  std::vector<DistributedTensor> tensors;
  for (const auto& matrices : run.trainer().update().matrices())
    std::ranges::move(distributed_matrices(*matrices), std::back_inserter(tensors));
  return {run.control(), std::move(tensors), 64};
}

/// Slots begin at other values than zero, and numbers of a step depend on the steps before.
TEST(OptimizerRules, SameBitsAfterACheckpoint) {
  const testing::TemporaryFolder folder;
  for (const std::string& rule : rules()) {
    const TinyRunOptions options = options_of(rule, kDense);
    TinyRun whole(test_world(), options);
    for (int i = 0; i < 3; ++i) whole.trainer().minimize();
    const std::string path = (folder.path() / "checkpoint.h5").string();
    DistributedState state = distributed_state_of(whole);
    state.stream([&] {
      write_checkpoint(path, {.global_step = 3},
                       state_tensors(whole.variables(), &whole.optimizer(), false, nullptr, &state));
    });
    test_world().barrier("written");
    TinyRun resumed(test_world(), options);
    EXPECT_NE(digest_of(resumed), digest_of(whole)) << rule;
    DistributedState restored = distributed_state_of(resumed);
    restore_state(test_world(), {.path = path, .header = {}}, resumed.variables(),
                  {.optimizer = &resumed.optimizer(), .distributed = &restored});
    EXPECT_EQ(digest_of(resumed), digest_of(whole)) << rule;
    resumed.trainer().set_position(3, whole.trainer().cursor());
    for (int i = 0; i < 2; ++i) {
      whole.trainer().minimize();
      resumed.trainer().minimize();
    }
    EXPECT_EQ(digest_of(resumed), digest_of(whole)) << rule;
    const std::string other = rule.starts_with("rmsprop") ? "adam" : "rmsprop: {learning_rate: 0.1}";
    TinyRun another(test_world(), options_of(other, kDense));
    const std::string refused = testing::message_of(
        [&] {
          restore_state(test_world(), {.path = path, .header = {}}, another.variables(),
                        {.optimizer = &another.optimizer()});
        },
        ErrorKind::checkpoint);
    EXPECT_NE(refused.find("another model or optimizer"), std::string::npos) << rule << ": " << refused;
  }
}

}  // namespace
}  // namespace lockstep
