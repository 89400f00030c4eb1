// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/sections/built_in_nets.h"

#include <algorithm>
#include <array>

namespace lockstep {

namespace {

/// Texts one after the other, put together by the compiler.
template <const std::string_view&... kParts>
struct Joined {
  static constexpr auto joined() {
    std::array<char, (kParts.size() + ...)> text{};
    auto* end = text.data();
    for (const std::string_view part : {kParts...}) end = std::copy(part.begin(), part.end(), end);
    return text;
  }
  static constexpr auto kText = joined();
  static constexpr std::string_view kView{kText.data(), kText.size()};
};

// He et al. 2015 (arXiv:1512.03385), figure 2. `project` 1: a 1x1 convolution on the shortcut (option B).
constexpr std::string_view kResidualBlock = R"(
parameters: {filters: null, stride: 1, project: 0, padding: same, momentum: 0.9, epsilon: 0.001}
layers:
  - repeat:
      name: shortcut
      times: $project
      layers:
        - conv2d: {filters: $filters, kernel: 1, stride: $stride, bias: false}
        - batch_norm: {momentum: $momentum, epsilon: $epsilon}
  - conv2d: {name: conv1, filters: $filters, kernel: 3, stride: $stride, padding: $padding, bias: false, inputs: [input]}
  - batch_norm: {name: bn1, momentum: $momentum, epsilon: $epsilon}
  - relu
  - conv2d: {name: conv2, filters: $filters, kernel: 3, padding: $padding, bias: false}
  - batch_norm: {name: bn2, momentum: $momentum, epsilon: $epsilon}
  - add: {inputs: [bn2, shortcut]}
  - relu
)";

// The same paper, figure 5; the stride is in the 3x3 convolution.
constexpr std::string_view kBottleneckBlock = R"(
parameters: {filters: null, stride: 1, project: 0, padding: same, momentum: 0.9, epsilon: 0.001}
layers:
  - repeat:
      name: shortcut
      times: $project
      layers:
        - conv2d: {filters: $(4 * filters), kernel: 1, stride: $stride, bias: false}
        - batch_norm: {momentum: $momentum, epsilon: $epsilon}
  - conv2d: {name: conv1, filters: $filters, kernel: 1, bias: false, inputs: [input]}
  - batch_norm: {name: bn1, momentum: $momentum, epsilon: $epsilon}
  - relu
  - conv2d: {name: conv2, filters: $filters, kernel: 3, stride: $stride, padding: $padding, bias: false}
  - batch_norm: {name: bn2, momentum: $momentum, epsilon: $epsilon}
  - relu
  - conv2d: {name: conv3, filters: $(4 * filters), kernel: 1, bias: false}
  - batch_norm: {name: bn3, momentum: $momentum, epsilon: $epsilon}
  - add: {inputs: [bn3, shortcut]}
  - relu
)";

// The same paper, section 4.2: 6 n + 2 layers.
constexpr std::string_view kCifarResnet = R"(
parameters: {classes: 10, n: 3, filters: 16}
layers:
  - conv2d: {name: conv, filters: $filters, kernel: 3, bias: false}
  - batch_norm: {name: bn, momentum: 0.9}
  - relu
  - repeat: {name: stage1, times: $n, layers: [residual_block: {name: block, filters: $filters}]}
  - repeat:
      name: larger
      index: s
      times: 2
      layers:
        - residual_block: {name: down, filters: $(filters * 2 ^ s), stride: 2, project: 1}
        - repeat: {name: rest, times: $(n - 1), layers: [residual_block: {name: block, filters: $(filters * 2 ^ s)}]}
  - global_avg_pool
  - dense: {name: logits, units: $classes}
)";

