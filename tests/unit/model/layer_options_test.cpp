// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Errors of layers of normalisation, structure and noise, and properties that the layer cases do not test:
// masks and noise do not depend on the microshards, and behaviour in inference.
#include <algorithm>

#include "layer_cases/layer_cases.h"
#include "model/layer_runner.h"

namespace lockstep {
namespace {

/// What the layer's options or infer() say against it; empty if nothing.
std::string refusal(const std::string& yaml, std::vector<Shape> inputs) {
  try {
    (void)layer_from(yaml)->infer(inputs);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config) << yaml;
    return error.what();
  }
  return {};
}

struct Refused {
  std::string yaml;
  std::vector<Shape> inputs;
  std::vector<std::string> words;  ///< in the message
};

TEST(LayerOptions, ErrorsNameLayerShapeAndReason) {
  const std::vector<Refused> cases = {
      {"layer_norm: {axis: 2, name: ln}", {Shape{3, 5}}, {"ln", "axis 2", "3x5"}},
      {"layer_norm: {axis: -3, name: ln}", {Shape{3, 5}}, {"axis -3", "3x5"}},
      {"layer_norm", {Shape{3}, Shape{3}}, {"one input, not 2"}},
      {"layer_norm: {epsilon: 0}", {Shape{3}}, {"epsilon"}},
      {"rms_norm: {axis: 2, name: rn}", {Shape{3, 5}}, {"rn", "axis 2", "3x5"}},
      {"rms_norm: {center: true}", {Shape{3}}, {"center"}},
      {"group_norm: {groups: 4, name: gn}", {Shape{3, 3, 6}}, {"gn", "4 groups", "6 channels", "3x3x6"}},
      {"group_norm: {groups: 2, name: gn}", {Shape{6}}, {"gn", "space x channels", "6"}},
      {"instance_norm: {name: in}", {Shape{6}}, {"in", "instance_norm", "space x channels"}},
      {"l2_normalize", {Shape{3}, Shape{3}}, {"one input, not 2"}},
      {"batch_norm: {name: bn}", {Shape{3}, Shape{3}}, {"bn", "one input"}},
      {"add: {name: sum}", {Shape{3}}, {"sum", "two inputs or more, not 1"}},
      {"add: {name: sum}", {Shape{3}, Shape{3}, Shape{4}}, {"sum", "3 and 4"}},
      {"multiply: {name: times}", {Shape{3}}, {"times", "two inputs, not 1"}},
      {"multiply: {name: times}", {Shape{3, 5}, Shape{3}}, {"times", "3x5 and 3"}},
      {"multiply: {name: times}", {Shape{5}, Shape{3, 5}}, {"times", "5 and 3x5"}},
      {"multiply: {name: times}", {Shape{3, 4, 5}, Shape{1, 4, 1}}, {"neighbours", "3x4x5 and 1x4x1"}},
      {"concat: {name: cat}", {Shape{3, 5}, Shape{2, 5}}, {"cat", "axis 1", "3x5 and 2x5"}},
      {"concat: {name: cat}", {Shape{3, 5}, Shape{5}}, {"cat", "3x5 and 5"}},
      {"concat: {axis: 2, name: cat}", {Shape{3, 5}}, {"cat", "axis 2", "3x5"}},
      {"split: {name: cut}", {Shape{6}}, {"either `parts` or `sizes`"}},
      {"split: {parts: 2, sizes: [3, 3], name: cut}", {Shape{6}}, {"either `parts` or `sizes`"}},
      {"split: {parts: 4, name: cut}", {Shape{3, 6}}, {"cut", "4 parts", "axis 1", "3x6"}},
      {"split: {sizes: [2, 3], name: cut}", {Shape{6}}, {"cut", "add up to 5", "6"}},
      {"slice: {begin: [0], size: [2], name: part}", {Shape{3, 6}}, {"part", "1 axes", "3x6", "2"}},
      {"slice: {begin: [0, 5], size: [1, 2], name: part}", {Shape{3, 6}}, {"part", "axis 1", "3x6"}},
      {"slice: {begin: 6, size: -1, name: part}", {Shape{6}}, {"part", "axis 0"}},
      {"slice: {begin: [0, 1], size: [1]}", {Shape{3, 6}}, {"1 sizes for 2 beginnings"}},
      {"slice: {begin: 0, size: 0}", {Shape{3}}, {"size of 0"}},
      {"transpose: {permutation: [0, 2]}", {Shape{3, 6}}, {"[0, 2] is no permutation"}},
      {"transpose: {permutation: [0, 0]}", {Shape{3, 6}}, {"no permutation"}},
      {"transpose: {permutation: [1, 0], name: turn}", {Shape{3}}, {"turn", "2 axes", "3", "1"}},
      {"reshape: {shape: [-1, -1]}", {Shape{6}}, {"more than one extent is -1"}},
      {"reshape: {shape: [0, 2]}", {Shape{6}}, {"[0, 2] is not a shape"}},
      {"reshape: {shape: [4, -1], name: form}", {Shape{6}}, {"form", "6 elements", "[4, -1]"}},
      {"reshape: {shape: [7], name: form}", {Shape{6}}, {"form", "6 elements", "[7]"}},
      {"reshape: {shape: [1, 1, 1, 1, 1, 1, 1, 6]}", {Shape{6}}, {"not a shape", "1 to 7 axes"}},
      {"squeeze: {axes: 0, name: less}", {Shape{3, 1}}, {"less", "axis 0", "3x1"}},
      {"squeeze: {axes: [1, -1], name: less}", {Shape{3, 1}}, {"less", "twice"}},
      {"expand_dims: {axis: 3, name: more}", {Shape{3, 1}}, {"more", "axis 3", "3x1"}},
      {"expand_dims: {axis: 0, name: more}", {Shape{1, 1, 1, 1, 1, 1, 1}}, {"more", "already has 7 axes"}},
      {"reduce: {operation: median}", {Shape{3}}, {"operation", "median"}},
      {"reduce: {operation: max, axes: 2, name: most}", {Shape{3, 5}}, {"most", "axes 2", "3x5"}},
      {"reduce: {operation: max, axes: [0, -2], name: most}", {Shape{3, 5}}, {"most", "twice"}},
      {"constant: {value: [1, 2], shape: 3}", {}, {"2 numbers for the 3 elements"}},
      {"constant: {value: 1}", {Shape{3}}, {"takes no inputs"}},
      {"spatial_dropout: {rate: 1}", {Shape{3, 5}}, {"rate"}},
      {"drop_path: {rate: 1}", {Shape{3}}, {"rate"}},
      {"spatial_dropout: {rate: 0.5, name: drop}", {Shape{5}}, {"drop", "space x channels", "5"}},
      {"gaussian_noise: {stddev: -1}", {Shape{5}}, {"stddev"}},
      {"tanh: {scale: 0}", {Shape{5}}, {"scale"}},
      {"stop_gradient", {Shape{5}, Shape{5}}, {"one input, not 2"}},
  };
  for (const Refused& test : cases) {
    const std::string message = refusal(test.yaml, test.inputs);
    for (const std::string& word : test.words)
      EXPECT_NE(message.find(word), std::string::npos)
          << test.yaml << ": '" << word << "' is not in: " << message;
  }
}

TEST(LayerOptions, ShapesFollowTheOptions) {
  const auto shapes = [](const std::string& yaml, std::vector<Shape> inputs) {
    return layer_from(yaml)->infer(inputs);
  };
  EXPECT_EQ(shapes("reshape: {shape: [-1, 2]}", {Shape{3, 4}}), std::vector<Shape>({Shape{6, 2}}));
  EXPECT_EQ(shapes("squeeze", {Shape{1, 3, 1}}), std::vector<Shape>({Shape{3}}));
  EXPECT_EQ(shapes("squeeze", {Shape{1, 1}}), std::vector<Shape>({Shape{1}}));
  EXPECT_EQ(shapes("squeeze: {axes: -1}", {Shape{1, 3, 1}}), std::vector<Shape>({Shape{1, 3}}));
  EXPECT_EQ(shapes("expand_dims: {axis: 0}", {Shape{3, 5}}), std::vector<Shape>({Shape{1, 3, 5}}));
  EXPECT_EQ(shapes("expand_dims: {axis: -1}", {Shape{3, 5}}), std::vector<Shape>({Shape{3, 5, 1}}));
  EXPECT_EQ(shapes("reduce: {operation: max}", {Shape{3, 5}}), std::vector<Shape>({Shape{1}}));
  EXPECT_EQ(shapes("reduce: {operation: max, keep_dims: true}", {Shape{3, 5}}),
            std::vector<Shape>({Shape{1, 1}}));
  EXPECT_EQ(shapes("reduce: {operation: sum, axes: [0, 2]}", {Shape{3, 5, 2}}),
            std::vector<Shape>({Shape{5}}));
  EXPECT_EQ(shapes("split: {sizes: [1, 4]}", {Shape{3, 5}}), std::vector<Shape>({Shape{3, 1}, Shape{3, 4}}));
  EXPECT_EQ(shapes("concat: {axis: 0}", {Shape{3, 5}, Shape{1, 5}}), std::vector<Shape>({Shape{4, 5}}));
  EXPECT_EQ(shapes("transpose: {permutation: [2, 0, 1]}", {Shape{3, 5, 2}}),
            std::vector<Shape>({Shape{2, 3, 5}}));
  EXPECT_EQ(shapes("slice: {begin: [1, 0], size: [-1, 2]}", {Shape{3, 5}}),
            std::vector<Shape>({Shape{2, 2}}));
  EXPECT_EQ(shapes("constant: {value: 0, shape: [2, 3]}", {}), std::vector<Shape>({Shape{2, 3}}));
}

TEST(Noise, DependsOnTheStepNotOnTheMicroshards) {
  for (const char* yaml :
       {"spatial_dropout: {rate: 0.4, name: noise}", "gaussian_noise: {stddev: 0.5, name: noise}",
        "dropout: {rate: 0.4, name: noise}", "drop_path: {rate: 0.4, name: noise}"}) {
    const auto outputs = [&](std::vector<std::int64_t> microshards, std::int64_t step) {
      const auto layer = layer_from(yaml);
      LayerRunner run(*layer, {Shape{4, 9}}, {.microshards = std::move(microshards), .step = step});
      run.input(0) = random_floats(6 * 36, 1, 1, 2);
      run.forward();
      return run.output();
    };
    const std::vector<float> whole = outputs({6}, 3);
    EXPECT_EQ(outputs({1, 0, 3, 2}, 3), whole) << yaml;
    EXPECT_EQ(outputs({1, 1, 1, 1, 1, 1}, 3), whole) << yaml;
    EXPECT_NE(outputs({6}, 4), whole) << yaml;
  }
}

TEST(Noise, InferenceIsTheIdentity) {
  for (const char* yaml :
       {"spatial_dropout: {rate: 0.4}", "drop_path: {rate: 0.4}", "gaussian_noise: {stddev: 0.5}"}) {
    const auto layer = layer_from(yaml);
    LayerRunner run(*layer, {Shape{4, 9}}, {.training = false});
    run.input(0) = random_floats(72, 1);
    run.forward();
    EXPECT_EQ(run.output(), run.input(0)) << yaml;
  }
}

TEST(Noise, ChannelsAreDroppedAtTheGivenRate) {
  const auto layer = layer_from("spatial_dropout: {rate: 0.25, name: drop}");
  constexpr std::size_t kSamples = 200, kPositions = 5, kChannels = 20;
  LayerRunner run(*layer, {Shape{kPositions, kChannels}}, {.microshards = {kSamples}});
  std::fill(run.input(0).begin(), run.input(0).end(), 1.0F);
  run.forward();
  std::size_t dropped = 0;
  for (std::size_t sample = 0; sample < kSamples; ++sample)
    for (std::size_t c = 0; c < kChannels; ++c) {
      const float first = run.output()[sample * kPositions * kChannels + c];
      for (std::size_t p = 1; p < kPositions; ++p)
        ASSERT_EQ(run.output()[(sample * kPositions + p) * kChannels + c], first);
      ASSERT_TRUE(first == 0.0F || first == 1.0F / 0.75F);
      dropped += first == 0.0F ? 1U : 0U;
    }
  EXPECT_NEAR(static_cast<double>(dropped) / (kSamples * kChannels), 0.25, 5 * std::sqrt(0.25 * 0.75 / 4000));
}

TEST(Noise, SamplesAreDroppedAtTheGivenRate) {
  const auto layer = layer_from("drop_path: {rate: 0.25, name: drop}");
  constexpr std::size_t kSamples = 4000, kElements = 3;
  LayerRunner run(*layer, {Shape{kElements}}, {.microshards = {kSamples}});
  std::fill(run.input(0).begin(), run.input(0).end(), 1.0F);
  run.forward();
  std::size_t dropped = 0;
  for (std::size_t sample = 0; sample < kSamples; ++sample) {
    const float first = run.output()[sample * kElements];
    for (std::size_t i = 1; i < kElements; ++i) ASSERT_EQ(run.output()[sample * kElements + i], first);
    ASSERT_TRUE(first == 0.0F || first == 1.0F / 0.75F);
    dropped += first == 0.0F ? 1U : 0U;
  }
  EXPECT_NEAR(static_cast<double>(dropped) / kSamples, 0.25, 5 * std::sqrt(0.25 * 0.75 / kSamples));
}

TEST(Noise, HasMeanZeroAndTheGivenDeviation) {
  const auto layer = layer_from("gaussian_noise: {stddev: 0.5, name: noise}");
  constexpr std::size_t kCount = 40000;
  LayerRunner run(*layer, {Shape{kCount / 4}}, {.microshards = {4}});
  run.forward();
  double mean = 0, variance = 0;
  for (float z : run.output()) mean += static_cast<double>(z) / kCount;
  for (float z : run.output()) variance += std::pow(static_cast<double>(z) - mean, 2) / kCount;
  EXPECT_NEAR(mean, 0.0, 5 * 0.5 / std::sqrt(static_cast<double>(kCount)));
  EXPECT_NEAR(variance, 0.25, 5 * 0.25 * std::sqrt(2.0 / kCount));
}

TEST(Reduce, MaximumGradientGoesToTheFirstOfEqualOnes) {
  const auto layer = layer_from("reduce: {operation: max, axes: [0, 2]}");  // axes that are not neighbours
  LayerRunner run(*layer, {Shape{2, 2, 3}}, {.microshards = {1}});
  run.input(0) = {1, 5, 5, 7, 2, 2, 5, 0, 0, 7, 7, 1};
  run.forward();
  EXPECT_EQ(run.output(), (std::vector<float>{5, 7}));
  run.output_gradient() = {2, 3};
  run.backward();
  EXPECT_EQ(run.input_gradient(0), (std::vector<float>{0, 2, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(Normalisation, DoesNotDependOnTheMicroshards) {
  for (const char* yaml :
       {"layer_norm", "rms_norm", "group_norm: {groups: 3}", "instance_norm", "l2_normalize"}) {
    const auto outputs = [&](std::vector<std::int64_t> microshards) {
      const auto layer = layer_from(yaml);
      LayerRunner run(*layer, {Shape{4, 9}}, {.microshards = std::move(microshards)});
      run.input(0) = random_floats(6 * 36, 1, 1, 2);
      run.forward();
      return run.output();
    };
    EXPECT_EQ(outputs({1, 0, 3, 2}), outputs({6})) << yaml;
  }
}

TEST(Split, UnreadOutputHasZeroGradient) {
  const auto layer = layer_from("split: {sizes: [1, 2]}");
  (void)layer->infer(std::vector<Shape>{Shape{3}});
  const VariableStore variables;
  const Lane lane;
  float read[] = {1, 2, 3, 4};
  const Data dy[] = {nullptr, read};
  float gradient[6] = {9, 9, 9, 9, 9, 9};
  const Data dx[] = {gradient};
  layer->backward({.kernels = cpu_kernels(),
                   .lane = lane,
                   .variables = variables,
                   .training = true,
                   .n = 2,
                   .dy = dy,
                   .dx = dx});
  EXPECT_EQ(std::vector<float>(gradient, gradient + 6), (std::vector<float>{0, 1, 2, 0, 3, 4}));
}

TEST(StopGradient, InputGradientIsZero) {
  const auto layer = layer_from("stop_gradient");
  EXPECT_TRUE(layer->traits().stops_gradient);
  LayerRunner run(*layer, {Shape{3}}, {.microshards = {2}});
  run.output_gradient() = std::vector<float>(6, 1.0F);
  run.forward();
  run.backward();
  EXPECT_EQ(run.input_gradient(0), std::vector<float>(6, 0.0F));
}

}  // namespace
}  // namespace lockstep
