// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Blocks, repeat and built-in nets: what they expand to, error messages, and the nets' published sizes.
#include "run/sections/blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/yaml_node.h"
#include "model/graph.h"
#include "run/sections/built_in_nets.h"

namespace lockstep {
namespace {

using testing::HasSubstr;

std::string expanded(const std::string& model) {
  return to_yaml(*with_expanded_blocks(parse_yaml(model, "test")).find("layers"));
}

std::string same(const std::string& layers) { return to_yaml(parse_yaml(layers, "test")); }

std::string message(const std::string& model) {
  try {
    expanded(model);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(Blocks, LayersGetThePrefixAndInputsOfTheirUse) {
  EXPECT_EQ(expanded(R"({blocks: {part: {parameters: {units: null, act: relu},
                              layers: [dense: {name: d, units: $(2 * units)}, $act, add: {inputs: [input, d]}]}},
                         layers: [dense: {units: 4}, part: {name: p, units: 2}, part: {units: 2, inputs: [dense1]},
                                  dense: {units: 3}, tanh: {inputs: [p]}]})"),
            same(R"([dense: {name: dense1, units: 4},
                     dense: {name: p/d, units: 4}, relu: {name: p/relu1}, add: {name: p/add1, inputs: [dense1, p/d]},
                     dense: {name: part_2/d, inputs: [dense1], units: 4}, relu: {name: part_2/relu1},
                     add: {name: part_2/add1, inputs: [dense1, part_2/d]},
                     dense: {name: dense2, units: 3}, tanh: {name: tanh1, inputs: [p/add1]}])"));
}

TEST(Blocks, RepeatsHaveAnIndexAndNamesOfTheirOwn) {
  EXPECT_EQ(
      expanded(
          R"({layers: [flatten, repeat: {name: r, times: 2, layers: [dense: {name: d, units: $(8 / 2 ^ i)},
                                  repeat: {times: $(i - 1), index: k, layers: [relu]}, add: {inputs: [d, input]}]}]})"),
      same(R"([flatten: {name: flatten1},
                     dense: {name: r/1/d, units: 4}, add: {name: r/1/add1, inputs: [r/1/d, flatten1]},
                     dense: {name: r/2/d, units: 2}, relu: {name: r/2/repeat/1/relu1},
                     add: {name: r/2/add1, inputs: [r/2/d, r/1/add1]}])"));
}

TEST(Blocks, WithoutBlocksNothingChanges) {
  const std::string layers = "[relu, dense: {units: 3, name: $x}, dense: 5, [1]]";
  EXPECT_EQ(expanded("{layers: " + layers + "}"), same(layers));
}

TEST(Blocks, FrozenUsesAndHeads) {
  const Node model =
      with_expanded_blocks(parse_yaml("{blocks: {b: {layers: [relu, tanh]}}, layers: [b: {trainable: "
                                      "false}], heads: [{output: b, loss: mean}]}",
                                      "test"));
  EXPECT_EQ(to_yaml(*model.find("layers")),
            same("[relu: {name: b/relu1, trainable: false}, tanh: {name: b/tanh1, trainable: false}]"));
  EXPECT_EQ(model.find("heads")->items[0].find("output")->text, "b/tanh1");
}

