// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/sections/overrides.h"

#include <gmock/gmock.h>

#include "config/yaml_node.h"
#include "support/error_support.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using testing::message_of;

Node with(const std::string& text, const std::string& assignment) {
  Node root = parse_yaml(text, "a.yaml");
  apply_override(root, assignment);
  return root;
}

TEST(Override, ReplacesAndAdds) {
  EXPECT_EQ(to_yaml(with("a: {b: 1}", "a.b=2")), "a:\n  b: 2\n");
  EXPECT_EQ(to_yaml(with("a: {b: 1}", "a.c.d=[1, x]")), "a:\n  b: 1\n  c:\n    d: [1, x]\n");
  EXPECT_EQ(to_yaml(with("a:", "a.b=x")), "a:\n  b: x\n");
  EXPECT_EQ(to_yaml(with("a: 1", "a=")), "a: null\n");
  EXPECT_EQ(to_yaml(with("a: 1", "a={b: 2}")), "a:\n  b: 2\n");
  EXPECT_EQ(to_yaml(with("a: 1", "a=x=y")), "a: \"x=y\"\n");
}

TEST(Override, ListsByIndexAndByName) {
  const std::string layers =
      "layers:\n- {type: dense, name: one, units: 1}\n- conv2d: {name: two, filters: 1}\n";
  EXPECT_EQ(with(layers, "layers.0.units=5").find("layers")->items[0].find("units")->text, "5");
  EXPECT_EQ(with(layers, "layers.one.units=6").find("layers")->items[0].find("units")->text, "6");
  EXPECT_EQ(
      with(layers, "layers.two.filters=7").find("layers")->items[1].find("conv2d")->find("filters")->text,
      "7");
  EXPECT_THAT(message_of([&] { with(layers, "layers.three.units=1"); }),
              HasSubstr("the list 'layers' has no item 'three'"));
  EXPECT_THAT(message_of([&] { with(layers, "layers.2.units=1"); }), HasSubstr("an index from 0 to 1"));
}

std::string layers_with(const std::string& layers, const std::string& assignment) {
  const Node root = with("model: {layers: " + layers + "}", "model.layers." + assignment);
  return to_yaml(*root.find("model")->find("layers"));
}

TEST(Override, NamesThatCheckPrints) {
  const std::string layers =
      "[dropout: {rate: 0.1}, dense: {units: 1}, relu, dropout: {rate: 0.2}, relu: {name: r}]";
  EXPECT_THAT(layers_with(layers, "dropout2.rate=0.5"), HasSubstr("- dropout:\n    rate: 0.5\n"));
  EXPECT_THAT(layers_with(layers, "dense.units=5"), HasSubstr("units: 5"));
  EXPECT_THAT(layers_with(layers, "relu1.name=first"), HasSubstr("- relu:\n    name: first"));
  EXPECT_THAT(layers_with(layers, "r=elu"), HasSubstr("- elu\n"));
  EXPECT_THAT(
      message_of([&] { layers_with(layers, "dropout.rate=1"); }),
      HasSubstr("has no item 'dropout'\n  Did you mean 'dropout1'? Give an index from 0 to 4, or the name of "
                "an item: dropout1, dense1, relu1, dropout2, r, dense."));
}

TEST(Override, TheNameOfAChoiceMayBeLeftOut) {
  EXPECT_EQ(to_yaml(with("optimizer: adam", "optimizer.learning_rate=1")),
            "optimizer:\n  adam:\n    learning_rate: 1\n");
  EXPECT_EQ(to_yaml(with("optimizer: {adam: {beta1: 0}}", "optimizer.learning_rate=1")),
            "optimizer:\n  adam:\n    beta1: 0\n    learning_rate: 1\n");
  // A key of the section stands next to the rule, and an option is the rule's.
  EXPECT_EQ(to_yaml(with("optimizer: {adam: {beta1: 0}}", "optimizer.shard=true")),
            "optimizer:\n  adam:\n    beta1: 0\n  shard: true\n");
  EXPECT_EQ(to_yaml(with("optimizer: {shard: true, adam: {beta1: 0}}", "optimizer.learning_rate=1")),
            "optimizer:\n  shard: true\n  adam:\n    beta1: 0\n    learning_rate: 1\n");
  EXPECT_EQ(to_yaml(with("optimizer: {adam: }", "optimizer.adam.beta1=1")),
            "optimizer:\n  adam:\n    beta1: 1\n");
  EXPECT_EQ(to_yaml(with("optimizer: {adam: {learning_rate: {exponential_decay: {initial: 1}}}}",
                         "optimizer.learning_rate.initial=2")),
            "optimizer:\n  adam:\n    learning_rate:\n      exponential_decay:\n        initial: 2\n");
  EXPECT_EQ(to_yaml(with("optimizer: {adam: {learning_rate: {exponential_decay: {initial: 1}}}}",
                         "optimizer.adam.beta1=2")),
            "optimizer:\n  adam:\n    learning_rate:\n      exponential_decay:\n        initial: 1\n    "
            "beta1: 2\n");
  EXPECT_EQ(to_yaml(with("model: {loss: focal}", "model.loss.gamma=1")),
            "model:\n  loss:\n    focal:\n      gamma: 1\n");
  // A section with one key is no choice.
  EXPECT_EQ(to_yaml(with("warm_start: {rename: {a: b}}", "warm_start.checkpoint=x")),
            "warm_start:\n  rename:\n    a: b\n  checkpoint: x\n");
}

TEST(Override, PositionIsTheCommandLine) {
  const Node root = with("a: 1", "m.n=[{k: 1}]");
  const Node& list = *root.find("m")->find("n");
  EXPECT_EQ(list.where, "--set m.n=[{k: 1}]");
  EXPECT_EQ(list.items[0].entry_where[0], "--set m.n=[{k: 1}]");
  EXPECT_EQ(root.entry_where[1], "--set m.n=[{k: 1}]");
}

TEST(Override, WrongForms) {
  EXPECT_THAT(message_of([] { with("a: 1", "a"); }, ErrorKind::usage),
              HasSubstr("--set a: not of the form key=value"));
  EXPECT_THAT(message_of([] { with("a: 1", "=1"); }, ErrorKind::usage), HasSubstr("not of the form"));
  EXPECT_THAT(message_of([] { with("a: 1", "a\nb\x1b"); }, ErrorKind::usage),
              HasSubstr("--set a b : not of"));
  EXPECT_THAT(message_of([] { with("a: 1", std::string(50'000, 'a')); }, ErrorKind::usage),
              HasSubstr("aaa...: not of"));
  EXPECT_THAT(message_of([] { with("a: 1", "a..b=1"); }), HasSubstr("not a path of keys"));
  EXPECT_THAT(message_of([] { with("a: 1", "a.b=1"); }),
              HasSubstr("'a' is a single value: there is no 'b' in it"));
  EXPECT_THAT(message_of([] { with("a: 1", "a=[1"); }), HasSubstr("--set a=[1: not valid YAML"));
}

}  // namespace
}  // namespace lockstep