// The same paper, table 1, with the padding of torchvision: what resnet18, resnet34 and resnet50 begin and
// end with.
constexpr std::string_view kImageNetBegin = R"(
parameters: {classes: 1000, filters: 64}
layers:
  - conv2d: {name: conv, filters: $filters, kernel: 7, stride: 2, padding: [3, 3, 3, 3], bias: false}
  - batch_norm: {name: bn, momentum: 0.9, epsilon: 1.0e-5}
  - relu
  - max_pool: {window: 3, stride: 2, padding: [1, 1, 1, 1]}
)";
constexpr std::string_view kClassifier = R"(
  - global_avg_pool
  - dense: {name: logits, units: $classes}
)";
constexpr std::string_view kBasicStages = R"(
  - repeat:
      name: stage1
      times: 2
      layers: [residual_block: {name: block, filters: $filters, padding: [1, 1, 1, 1], epsilon: 1.0e-5}]
  - repeat:
      name: larger
      index: s
      times: 3
      layers:
        - residual_block: {name: down, filters: $(filters * 2 ^ s), stride: 2, project: 1, padding: [1, 1, 1, 1], epsilon: 1.0e-5}
        - residual_block: {name: block, filters: $(filters * 2 ^ s), padding: [1, 1, 1, 1], epsilon: 1.0e-5}
)";
// With 3, 4, 6 and 3 blocks.
constexpr std::string_view kDeepBasicStages = R"(
  - basic_stage: {name: stage1, filters: $filters, blocks: 3, stride: 1, project: 0}
  - basic_stage: {name: stage2, filters: $(2 * filters), blocks: 4}
  - basic_stage: {name: stage3, filters: $(4 * filters), blocks: 6}
  - basic_stage: {name: stage4, filters: $(8 * filters), blocks: 3}
)";
constexpr std::string_view kBottleneckStages = R"(
  - bottleneck_stage: {name: stage1, filters: $filters, blocks: 3, stride: 1}
  - bottleneck_stage: {name: stage2, filters: $(2 * filters), blocks: 4}
  - bottleneck_stage: {name: stage3, filters: $(4 * filters), blocks: 6}
  - bottleneck_stage: {name: stage4, filters: $(8 * filters), blocks: 3}
)";
constexpr std::string_view kResnet18 = Joined<kImageNetBegin, kBasicStages, kClassifier>::kView;
constexpr std::string_view kResnet34 = Joined<kImageNetBegin, kDeepBasicStages, kClassifier>::kView;
constexpr std::string_view kResnet50 = Joined<kImageNetBegin, kBottleneckStages, kClassifier>::kView;
constexpr std::string_view kBasicStage = R"(
parameters: {filters: null, blocks: null, stride: 2, project: 1, padding: [1, 1, 1, 1], epsilon: 1.0e-5}
layers:
  - residual_block: {name: first, filters: $filters, stride: $stride, project: $project, padding: $padding, epsilon: $epsilon}
  - repeat:
      name: rest
      times: $(blocks - 1)
      layers: [residual_block: {name: block, filters: $filters, padding: $padding, epsilon: $epsilon}]
)";
constexpr std::string_view kBottleneckStage = R"(
parameters: {filters: null, blocks: null, stride: 2, padding: [1, 1, 1, 1], epsilon: 1.0e-5}
layers:
  - bottleneck_block: {name: first, filters: $filters, stride: $stride, project: 1, padding: $padding, epsilon: $epsilon}
  - repeat:
      name: rest
      times: $(blocks - 1)
      layers: [bottleneck_block: {name: block, filters: $filters, padding: $padding, epsilon: $epsilon}]
)";

// LeCun et al. 1998, as it is usually written today: LeNet-5 for 28 x 28 images.
constexpr std::string_view kLenet = R"(
parameters: {classes: 10}
layers:
  - conv2d: {name: conv1, filters: 6, kernel: 5}
  - tanh
  - avg_pool
  - conv2d: {name: conv2, filters: 16, kernel: 5, padding: valid}
  - tanh
  - avg_pool
  - flatten
  - dense: {name: dense1, units: 120}
  - tanh
  - dense: {name: dense2, units: 84}
  - tanh
  - dense: {name: logits, units: $classes}
)";

constexpr std::string_view kMlp = R"(
parameters: {classes: null, units: 256, hidden: 2, dropout: 0}
layers:
  - flatten
  - repeat:
      name: hidden
      times: $hidden
      layers:
        - dense: {units: $units, kernel_initializer: he_normal}
        - relu
        - dropout: {rate: $dropout}
  - dense: {name: logits, units: $classes}
)";

// Ronneberger et al. 2015 (arXiv:1505.04597) with padded convolutions and batch norm. Height and width are
// multiples of 2 ^ levels.
constexpr std::string_view kUnet = R"(
parameters: {classes: null, filters: 64, levels: 4}
layers:
  - repeat:
      name: down
      times: $levels
      layers:
        - double_convolution: {name: features, filters: $(filters * 2 ^ (i - 1))}
        - max_pool
  - double_convolution: {name: bottom, filters: $(filters * 2 ^ levels)}
  - repeat:
      name: up
      times: $levels
      layers:
        - conv2d_transpose: {name: larger, filters: $(filters * 2 ^ (levels - i)), kernel: 2, stride: 2}
        - concat: {inputs: [down/$(levels - i + 1)/features, larger]}
        - double_convolution: {name: features, filters: $(filters * 2 ^ (levels - i))}
  - conv2d: {name: classes, filters: $classes, kernel: 1}
)";
constexpr std::string_view kDoubleConvolution = R"(
parameters: {filters: null, momentum: 0.9}
layers:
  - repeat:
      name: part
      times: 2
      layers:
        - conv2d: {filters: $filters, kernel: 3, bias: false}
        - batch_norm: {momentum: $momentum}
        - relu
)";

