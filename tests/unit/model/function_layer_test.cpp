// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Layers made of functions, and registered losses: they are found by name, and rejected where a gradient
// would have to pass.
#include "model/function_layer.h"

#include <gmock/gmock.h>

#include "error_text.h"
#include "model/loss.h"
#include "model_testing.h"

namespace lockstep {
namespace {

using testing::HasSubstr;

/// "pair_sums": {n} -> {n / 2}.
void register_pair_sums() {
  static const bool once = [] {
    register_function(
        "pair_sums",
        [](std::span<const Shape> inputs) -> std::vector<Shape> {
          LOCKSTEP_REQUIRE(inputs[0].rank() == 1 && inputs[0][0] % 2 == 0, ErrorKind::config,
                           "pair_sums takes an even number of features, not {}", inputs[0].to_string());
          return {Shape{inputs[0][0] / 2}};
        },
        [](const FunctionCall& call) {
          for (std::int64_t i = 0; i < call.n * call.output_shapes[0][0]; ++i)
            call.outputs[0][i] = call.inputs[0][2 * i] + call.inputs[0][2 * i + 1];
        });
    return true;
  }();
  EXPECT_TRUE(once);
}

/// What prepare() of the first operation says.
std::string prepared(bool training, bool wants_gradient) {
  Graph graph = graph_from("[pair_sums, dense: {units: 1}]", Shape{4});
  VariableStore variables;
  graph.finish(variables);
  const std::int64_t counts[] = {2};
  const bool wants[] = {wants_gradient};
  return error_text([&] {
    graph.nodes()[0].layer->prepare({cpu_kernels(), cpu_device(), 1, training, counts, wants});
  });
}

TEST(FunctionLayer, ComputesEachSampleOfAMicroshard) {
  register_pair_sums();
  Graph graph = graph_from("[pair_sums, dense: {units: 1}]", Shape{4});
  Layer& layer = *graph.nodes()[0].layer;
  EXPECT_STREQ(layer.kind(), "pair_sums");
  EXPECT_EQ(graph.nodes()[0].outputs[0], Shape({2}));
  const float x[] = {1, 2, 3, 4, 5, 6, 7, 8};
  float y[4] = {};
  const ConstData inputs[] = {x};
  const Data outputs[] = {y};
  VariableStore variables;
  Lane lane;
  Pass pass{cpu_kernels(), lane,    variables, true,    2,       0,       0,       0, 0,
            inputs,        outputs, nullptr,   nullptr, nullptr, nullptr, nullptr, 0};
  layer.forward(pass);
  EXPECT_THAT(y, testing::ElementsAre(3, 7, 11, 15));
}

TEST(FunctionLayer, IsRejectedWhereAGradientWouldPass) {
  register_pair_sums();
  EXPECT_EQ(prepared(true, false), "no error");
  EXPECT_EQ(prepared(false, true), "no error");
  EXPECT_THAT(prepared(true, true),
              HasSubstr("layer pair_sums1: pair_sums is a function without a backward pass"));
}

TEST(FunctionLayer, ErrorStatesTheShapesItTakes) {
  register_pair_sums();
  EXPECT_THAT(error_text([] { graph_from("[pair_sums]", Shape{3}); }),
              HasSubstr("an even number of features, not 3"));
}

TEST(FunctionLayer, NamesAreUnique) {
  register_pair_sums();
  EXPECT_THAT(error_text([] { register_function("relu", nullptr, nullptr); }),
              HasSubstr("'relu' exists already"));
}

TEST(RegisterLoss, RegisteredLossIsFoundByName) {
  const LossEntry mine{"mine", "for this test", {}, [](const Params&) -> std::unique_ptr<Loss> {
                         return make_loss(Node::scalar("softmax_cross_entropy"));
                       }};
  EXPECT_THAT(error_text([] { make_loss(Node::scalar("mine")); }), HasSubstr("unknown loss 'mine'"));
  loss_table().add(mine);
  EXPECT_NE(make_loss(Node::scalar("mine")), nullptr);
  EXPECT_THAT(error_text([&] { loss_table().add(mine); }), HasSubstr("exists already"));
}

}  // namespace
}  // namespace lockstep
