// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Types of activations in the graph: where casts are inserted, and what a cast does to values and gradients.
#include <gmock/gmock.h>

#include "model/cast.h"
#include "model/graph.h"
#include "model/heads.h"
#include "model/heads_options.h"
#include "model/layer_runner.h"
#include "model_testing.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::Pair;

/// A layer of two inputs at most that says in which types it works, and does nothing.
class Typed final : public Layer {
 public:
  enum class Takes { float32, models, given, ids };
  Typed(std::string name, Takes takes) : Layer(std::move(name)), takes_(takes) {}
  LayerTraits traits() const override {
    const TypeRule outputs = takes_ == Takes::float32 ? TypeRule::float32
                             : takes_ == Takes::given ? TypeRule::first_input
                                                      : TypeRule::model;
    return {
        .kind = "typed", .inputs = takes_ == Takes::ids ? TypeRule::float32 : outputs, .outputs = outputs};
  }
  std::vector<Shape> infer(std::span<const Shape> inputs) override { return {inputs[0]}; }
  void declare(VariableStore& variables) override {
    variables.declare(name() + "/w", Shape{1}, make_initializer(parse_yaml("zeros", "test")));
  }
  void forward(const Pass&) override {}
  void backward(const Pass&) override {}

 private:
  Takes takes_;
};

struct Draft {
  std::string name;
  Typed::Takes takes;
  std::vector<std::string> inputs = {};
};

/// Operations by name, with the types of their outputs.
std::vector<std::pair<std::string, DType>> operations(const std::vector<Draft>& drafts, DType type,
                                                      Graph::Calls* out = nullptr) {
  Graph graph(Shape{3});
  graph.hold_activations_as(type);
  for (const Draft& draft : drafts) graph.add(std::make_unique<Typed>(draft.name, draft.takes), draft.inputs);
  VariableStore variables;
  graph.finish(variables);
  const Graph::Calls calls = graph.calls(true);
  std::vector<std::pair<std::string, DType>> found;
  for (const Graph::Operation& operation : calls.operations)
    found.emplace_back(operation.layer->name(),
                       calls.values[static_cast<std::size_t>(operation.outputs[0])].type);
  if (out != nullptr) *out = calls;
  return found;
}

constexpr auto kFloat = Typed::Takes::float32, kModels = Typed::Takes::models, kGiven = Typed::Takes::given,
               kIds = Typed::Takes::ids;
constexpr DType f32 = DType::f32, bf16 = DType::bf16;

TEST(GraphTypes, Float32ModelHasNoCasts) {
  EXPECT_THAT(operations({{"a", kModels}, {"b", kFloat}, {"c", kGiven}}, f32),
              ElementsAre(Pair("a", f32), Pair("b", f32), Pair("c", f32)));
}

TEST(GraphTypes, CastsAreWhereTypesDiffer) {
  EXPECT_THAT(operations({{"a", kModels}, {"b", kModels}, {"c", kFloat}, {"d", kModels}}, bf16),
              ElementsAre(Pair("features as bfloat16", bf16), Pair("a", bf16), Pair("b", bf16),
                          Pair("b as float32", f32), Pair("c", f32), Pair("c as bfloat16", bf16),
                          Pair("d", bf16), Pair("d as float32", f32)));
}

TEST(GraphTypes, ValueIsCastOnceForAllReaders) {
  Graph::Calls calls;
  EXPECT_THAT(
      operations({{"a", kModels}, {"b", kFloat, {"a"}}, {"c", kFloat, {"a"}}, {"d", kFloat, {"b", "c", "a"}}},
                 bf16, &calls),
      ElementsAre(Pair("features as bfloat16", bf16), Pair("a", bf16), Pair("a as float32", f32),
                  Pair("b", f32), Pair("c", f32), Pair("d", f32)));
  const Graph::Value& cast = calls.values[3];
  EXPECT_THAT(cast.consumers, ElementsAre(3, 4, 5));
  EXPECT_TRUE(cast.wants_gradient);
}

TEST(GraphTypes, MovesKeepTheirTypeAndIdsStayFloat32) {
  EXPECT_THAT(operations({{"slice", kGiven}, {"embedding", kIds}, {"turn", kGiven}}, bf16),
              ElementsAre(Pair("slice", f32), Pair("embedding", bf16), Pair("turn", bf16),
                          Pair("turn as float32", f32)));
}

/// The names of casts, and the types of the values that the losses of `heads` read.
std::pair<std::vector<std::string>, std::vector<DType>> read_by_losses(const std::string& heads,
                                                                       bool training) {
  Graph graph(Shape{3});
  graph.hold_activations_as(bf16);
  graph.add(std::make_unique<Typed>("a", kModels));
  const Node section = parse_yaml(heads, "test");
  heads_from_config(Params(section, kHeadsOptions, "model")).add_outputs(graph);
  VariableStore variables;
  graph.finish(variables);
  const Graph::Calls calls = graph.calls(training);
  std::pair<std::vector<std::string>, std::vector<DType>> found;
  for (const auto& cast : calls.casts) found.first.push_back(cast->name());
  for (const int output : calls.outputs)
    found.second.push_back(calls.values[static_cast<std::size_t>(output)].type);
  return found;
}

TEST(GraphTypes, LossesThatTakeSixteenBitsGetNoCastInTraining) {
  const auto casts = [](const std::string& heads, bool training = true) {
    return read_by_losses(heads, training);
  };
  const std::string plain = "{loss: softmax_cross_entropy}";
  EXPECT_THAT(casts(plain), Pair(ElementsAre("features as bfloat16"), ElementsAre(bf16)));
  // Predictions and metrics of an evaluation are float32.
  EXPECT_THAT(casts(plain, false),
              Pair(ElementsAre("features as bfloat16", "a as float32"), ElementsAre(f32)));
  for (const char* loss :
       {"{loss: mean_squared_error}", "{loss: {softmax_cross_entropy: {label_smoothing: 0.1}}}",
        "{loss: {softmax_cross_entropy: {class_weights: [1, 2, 3]}}}", "{loss: kl_divergence}",
        "{heads: [{name: x, output: a, loss: softmax_cross_entropy, labels: [0, 1], sample_weights: 1}]}"})
    EXPECT_THAT(casts(loss), Pair(ElementsAre("features as bfloat16", "a as float32"), ElementsAre(f32)))
        << loss;
  EXPECT_THAT(casts("{heads: [{name: x, output: a, loss: softmax_cross_entropy, labels: [0, 1]}, "
                    "{name: y, output: a, loss: mean_squared_error, labels: [1, 4]}]}"),
              Pair(ElementsAre("features as bfloat16", "a as float32"), ElementsAre(bf16, f32)));
}

TEST(GraphTypes, CastRoundsForwardAndBackward) {
  const auto cast = make_cast("cast", Shape{3}, DType::f32, DType::f16);
  LayerRunner run(*cast, {Shape{3}}, {.microshards = {1, 1}, .type = DType::f16});
  run.input(0) = {1.0F, 2049.0F, 1e6F, 0x1p-25F, -0.1F, 3.0F};
  run.forward();
  const float tenth = to_float(from_float<Float16>(-0.1F));
  EXPECT_THAT(run.output(), ElementsAre(1.0F, 2048.0F, INFINITY, 0.0F, tenth, 3.0F));
  run.output_gradient() = {2.0F, 4.0F, 6.0F, 0.1F, -2.0F, 0.0F};
  run.backward();
  EXPECT_THAT(run.input_gradient(0), ElementsAre(2.0F, 4.0F, 6.0F, -tenth, -2.0F, 0.0F));
}

}  // namespace
}  // namespace lockstep