constexpr std::string_view kLstmNet = R"(
parameters: {rows: null, classes: null, units: 128, layers: 1, dropout: 0}
layers:
  - sequence_length: {name: lengths, inputs: [input]}
  - embedding: {name: words, rows: $rows, units: $units, inputs: [input]}
  - lstm: {name: lstm, units: $units, layers: $layers, dropout: $dropout, inputs: [words, lengths]}
  - last_step: {name: last, inputs: [lstm, lengths]}
  - dense: {name: logits, units: $classes}
)";

// Radford et al. 2019; the number of positions is that of the data. The output layer has weights of its own:
// GPT-2 shares them with the embedding.
constexpr std::string_view kGpt2 = R"(
parameters: {rows: 50257, units: 768, heads: 12, layers: 12, dropout: 0.1}
layers:
  - embedding: {name: tokens, rows: $rows, units: $units, initializer: {normal: {stddev: 0.02}}}
  - positional_embedding: {name: positions, initializer: {normal: {stddev: 0.02}}}
  - dropout: {rate: $dropout}
  - repeat:
      name: block
      times: $layers
      layers: [transformer_block: {name: layer, units: $units, heads: $heads, dropout: $dropout}]
  - layer_norm: {name: norm, epsilon: 1.0e-5}
  - dense: {name: logits, units: $rows, bias: false, kernel_initializer: {normal: {stddev: 0.02}}}
)";
constexpr std::string_view kTransformerBlock = R"(
parameters: {units: null, heads: null, dropout: 0, causal: true}
layers:
  - layer_norm: {name: norm1, epsilon: 1.0e-5}
  - attention: {name: attention, units: $units, heads: $heads, causal: $causal, dropout: $dropout}
  - dropout: {name: drop1, rate: $dropout}
  - add: {name: sum, inputs: [input, drop1]}
  - layer_norm: {name: norm2, epsilon: 1.0e-5}
  - dense: {name: wide, units: $(4 * units)}
  - gelu: {approximate: true}
  - dense: {name: narrow, units: $units}
  - dropout: {name: drop2, rate: $dropout}
  - add: {inputs: [sum, drop2]}
)";

// The benchmark of MLPerf HPC (Mathuriya et al. 2018, arXiv:1808.04728).
constexpr std::string_view kCosmoflow = R"(
parameters: {targets: 4, filters: 16, depth: 5, dropout: 0.5}
layers:
  - repeat:
      name: stage
      times: $depth
      layers:
        - conv3d: {name: conv, filters: $(filters * 2 ^ (i - 1)), kernel: 3}
        - leaky_relu: {alpha: 0.3}
        - max_pool
  - flatten
  - dense: {name: dense1, units: 128}
  - leaky_relu: {alpha: 0.3}
  - dropout: {rate: $dropout}
  - dense: {name: dense2, units: 64}
  - leaky_relu: {alpha: 0.3}
  - dropout: {rate: $dropout}
  - dense: {name: numbers, units: $targets, kernel_initializer: {normal: {stddev: 0.001}}}
  - tanh: {scale: 1.2}
)";

constexpr BuiltInNet kNets[] = {
    {"mlp", "dense layers with relu", kMlp, ""},
    {"lenet", "LeNet-5 for images of 28 x 28", kLenet, ""},
    {"resnet20", "residual net for small images: 6 n + 2 layers", kCifarResnet, "{n: 3}"},
    {"resnet32", "the same with 32 layers", kCifarResnet, "{n: 5}"},
    {"resnet44", "the same with 44 layers", kCifarResnet, "{n: 7}"},
    {"resnet56", "the same with 56 layers", kCifarResnet, "{n: 9}"},
    {"resnet18", "residual net for images of 224 x 224", kResnet18, ""},
    {"resnet34", "the same with 34 layers", kResnet34, ""},
    {"resnet50", "the same with 50 layers, in bottlenecks", kResnet50, ""},
    {"unet", "U-Net: a class per pixel", kUnet, ""},
    {"cosmoflow", "CosmoFlow: numbers from a volume of 128 x 128 x 128", kCosmoflow, ""},
    {"lstm_net", "classes of sequences of word ids, padded with 0", kLstmNet, ""},
    {"gpt2", "transformer of the shape of GPT-2: the next token at each position", kGpt2, ""},
    {"residual_block", "part of the resnets: two 3x3 convolutions and a shortcut", kResidualBlock, ""},
    {"basic_stage", "part of resnet34: residual blocks, the first one with a stride", kBasicStage, ""},
    {"bottleneck_block", "part of resnet50: 1x1, 3x3, 1x1 and a shortcut", kBottleneckBlock, ""},
    {"bottleneck_stage", "part of resnet50: bottlenecks, the first one with a stride", kBottleneckStage, ""},
    {"double_convolution", "part of unet: twice convolution, batch norm, relu", kDoubleConvolution, ""},
    {"transformer_block", "part of gpt2: attention and dense layers, norms first", kTransformerBlock, ""},
};

}  // namespace

std::span<const BuiltInNet> built_in_nets() { return kNets; }

}  // namespace lockstep
