// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What TensorBoard's pages show of a run: the graph, times of layers, curves of metrics.
#include "session/run_graph.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "config/yaml_node.h"
#include "model/metrics/score_curves.h"
#include "session/layer_times.h"
#include "session/pr_curve_summary.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(RunGraph, LayersShapesAndSynchronisation) {
  Graph graph = graph_from_config(parse_yaml(R"(
- conv2d: {name: conv, filters: 3, kernel: 3, bias: false}
- batch_norm: {name: bn}
- relu: {name: act}
- flatten: {name: flat}
- dense: {name: out, units: 2}
)",
                                             "net"),
                                  Shape{4, 4, 2});
  VariableStore variables;
  graph.finish(variables);
  const std::vector<GraphNode> nodes = graph_nodes(graph, "/device:CPU:0");
  std::vector<std::string> names;
  for (const GraphNode& node : nodes) names.push_back(node.name + " " + node.op);
  EXPECT_THAT(names, ElementsAre("features Input", "conv conv2d", "bn_synchronisation SumOverMicroshards",
                                 "bn batch_norm", "act relu", "flat flatten", "out dense"));
  EXPECT_THAT(nodes[1].inputs, ElementsAre("features"));
  EXPECT_THAT(nodes[1].output_shapes, ElementsAre(ElementsAre(-1, 4, 4, 3)));
  EXPECT_THAT(nodes[1].numbers, ::testing::Contains(Pair("parameters", 54)));
  EXPECT_THAT(nodes[3].inputs, ElementsAre("conv", "^bn_synchronisation"));
  EXPECT_THAT(nodes[4].texts, ElementsAre(Pair("computed_by", "bn")));
  EXPECT_EQ(nodes[6].device, "/device:CPU:0");
}

// The batch_norm computes the addition after it, and reads its other operand; a person has not written that.
TEST(RunGraph, AResidualIsAnEdgeOfTheAdditionAlone) {
  Graph graph = graph_from_config(parse_yaml(R"(
- conv2d: {name: first, filters: 2, kernel: 3}
- conv2d: {name: conv, filters: 2, kernel: 3, bias: false}
- batch_norm: {name: bn}
- add: {name: sum, inputs: [bn, first]}
- relu: {name: act}
)",
                                             "net"),
                                  Shape{4, 4, 2});
  VariableStore variables;
  graph.finish(variables);
  ASSERT_EQ(graph.nodes()[3].fused_into, 2);
  const std::vector<GraphNode> nodes = graph_nodes(graph, "/device:CPU:0");
  const auto inputs_of = [&](const char* name) {
    return std::ranges::find(nodes, name, &GraphNode::name)->inputs;
  };
  EXPECT_THAT(inputs_of("bn"), ElementsAre("conv", "^bn_synchronisation"));
  EXPECT_THAT(inputs_of("sum"), ElementsAre("bn", "first"));
}

