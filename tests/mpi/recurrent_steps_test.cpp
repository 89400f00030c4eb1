// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Training steps of nets with recurrent layers, lengths and dropout: the bits are those of one rank with one
// thread. Unused outputs have no gradient.
#include <gtest/gtest.h>

#include <cmath>

#include "comm/self_communicator.h"
#include "config/yaml_node.h"
#include "core/philox.h"
#include "support/mpi_world.h"
#include "support/one_step.h"

namespace lockstep {
namespace {

constexpr std::int64_t kSteps = 6;
const std::vector<std::int64_t> kSizes = {3, 0, 1, 4};

/// One step on sequences of ids, from which the net computes features and lengths.
OneStep::Result run(Communicator& world, int threads, const std::string& yaml) {
  auto graph = std::make_unique<Graph>(graph_from_config(parse_yaml(yaml, "test"), Shape{kSteps}));
  OneStep step(world, threads, std::move(graph), make_loss(Node::scalar("softmax_cross_entropy")), kSizes);
  std::vector<float> ids;
  std::vector<std::int32_t> labels;
  for (std::int64_t s = 0; s < 8; ++s) {
    for (std::int64_t t = 0; t < kSteps; ++t)
      ids.push_back(t < s % (kSteps + 1) ? static_cast<float>(1 + (s + t) % 4) : 0.0F);
    labels.push_back(static_cast<std::int32_t>(s % 3));
  }
  return step.run(ids, labels);
}

const char* const kLstm = R"(
- embedding: {name: words, rows: 5, units: 3}
- sequence_length: {name: length, inputs: [features]}
- lstm: {name: rnn, units: 4, layers: 2, bidirectional: true, dropout: 0.3, recurrent_dropout: 0.2,
         inputs: [words, length]}
- dense: {units: 3, inputs: ["rnn:1"]}
)";
const char* const kGru = R"(
- embedding: {name: words, rows: 5, units: 3}
- sequence_length: {name: length, inputs: [features]}
- gru: {name: rnn, units: 4, dropout: 0.3, variational: true, inputs: [words, length]}
- last_step: {name: end, inputs: [rnn, length]}
- dense: {units: 3}
)";

TEST(RecurrentSteps, SameBitsOnAnyRanksAndThreads) {
  for (const char* yaml : {kLstm, kGru}) {
    SelfCommunicator self;
    const OneStep::Result alone = run(self, 1, yaml);
    for (const int threads : {1, 2}) {
      const OneStep::Result here = run(test_world(), threads, yaml);
      EXPECT_EQ(here.loss, alone.loss) << yaml;
      EXPECT_EQ(here.gradient, alone.gradient) << yaml;
    }
  }
}

/// The last state equals the last step's output, so the same net through either output has the same
/// gradients.
TEST(RecurrentSteps, UnusedOutputHasNoGradient) {
  for (const std::string cell : {"lstm", "gru"}) {
    const std::string before =
        "- embedding: {name: words, rows: 5, units: 3}\n- sequence_length: {name: length, inputs: "
        "[features]}\n- " +
        cell + ": {name: rnn, units: 4, layers: 2, inputs: [words, length]}\n";
    SelfCommunicator self;
    const OneStep::Result by_state =
        run(self, 1, before + "- dense: {name: out, units: 3, inputs: ['rnn:1']}\n");
    const OneStep::Result by_sequence = run(self, 1,
                                            before +
                                                "- last_step: {name: end, inputs: [rnn, length]}\n- dense: "
                                                "{name: out, units: 3, inputs: [end]}\n");
    EXPECT_EQ(by_state.loss, by_sequence.loss) << cell;
    EXPECT_EQ(by_state.gradient, by_sequence.gradient) << cell;
    double size = 0;
    for (const float g : by_state.gradient) size += std::abs(static_cast<double>(g));
    EXPECT_GT(size, 0.1) << cell;
  }
}

}  // namespace
}  // namespace lockstep
