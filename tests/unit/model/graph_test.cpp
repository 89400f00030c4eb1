// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The graph: what is fused and what is not, names, and error messages.
#include "model/graph.h"

#include <gmock/gmock.h>

#include "model_testing.h"

namespace lockstep {
namespace {

std::vector<std::string> operations(const Graph& graph, bool training = true) {
  std::vector<std::string> names;
  for (const Graph::Operation& operation : graph.calls(training).operations)
    names.push_back(operation.layer->name());
  return names;
}

Graph finished(const std::string& yaml, const Shape& features = Shape{4, 4, 2}) {
  Graph graph = graph_from(yaml, features);
  VariableStore variables;
  graph.finish(variables);
  return graph;
}

/// The Error that `yaml` gives.
Error error_of(const std::string& yaml, const Shape& features = Shape{4, 4, 2}) {
  try {
    finished(yaml, features);
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error from " << yaml;
  return Error(ErrorKind::bug, "none");
}

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Graph, FusesAPlainBlock) {
  const Graph graph = finished(R"(
- conv2d: {filters: 3, kernel: 3}
- relu
- conv2d: {filters: 3, kernel: 3}
- batch_norm
- relu
- flatten
- dense: {units: 4}
- relu
- dense: {units: 2}
)");
  EXPECT_THAT(operations(graph), ElementsAre("conv2d1", "conv2d2", "batch_norm1", "dense1", "dense2"));
  EXPECT_EQ(graph.nodes()[1].fused_into, 0);
  EXPECT_EQ(graph.nodes()[4].fused_into, 3);
  EXPECT_EQ(graph.nodes()[7].fused_into, 6);
}

TEST(Graph, FusesAResidualBlock) {
  const Graph graph = finished(R"(
- conv2d: {name: stem, filters: 3, kernel: 3}
- conv2d: {name: conv, filters: 3, kernel: 3}
- batch_norm: {name: bn}
- add: {name: sum, inputs: [bn, stem]}
- relu: {name: last}
)");
  EXPECT_THAT(operations(graph), ElementsAre("stem", "conv", "bn"));
  EXPECT_EQ(graph.nodes()[3].fused_into, 2);
  EXPECT_EQ(graph.nodes()[4].fused_into, 2);
  const Graph::Calls calls = graph.calls(true);
  EXPECT_THAT(calls.operations[2].inputs, ElementsAre(2, 1));
  EXPECT_THAT(calls.values[1].consumers, ElementsAre(1, 2));
}

TEST(Graph, LaterBatchNormFusesTheAddition) {
  const Graph graph = finished(R"(
- conv2d: {name: left, inputs: [features], filters: 3, kernel: 3}
- batch_norm: {name: left_bn}
- conv2d: {name: right, inputs: [features], filters: 3, kernel: 1}
- batch_norm: {name: right_bn}
- add: {name: sum, inputs: [left_bn, right_bn]}
- relu
)");
  EXPECT_THAT(operations(graph), ElementsAre("left", "left_bn", "right", "right_bn"));
  EXPECT_EQ(graph.nodes()[4].fused_into, 3);
}

TEST(Graph, ValuesWithOtherReadersAreNotFused) {
  EXPECT_THAT(
      operations(finished(
          "[conv2d: {name: c, filters: 2, kernel: 1}, relu: {name: r}, add: {name: s, inputs: [c, r]}]")),
      ElementsAre("c", "r", "s"));
  EXPECT_THAT(
      operations(finished("[batch_norm: {name: b}, relu: {name: r}, add: {name: s, inputs: [b, r]}]")),
      ElementsAre("b", "r", "s"));
  // a batch_norm that is added to its own relu, and to itself
  EXPECT_THAT(operations(finished("[batch_norm: {name: b}, add: {name: s, inputs: [b, b]}]")),
              ElementsAre("b", "s"));
  // A relu after the addition is fused into the add if no batch_norm can take both.
  EXPECT_THAT(
      operations(finished("[tanh: {name: t}, add: {name: s, inputs: [t, features]}, relu: {name: r}]")),
      ElementsAre("t", "s"));
  // two relus: the second one changes nothing
  EXPECT_THAT(operations(finished("[batch_norm: {name: b}, relu: {name: r1}, relu: {name: r2}]")),
              ElementsAre("b", "r2"));
  // an addition after a fused relu is not fused into the batch_norm
  EXPECT_THAT(
      operations(finished("[batch_norm: {name: b}, relu: {name: r}, add: {name: s, inputs: [r, features]}]")),
      ElementsAre("b", "s"));
}

TEST(Graph, ViewsHaveNoOperation) {
  const Graph graph = finished("[flatten, dropout: {rate: 0.5}, dense: {units: 2}]");
  EXPECT_THAT(operations(graph, true), ElementsAre("dropout1", "dense1"));
  EXPECT_THAT(operations(graph, false), ElementsAre("dense1"));
  EXPECT_EQ(graph.calls(false).operations[0].inputs[0], 0);
}

TEST(Graph, GradientsStartAtTheFirstVariable) {
  const Graph::Calls calls =
      finished("[tanh, conv2d: {filters: 2, kernel: 1}, tanh, flatten, dense: {units: 2}]").calls(true);
  std::vector<bool> wanted;
  for (const Graph::Value& value : calls.values) wanted.push_back(value.wants_gradient);
  EXPECT_THAT(wanted, ElementsAre(false, false, true, true, true));
}

TEST(Graph, AutomaticNamesCountPerKind) {
  const Graph graph = finished("[relu, tanh, relu, flatten, dense: {units: 2}]");
  std::vector<std::string> names;
  for (const Graph::Node& node : graph.nodes()) names.push_back(node.layer->name());
  EXPECT_THAT(names, ElementsAre("relu1", "tanh1", "relu2", "flatten1", "dense1"));
}

TEST(Graph, CountsParametersAndFlops) {
  const Graph graph =
      finished("[conv2d: {filters: 3, kernel: 3, padding: valid}, batch_norm, flatten, dense: {units: 5}]");
  EXPECT_EQ(graph.nodes()[0].parameters, 3 * 3 * 2 * 3 + 3);
  EXPECT_EQ(graph.nodes()[1].parameters, 6);
  EXPECT_EQ(graph.nodes()[3].parameters, 12 * 5 + 5);
  EXPECT_EQ(graph.shape(graph.outputs()[0]), Shape{5});
  EXPECT_EQ(graph.flops_per_sample(), 2.0 * 4 * 18 * 3 + 2.0 * 12 * 5);
}

TEST(GraphErrors, UnusedLayer) {
  const Error error = error_of("[relu: {name: left}, tanh: {name: right, inputs: [features]}]");
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_THAT(error.what(), HasSubstr("left is read by no other layer"));
}

TEST(GraphErrors, DuplicateNames) {
  EXPECT_THAT(error_of("[relu: {name: same}, tanh: {name: same}]").what(),
              HasSubstr("two layers are named 'same'"));
  EXPECT_THAT(error_of("[relu: {name: features}]").what(), HasSubstr("no layer can be named 'features'"));
}

TEST(GraphErrors, UnknownInputSuggests) {
  const Error error = error_of("[relu: {name: first}, tanh: {inputs: [frist]}]");
  EXPECT_THAT(error.what(), HasSubstr("there is no layer 'frist' before it"));
  EXPECT_THAT(error.advice(), HasSubstr("Did you mean 'first'?"));
  EXPECT_THAT(error.where(), HasSubstr("test:1:"));
  // An input must be an earlier layer.
  EXPECT_THAT(error_of("[relu: {name: first, inputs: [second]}, tanh: {name: second}]").what(),
              HasSubstr("no layer 'second' before it"));
}

TEST(GraphErrors, ShapeMismatch) {
  const Error error = error_of("\n- dense: {name: d, units: 3}\n");
  EXPECT_THAT(error.what(), HasSubstr("put a flatten before it"));
  EXPECT_THAT(error.where(), HasSubstr("test:2:"));
  EXPECT_THAT(error_of("[conv2d: {filters: 2, kernel: 5, padding: valid}]").what(),
              HasSubstr("does not fit"));
  EXPECT_THAT(error_of("[conv2d: {filters: 3, kernel: 1, groups: 2}]").what(),
              HasSubstr("multiples of the groups"));
  EXPECT_THAT(error_of("[flatten, max_pool]").what(), HasSubstr("height x width x channels"));
  EXPECT_THAT(error_of("[flatten: {name: f}, add: {inputs: [f, features]}]").what(),
              HasSubstr("of one shape"));
  EXPECT_THAT(error_of("[add]").what(), HasSubstr("takes two inputs"));
  EXPECT_THAT(error_of("[relu: {inputs: [features, features]}]").what(), HasSubstr("takes one input"));
  EXPECT_THAT(error_of("[max_pool: {window: 2, padding: [2, 0, 0, 0]}]").what(),
              HasSubstr("padding must be smaller"));
}

TEST(GraphErrors, ShapeMismatchNamesTheInputLayers) {
  EXPECT_THAT(
      error_of("[flatten: {name: flat}, dense: {name: d, units: 3}, add: {name: sum, inputs: [d, flat]}]")
          .what(),
      HasSubstr("it reads d (3), flat (32)"));
}

TEST(GraphErrors, SharedVariables) {
  const std::string tower = "[flatten, dense: {name: tower, units: 32}, ";
  EXPECT_THAT(error_of(tower + "dense: {name: d, units: 32, shared_with: towr}]").advice(),
              HasSubstr("'tower'"));
  EXPECT_THAT(error_of(tower + "tanh: {shared_with: tower}]").what(),
              HasSubstr("a tanh cannot use the variables of tower, a dense"));
  EXPECT_THAT(error_of(tower + "dense: {name: d, units: 7, shared_with: tower}]").what(),
              HasSubstr("layer d cannot use the variables of tower: it needs a kernel of 32x7"));
  EXPECT_THAT(error_of(tower + "dense: {units: 32, bias: false, shared_with: tower}]").what(),
              HasSubstr("only some of the variables of tower"));
  EXPECT_THAT(error_of("[tanh: {name: a}, tanh: {name: b, shared_with: a}]").what(),
              HasSubstr("a has no variables to share"));
  EXPECT_THAT(error_of("[batch_norm: {name: a}, batch_norm: {name: b, shared_with: a}]").what(),
              HasSubstr("a batch_norm cannot share variables"));
  const std::string table = "[flatten, embedding: {name: e, rows: 9, units: 4}, ";
  EXPECT_THAT(error_of(table + "tied_dense: {name: t, units: 9}]").what(),
              HasSubstr("layer t: a tied_dense has no variables of its own"));
  EXPECT_THAT(error_of(table + "tied_dense: {name: t, units: 8, shared_with: e}]").what(),
              HasSubstr("layer t cannot use the variables of e: it needs a embeddings of 8x4"));
  EXPECT_THAT(error_of(tower + "tied_dense: {units: 9, shared_with: tower}]").advice(),
              HasSubstr("Name an embedding"));
}

TEST(GraphErrors, OptionsAreChecked) {
  EXPECT_THAT(error_of("[dense: {unit: 3}]").what(), HasSubstr("units"));
  EXPECT_THAT(error_of("[dense: {}]").what(), HasSubstr("units"));
  EXPECT_THAT(error_of("[dens: {units: 3}]").what(), HasSubstr("dense"));
  EXPECT_THAT(error_of("[dropout: {rate: 1.5}]").what(), HasSubstr("rate"));
  EXPECT_THAT(error_of("[conv2d: {filters: 2, kernel: [1, 2, 3]}]").what(), HasSubstr("kernel"));
  EXPECT_THAT(error_of("[conv2d: {filters: 2, kernel: 3, padding: smae}]").what(), HasSubstr("padding"));
  for (const char* name :
       {"a b", "a//b", ".", "./a", "a/..", "a\\0b", "", "/a", "a/", "a:1", "a*", "caf\xC3\xA9"})
    EXPECT_THAT(error_of(fmt::format("[relu: {{name: \"{}\"}}]", name)).what(), HasSubstr("not a layer name"))
        << name;
  std::string deep = "a";
  for (int i = 0; i < 89; ++i) deep += "/a";
  EXPECT_THAT(error_of("[relu: {name: " + deep + "}]").what(), HasSubstr("it has 90 parts"));
  EXPECT_THAT(error_of("[relu: {name: " + std::string(201, 'a') + "}]").what(),
              HasSubstr("it has 201 characters"));
  EXPECT_THAT(
      error_of("[flatten, dense: {name: a, units: 2}, dense: {name: a/kernel, units: 2}]").what(),
      HasSubstr("layer a/kernel: its variable a/kernel/kernel lies below another layer's variable a/kernel"));
  EXPECT_THAT(error_of("[]").what(), HasSubstr("list of layers"));
}

TEST(GraphErrors, SizesThatAreTooLarge) {
  EXPECT_THAT(error_of("[dense: {units: 2305843009213693952}]").what(), HasSubstr("must be [1, 16777216]"));
  EXPECT_THAT(error_of("[flatten, dense: {units: 16777216}, dense: {name: wide, units: 16777216}]").what(),
              HasSubstr("layer wide: variable wide/kernel of 16777216x16777216 would take 1.1 PB"));
  EXPECT_THAT(error_of("[upsample: {name: up, factor: 65536}, upsample: {factor: 65536}]").what(),
              HasSubstr("would take"));
  EXPECT_THAT(error_of("[reshape: {shape: [4294967296, 4294967296]}]").what(),
              HasSubstr("do not fit the shape"));
  std::string many = "[relu";
  for (int i = 0; i < 10'000; ++i) many += ", relu";
  EXPECT_THAT(error_of(many + "]").what(), HasSubstr("more than 10000 layers"));
}

}  // namespace
}  // namespace lockstep
