// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Frozen layers and variables: which they are, and what a frozen batch norm computes.
#include <gmock/gmock.h>

#include "model/layer_runner.h"
#include "model_testing.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kNet = R"(
- conv2d: {name: c1, filters: 3, kernel: 3}
- batch_norm: {name: b1}
- relu
- conv2d: {name: c2, filters: 3, kernel: 3}
- batch_norm: {name: b2}
- flatten
- dense: {name: out, units: 2}
)";

struct Frozen {
  explicit Frozen(const std::string& yaml, const std::vector<std::string>& patterns = {})
      : graph(graph_from(yaml, Shape{4, 4, 2})) {
    std::vector<FreezeRule> rules;
    for (const std::string& text : patterns) rules.push_back({NamePattern(text)});
    graph.freeze(rules);
    graph.finish(variables);
    variables.commit(cpu_device());
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const Variable& variable : variables.variables())
      if (variable.frozen) found.push_back(variable.name);
    return found;
  }
  /// Layers whose backward() is called.
  std::vector<std::string> backward() const {
    std::vector<std::string> found;
    for (const Graph::Operation& operation : graph.calls(true).operations)
      if (operation.backward) found.push_back(operation.layer->name());
    return found;
  }
  Graph graph;
  VariableStore variables;
};

TEST(Freeze, LayersAndVariablesByPattern) {
  EXPECT_THAT(Frozen(kNet).names(), IsEmpty());
  EXPECT_THAT(Frozen(kNet, {"?1"}).names(), ElementsAre("c1/kernel", "c1/bias", "b1/gamma", "b1/beta",
                                                        "b1/moving_mean", "b1/moving_variance"));
  EXPECT_THAT(Frozen(kNet, {"re:c[12]/bias", "out/kernel"}).names(),
              ElementsAre("c1/bias", "c2/bias", "out/kernel"));
  EXPECT_THAT(Frozen("[flatten, dense: {name: a, units: 2, trainable: false}, dense: {units: 2}]").names(),
              ElementsAre("a/kernel", "a/bias"));
}

TEST(Freeze, APatternThatLooksAheadDoesNotMeetTheLayerOfWhatItLeavesOut) {
  EXPECT_THAT(
      Frozen(kNet, {"re:(?!out/).*"}).names(),
      ElementsAre("c1/kernel", "c1/bias", "b1/gamma", "b1/beta", "b1/moving_mean", "b1/moving_variance",
                  "c2/kernel", "c2/bias", "b2/gamma", "b2/beta", "b2/moving_mean", "b2/moving_variance"));
  EXPECT_THAT(Frozen(kNet, {"re:(?!.*(kernel|moving)).*"}).names(),
              ElementsAre("c1/bias", "b1/gamma", "b1/beta", "c2/bias", "b2/gamma", "b2/beta", "out/bias"));
  EXPECT_THAT(
      Frozen(kNet, {"re:(?!(out|.2)$)[a-z0-9]+"}).names(),
      ElementsAre("c1/kernel", "c1/bias", "b1/gamma", "b1/beta", "b1/moving_mean", "b1/moving_variance"));
}

TEST(Freeze, NothingIsComputedForFrozenLayersAtTheBeginning) {
  const Frozen net(kNet, {"?1"});
  EXPECT_THAT(net.backward(), ElementsAre("c2", "b2", "out"));
  EXPECT_EQ(net.variables.num_frozen_parameters(), 9 * 2 * 3 + 3 + 6);
  EXPECT_EQ(net.graph.nodes()[0].frozen_parameters, 9 * 2 * 3 + 3);
  EXPECT_EQ(net.variables.changing_bytes(), 2 * 16 * sizeof(float)) << "b2's statistics";
  const Graph::Calls calls = net.graph.calls(true);
  EXPECT_EQ(calls.operations[1].collective, nullptr) << "b1 needs no statistics of the batch";
  EXPECT_NE(calls.operations[3].collective, nullptr);
  EXPECT_THAT(Frozen(kNet, {"?2"}).backward(), ElementsAre("c1", "b1", "c2", "b2", "out"));
}

TEST(Freeze, LayersThatOnlyAStopReadsAreFrozen) {
  EXPECT_THAT(Frozen("[conv2d: {name: c, filters: 2, kernel: 1, bias: false}, batch_norm: {name: b}, "
                     "stop_gradient, flatten, dense: {units: 2}]")
                  .names(),
              ElementsAre("c/kernel", "b/gamma", "b/beta", "b/moving_mean", "b/moving_variance"));
  // A second way without stop_gradient, or another user of the variables, trains them.
  EXPECT_THAT(Frozen("[flatten, dense: {name: a, units: 2}, stop_gradient: {name: s}, add: {inputs: [a, s]}]")
                  .names(),
              IsEmpty());
  EXPECT_THAT(
      Frozen("[flatten, dense: {name: a, units: 32}, stop_gradient, dense: {units: 32, shared_with: a}]")
          .names(),
      IsEmpty());
}

TEST(Freeze, MistakesAreErrors) {
  const auto message = [](const std::string& yaml, const std::vector<std::string>& patterns) {
    try {
      Frozen net(yaml, patterns);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(message(kNet, {"otu"}), HasSubstr("Did you mean 'out'?"));
  EXPECT_THAT(message(kNet, {"relu1"}), HasSubstr("matches no layer with variables"));
  EXPECT_THAT(message(kNet, {"b1/moving_mean"}), HasSubstr("only one of moving_mean"));
  EXPECT_THAT(message("[flatten, dense: {name: a, units: 32}, dense: {name: b, units: 32, shared_with: a, "
                      "trainable: false}]",
                      {}),
              HasSubstr("layer b is frozen, but a, whose variables it uses, is not"));
}

TEST(Freeze, BatchNormUsesItsMovingStatistics) {
  std::vector<float> outputs[2];
  for (const bool training : {false, true}) {
    const auto layer = layer_from("batch_norm");
    LayerRunner run(*layer, {Shape{3, 5}},
                    {.microshards = {2, 1}, .training = training, .frozen = [](const std::string& name) {
                       return name.find("moving_") != name.npos;
                     }});
    for (std::size_t v = 0; v < run.variables().variables().size(); ++v) {
      const auto values = random_floats(5, static_cast<std::uint32_t>(v), 0.5, 2);
      std::copy(values.begin(), values.end(), run.variables().value(static_cast<VariableId>(v)));
    }
    const std::uint64_t before = run.variables().hash();
    run.input(0) = random_floats(run.input(0).size(), 77, 3, 9);
    run.forward();
    if (training) run.backward();
    EXPECT_EQ(run.variables().hash(), before) << "the statistics are fixed";
    outputs[training ? 1 : 0] = run.output();
  }
  EXPECT_EQ(outputs[0], outputs[1]);
}

}  // namespace
}  // namespace lockstep
