// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Recomputation of activations: a step has the bits that it has with all activations kept, on any number of
// ranks and threads, and with updates beside the backward pass.
#include <gtest/gtest.h>

#include "comm/self_communicator.h"
#include "model/recomputation.h"
#include "support/mpi_world.h"
#include "support/tiny_run.h"

namespace lockstep {
namespace {

struct Case {
  const char* name;
  const char* layers;
  Shape features = {6, 6, 2};
  std::int64_t ids = 0;
};

constexpr const char* kResidual = R"(
- conv2d: {filters: 4, kernel: 3, bias: false}
- batch_norm: {name: stem, momentum: 0.8}
- conv2d: {filters: 4, kernel: 3, bias: false, recompute: one}
- batch_norm: {momentum: 0.8, recompute: one}
- relu: {recompute: one}
- spatial_dropout: {rate: 0.3, recompute: one}
- conv2d: {filters: 4, kernel: 3, bias: false, recompute: one}
- batch_norm: {name: last, momentum: 0.8, recompute: one}
- add: {inputs: [stem, last], recompute: one}
- relu: {recompute: one}
- max_pool: {recompute: two}
- conv2d: {filters: 6, kernel: 3, recompute: two}
- batch_norm: {group: 2, momentum: 0.8, recompute: two}
- tanh: {recompute: two}
- gaussian_noise: {stddev: 0.1, recompute: two}
- conv2d: {filters: 6, kernel: 3, recompute: two}
- group_norm: {groups: 2, recompute: two}
- flatten
- dense: {units: 3}
)";
/// Statistics of groups of microshards only, which a thread carries through the net alone.
constexpr const char* kGroups = R"(
- conv2d: {filters: 4, kernel: 3, recompute: one}
- batch_norm: {group: 1, momentum: 0.8, recompute: one}
- tanh: {recompute: one}
- conv2d: {filters: 4, kernel: 3, recompute: one}
- batch_norm: {group: 2, momentum: 0.8, recompute: two}
- relu: {recompute: two}
- conv2d: {filters: 4, kernel: 3, recompute: two}
- flatten
- dense: {units: 3}
)";
constexpr const char* kTransformer = R"(
- embedding: {name: words, rows: 40, units: 8}
- positional_embedding
- dropout: {name: x, rate: 0.1}
- layer_norm: {recompute: one}
- attention: {units: 8, heads: 2, causal: true, dropout: 0.2, recompute: one}
- drop_path: {rate: 0.3, recompute: one}
- add: {name: y, inputs: [x, drop_path1], recompute: one}
- layer_norm: {recompute: one}
- dense: {units: 16, recompute: one}
- gelu: {recompute: one}
- dense: {units: 8, recompute: one}
- dropout: {rate: 0.3, recompute: one}
- add: {inputs: [y, dropout2], recompute: one}
- tied_dense: {units: 40, shared_with: words}
- softmax
- flatten
- dense: {units: 3}
)";
constexpr const char* kRecurrent = R"(
- lstm: {units: 6, bidirectional: true, recompute: one}
- dropout: {rate: 0.2, recompute: one}
- gru: {units: 5, recurrent_dropout: 0.2, reset_after: false, recompute: one}
- lstm: {units: 5, recompute: two}
- last_step: {recompute: two}
- dense: {units: 3}
)";
/// Two layers with one kernel, in a segment each: the lower one owns it.
constexpr const char* kShared =
    "[flatten, dense: {units: 8, name: first, recompute: a}, tanh: {recompute: a}, "
    "dense: {units: 8, name: a, recompute: a}, tanh: {recompute: a}, "
    "dense: {units: 8, name: b, shared_with: a, recompute: b}, tanh: {recompute: b}, "
    "dense: {units: 8, recompute: b}, dense: {units: 3}]";

std::vector<Case> cases() {
  return {{"residual", kResidual},
          {"groups", kGroups},
          {"transformer", kTransformer, {7}, 40},
          {"recurrent", kRecurrent, {5, 4}},
          {"shared", kShared}};
}

TinyRunOptions options_of(const Case& net, Recompute recompute) {
  TinyRunOptions options{.layers = net.layers, .features = net.features, .shards = 8};
  options.ids = net.ids;
  options.recompute = recompute;
  options.bucket_first_bytes = options.bucket_bytes = 64;
  return options;
}

std::uint64_t digest(Communicator& world, const TinyRunOptions& options) {
  TinyRun run(world, options);
  for (int i = 0; i < 4; ++i) run.trainer().minimize();
  return run.variables().hash();
}

int num_recomputed(TinyRun& run) {
  int count = 0;
  for (const Graph::Operation& operation : run.trainer().executor().calls().operations)
    count += operation.recomputed ? 1 : 0;
  return count;
}

TEST(Recomputation, ChangesNoBits) {
  SelfCommunicator self;
  for (const Case& net : cases()) {
    const std::uint64_t expected = digest(self, options_of(net, Recompute::none));
    for (const Recompute recompute : {Recompute::marked, Recompute::automatic})
      for (const int threads : {1, 2})
        for (const bool overlap : {false, true}) {
          TinyRunOptions options = options_of(net, recompute);
          options.threads = threads;
          options.overlap = overlap;
          EXPECT_EQ(digest(test_world(), options), expected)
              << net.name << ' ' << static_cast<int>(recompute) << ' ' << threads << ' ' << overlap;
        }
  }
}

TEST(Recomputation, ReadsNoVariableThatIsUpdatedAlready) {
  SelfCommunicator self;
  for (const Case& net : cases()) {
    const std::uint64_t expected = digest(self, options_of(net, Recompute::none));
    for (const Gating gating : {Gating::op, Gating::none})
      for (const int threads : {1, 2}) {
        TinyRunOptions options = options_of(net, Recompute::marked);
        options.gating = gating;
        options.threads = threads;
        options.overlap = threads == 2;
        EXPECT_EQ(digest(test_world(), options), expected)
            << net.name << ' ' << name_of(gating) << ' ' << threads;
      }
  }
}

TEST(Recomputation, NeedsLessMemory) {
  SelfCommunicator self;
  std::size_t bytes[3] = {};
  for (const Case& net : cases())
    for (const Recompute recompute : {Recompute::none, Recompute::marked, Recompute::automatic}) {
      TinyRun run(self, options_of(net, recompute));
      EXPECT_TRUE(recompute != Recompute::none || num_recomputed(run) == 0) << net.name;
      EXPECT_TRUE(recompute != Recompute::marked || num_recomputed(run) > 1) << net.name;
      bytes[static_cast<int>(recompute)] += run.trainer().executor().activation_bytes();
    }
  const auto [marked, automatic, none] = bytes;
  EXPECT_LT(marked, none);
  EXPECT_LT(automatic, none);
}

/// The update is shared among ranks, and batches have a last, smaller one.
TEST(Recomputation, ChangesNoBitsOfASharedUpdateAndOfEmptyMicroshards) {
  SelfCommunicator self;
  for (const Case& net : cases()) {
    TinyRunOptions plain = options_of(net, Recompute::none), options = options_of(net, Recompute::marked);
    plain.samples = options.samples = 21;
    options.shard = true;
    EXPECT_EQ(digest(test_world(), options), digest(self, plain)) << net.name;
  }
}

}  // namespace
}  // namespace lockstep