TEST(Blocks, MistakesSayWhatAndWhere) {
  EXPECT_THAT(message("{blocks: {b: {parameters: {n: null}, layers: [relu]}}, layers: [b]}"),
              HasSubstr("block b needs n"));
  EXPECT_THAT(message("{blocks: {b: {parameters: {units: 3}, layers: [relu]}}, layers: [b: {unit: 2}]}"),
              HasSubstr("Did you mean 'units'?"));
  EXPECT_THAT(message("layers:\n  - repeat: {times: 2, layers: [dense: {units: $(3 / 2)}]}"),
              testing::AllOf(HasSubstr("test:2:"), HasSubstr("3 / 2 is no whole number")));
  EXPECT_THAT(message("layers: [repeat: {times: 2, layers: [dense: {units: $j}]}]"),
              HasSubstr("there is no value 'j'"));
  EXPECT_THAT(message("layers: [repeat: {times: -1, layers: [relu]}]"),
              HasSubstr("times is not a whole number"));
  EXPECT_THAT(message("layers: [repeat: {times: 9, layers: [repeat: {times: 9999, layers: [relu]}]}]"),
              HasSubstr("more than 10000 layers"));
  EXPECT_THAT(message("{blocks: {b: {layers: [b]}}, layers: [b]}"), HasSubstr("blocks in each other"));
  // Without layers no limit of layers ends it.
  const std::string no_layers = "repeat: {times: 0, layers: [relu]}";
  EXPECT_THAT(message("layers: [repeat: {times: 9999, layers: [repeat: {times: 9999, layers: [" + no_layers +
                      "]}]}]"),
              HasSubstr("more than 100000 rounds of repeats"));
  EXPECT_THAT(
      message("{blocks: {dense: {layers: [relu]}}, layers: [relu, repeat: {times: 1, layers: [relu]}]}"),
      HasSubstr("that is a layer"));
  EXPECT_THAT(message("layers: [mlp]"), HasSubstr("block mlp needs classes"));
}

/// Fifteen blocks in each other, each of which gives `argument` to the next one.
std::string doubled(const std::string& argument, const std::string& first) {
  std::string blocks = "b0: {parameters: {v: 0}, layers: [dense: {units: 1, name: $v}]}";
  for (int i = 1; i < 15; ++i)
    blocks += fmt::format(", b{}: {{parameters: {{v: 0}}, layers: [b{}: {{v: {}}}]}}", i, i - 1, argument);
  return fmt::format("{{blocks: {{{}}}, layers: [b14: {{v: {}}}]}}", blocks, first);
}

TEST(Blocks, ValuesThatDoubleAtEachLevel) {
  EXPECT_THAT(message(doubled("$v$v", "abc")), HasSubstr("longer than 4096 characters"));
  EXPECT_THAT(message(doubled("[$v, $v, $v]", "[1, 2]")), HasSubstr("more than 100000 values"));
  EXPECT_EQ(message(doubled("$v", "abc")), "");
}

std::int64_t parameters(const std::string& net, const Shape& features) {
  const Node model = with_expanded_blocks(parse_yaml("layers: [" + net + "]", "test"));
  Graph graph = graph_from_config(*model.find("layers"), features);
  VariableStore variables;  // not committed: it has no memory
  graph.finish(variables);
  return variables.num_parameters();
}

TEST(BuiltInNets, HaveThePublishedNumberOfParameters) {
  EXPECT_EQ(parameters("lenet", Shape{28, 28, 1}), 61706);
  EXPECT_EQ(parameters("mlp: {classes: 10}", Shape{28, 28, 1}), 269322);
  // With identity shortcuts: 269,722, 464,154, 658,586, 853,018; the two 1x1 convolutions add 2,752.
  EXPECT_EQ(parameters("resnet20", Shape{32, 32, 3}), 269722 + 2752);
  EXPECT_EQ(parameters("resnet32", Shape{32, 32, 3}), 464154 + 2752);
  EXPECT_EQ(parameters("resnet44", Shape{32, 32, 3}), 658586 + 2752);
  EXPECT_EQ(parameters("resnet56", Shape{32, 32, 3}), 853018 + 2752);
  EXPECT_EQ(parameters("resnet18", Shape{224, 224, 3}), 11689512);
  EXPECT_EQ(parameters("resnet50", Shape{224, 224, 3}), 25557032);
  EXPECT_EQ(parameters("unet: {classes: 2}", Shape{64, 64, 3}), 31037698);
  EXPECT_EQ(parameters("cosmoflow", Shape{128, 128, 128, 4}), 3283060);
  EXPECT_EQ(parameters("lstm_net: {rows: 20000, classes: 1}", Shape{80}), 2691713);
  // 124,439,808 with the output layer's weights shared with the embedding.
  EXPECT_EQ(parameters("gpt2", Shape{1024}), 124439808 + 50257 * 768);
}

}  // namespace
}  // namespace lockstep
