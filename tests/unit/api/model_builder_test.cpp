// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Models in C++: what they are as a configuration, and how mistakes are reported.
#include "api/model_builder.h"

#include <gmock/gmock.h>

#include "api/input.h"
#include "api/options.h"
#include "config/params.h"
#include "config/yaml_node.h"
#include "core/error.h"

namespace lockstep {
namespace {

using testing::HasSubstr;

std::string yaml(const std::string& text) { return to_yaml(parse_yaml(text, "test")); }

TEST(ModelBuilder, AModelIsTheListOfItsLayers) {
  const Features features;
  LayerOutput x = layers::conv2d(features, {.name = "conv1", .filters = 32, .kernel = {3, 5}, .bias = false});
  x = layers::relu(x);
  x = layers::dropout(x, {.rate = 0.25});
  const LayerOutput logits = layers::dense(layers::flatten(x), {.units = 10});
  EXPECT_EQ(logits.name(), "dense1");
  const TrainingLoss loss = losses::softmax_cross_entropy(LabelColumns(), logits, {.label_smoothing = 0.1});
  EXPECT_EQ(to_yaml(loss.model_section()), yaml(R"(
layers:
  - conv2d: {name: conv1, filters: 32, kernel: [3, 5], bias: false}
  - relu
  - dropout: {rate: 0.25}
  - flatten
  - dense: {units: 10}
loss: {softmax_cross_entropy: {label_smoothing: 0.1}}
)"));
}

TEST(ModelBuilder, BranchesSharedLayersAndSeveralLosses) {
  const Features features;
  const LabelColumns labels;
  const LayerOutput left = layers::dense(features["left"], {.name = "tower", .units = 4});
  const LayerOutput right =
      add_layer_shared(features["right"], left, {"dense", layers::Dense{.units = 4}.node()});
  const LayerOutput both = layers::concat({left, right});
  const LayerOutput kind = layers::dense(both, {.name = "kind", .units = 3});
  const LayerOutput size = layers::dense(both, {.name = "size", .units = 1});
  const TrainingLoss loss = losses::softmax_cross_entropy(labels["kind"], kind) +
                            0.5 * losses::mean_squared_error(labels.columns(1, 2), size, {},
                                                             {.name = "metres", .sample_weights = 2});
  EXPECT_EQ(to_yaml(loss.model_section()), yaml(R"(
layers:
  - dense: {name: tower, units: 4, inputs: [left]}
  - dense: {units: 4, shared_with: tower, inputs: [right]}
  - concat: {inputs: [tower, dense2]}
  - dense: {name: kind, units: 3}
  - dense: {name: size, units: 1, inputs: [concat1]}
heads:
  - {name: kind, output: kind, loss: softmax_cross_entropy, labels: kind}
  - {name: metres, output: size, loss: mean_squared_error, weight: 0.5, labels: [1, 2], sample_weights: 2}
)"));
}

TEST(ModelBuilder, LayersOfAConfigurationAreTheSameAfterwards) {
  const std::string text = R"(
- dense: {name: first, units: 8}
- relu
- dense: {units: 8}
- add: {name: sum, inputs: [first, dense2]}
- dense: {units: 3}
)";
  const Features features;
  const LayerOutput last = add_layers(features, parse_yaml(text, "test"));
  const Node section = losses::softmax_cross_entropy(LabelColumns(), last).model_section();
  EXPECT_EQ(to_yaml(*section.find("layers")), yaml(text));
  EXPECT_EQ(to_yaml(*section.find("loss")), "softmax_cross_entropy\n");
}

TEST(ModelBuilder, OptionsAreWrittenAsInAConfiguration) {
  const Node node = optimizers::adam({.learning_rate = schedules::exponential_decay(
                                          {.initial = 0.004, .decay_steps = 100, .decay_rate = 0.8})})
                        .node();
  EXPECT_EQ(
      to_yaml(node),
      yaml(
          "adam: {learning_rate: {exponential_decay: {initial: 0.004, decay_steps: 100, decay_rate: 0.8}}}"));
  EXPECT_EQ(to_yaml(options_map({{"a", nullptr}, {"b", true}, {"c", "on"}, {"d", 1e-7}, {"e", 64.0}})),
            yaml("{a: null, b: true, c: \"on\", d: 1e-07, e: 64}"));
  EXPECT_EQ(to_yaml(metrics::accuracy().node()), "accuracy\n");
}

TEST(ModelBuilder, MistakesAreNamed) {
  const auto message = [](auto body) {
    try {
      body();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const Features one, other;
  EXPECT_THAT(message([&] {
                layers::add({layers::relu(one), layers::relu(other)});
              }),
              HasSubstr("two models"));
  EXPECT_THAT(message([&] {
                layers::dense(one, {.name = "d", .units = 1});
                layers::dense(one, {.name = "d", .units = 1});
              }),
              HasSubstr("two layers are called 'd'"));
  EXPECT_THAT(message([] { static_cast<void>(TrainingLoss().model_section()); }), HasSubstr("no loss"));
  const Input csv = readers::csv({.path = "a.csv", .shape = 4}), npy = readers::npy({.features = "a.npy"});
  EXPECT_THAT(message([&] { Input::data_section(&csv, &npy); }), HasSubstr("read by csv"));
}

TEST(ModelBuilder, InputsAreTheSectionData) {
  const Input train = readers::csv({.path = "a.csv", .shape = {2, 2}}),
              eval = readers::csv({.path = "b.csv", .shape = {2, 2}});
  EXPECT_EQ(to_yaml(Input::data_section(&train, &eval)),
            yaml("{format: csv, train: {path: a.csv, shape: [2, 2]}, eval: {path: b.csv, shape: [2, 2]}}"));
  const Input pair = Input::named({{"x", train}, {"y", eval}}, {{"t", readers::npy({.features = "t.npy"})}});
  EXPECT_EQ(to_yaml(Input::data_section(&pair, nullptr)), yaml(R"(
format: csv
inputs:
  x: {format: csv, train: {path: a.csv, shape: [2, 2]}}
  y: {format: csv, train: {path: b.csv, shape: [2, 2]}}
targets:
  t: {format: npy, train: {features: t.npy}}
)"));
}

}  // namespace
}  // namespace lockstep