TEST(RunGraph, LossesOfHeadsAndTheirSum) {
  Graph graph = graph_from_config(
      parse_yaml("[dense: {name: loss, units: 3}, softmax: {name: b, inputs: loss}]", "net"), Shape{4});
  const auto head = [](const char* name, const char* output, double weight) {
    return Head{.name = name,
                .output = output,
                .loss = make_loss(Node::scalar("softmax_cross_entropy")),
                .weight = weight};
  };
  std::vector<Head> two;
  two.push_back(head("one", "loss", 1));
  two.push_back(head("two", "b", 0.5));
  const Heads heads(std::move(two));
  heads.add_outputs(graph);
  VariableStore variables;
  graph.finish(variables);
  const std::vector<GraphNode> nodes = loss_nodes(graph, heads, "/device:CPU:0");
  ASSERT_EQ(nodes.size(), 3U);
  EXPECT_EQ(nodes[0].name, "loss_/one");  // a layer is called loss
  EXPECT_THAT(nodes[0].inputs, ElementsAre("loss"));
  EXPECT_THAT(nodes[1].inputs, ElementsAre("b"));
  EXPECT_THAT(nodes[1].texts, ElementsAre(Pair("weight", "0.5")));
  EXPECT_THAT(nodes[2].inputs, ElementsAre("loss_/one", "loss_/two"));

  const std::vector<GraphNode> after =
      update_nodes(graph, nodes.back(), {.optimizer = "adam", .clips = "norm"}, "/device:GPU:0");
  ASSERT_EQ(after.size(), 2U);
  EXPECT_EQ(after[0].op, "SumOverMicroshards");
  EXPECT_THAT(after[0].inputs, ElementsAre("loss_/sum"));
  EXPECT_THAT(after[0].numbers, ElementsAre(Pair("parameters", 15)));
  EXPECT_THAT(after[0].texts, ElementsAre(Pair("clipped_by", "norm")));
  EXPECT_EQ(after[1].op, "adam");
  EXPECT_THAT(after[1].inputs, ElementsAre("gradients"));
  EXPECT_EQ(after[1].device, "/device:GPU:0");
}

TraceSpan span(const char* name, const char* category, std::int64_t begin, std::int64_t end) {
  TraceSpan made{.category = category, .begin_ns = begin, .end_ns = end};
  std::copy_n(name, std::string_view(name).size(), made.name.begin());
  return made;
}

TEST(LayerTimes, ForwardAndBackwardOfAllThreadsPerStep) {
  const std::vector<ThreadTrace> threads = {
      {.thread = "a",
       .spans = {span("second", "forward", 5000, 7000), span("first", "forward", 1000, 5000),
                 span("first", "backward", 8000, 10000), span("sum", "communication", 0, 9000)}},
      {.thread = "b", .spans = {span("first", "forward", 2000, 4000)}}};
  const std::vector<DeviceTimes> times = layer_times(threads, 2, "/device:CPU:0");
  ASSERT_EQ(times.size(), 1U);
  ASSERT_EQ(times[0].nodes.size(), 2U);
  const NodeTime &first = times[0].nodes[0], &second = times[0].nodes[1];
  EXPECT_EQ(first.node, "first");
  EXPECT_EQ(first.end_us - first.begin_us, 4) << "(4 + 2 + 2) / 2 us";
  EXPECT_EQ(first.label, "forward 3.0 us, backward 1.0 us");
  EXPECT_EQ(second.node, "second");
  EXPECT_EQ(second.begin_us, first.end_us);
  EXPECT_EQ(second.end_us - second.begin_us, 1);
}

TEST(PrCurveSummaries, CountsAtEvenThresholds) {
  // Scores 0.9 (positive), 0.6 (negative), 0.3 (positive).
  const Curve curve{
      .points = {{INFINITY, 0, 0, INFINITY}, {0.75, 1, 0, 0.9}, {0.45, 1, 1, 0.6}, {0.3 - 1e-7, 2, 1, 0.3}},
      .exact = true,
      .positives = 2,
      .negatives = 1};
  std::vector<double> table;
  append_curve(curve, 0, 3, table);
  EXPECT_THAT(table, ElementsAre(0, 0, 2, 1, 0, 0,    // all
                                 0, 0.5, 1, 1, 0, 1,  // 0.9 and 0.6
                                 0, 1, 0, 0, 1, 2));
  const auto values = pr_curve_summaries("auc", {kCurveTable, kCurveTableColumns, table});
  ASSERT_EQ(values.size(), 1U);
  EXPECT_EQ(values[0].tag, "auc/pr_curves");
  append_curve(curve, 1, 3, table);
  const auto two = pr_curve_summaries("auc", {kCurveTable, kCurveTableColumns, table});
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[1].tag, "auc/class_1/pr_curves");
  EXPECT_EQ(std::get<TensorData>(two[1].value).shape, (std::vector<std::int64_t>{6, 3}));
}

}  // namespace
}  // namespace lockstep
