// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "nets.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace lockstep {

namespace {

constexpr int kStages = 3, kBlocks = 3;

/// `same` padding over the last `axes` axes, all of the extent `size`, which the stride divides.
BenchConvolution same_convolution(int axes, std::int64_t size, std::int64_t in_c, std::int64_t out_c,
                                  std::int64_t kernel, std::int64_t stride, int input) {
  const std::int64_t out = size / stride, padding = std::max<std::int64_t>(0, kernel - stride),
                     before = padding / 2, after = padding - before;
  ConvolutionSpec s{.in_h = size,
                    .in_w = size,
                    .in_c = in_c,
                    .out_h = out,
                    .out_w = out,
                    .out_c = out_c,
                    .kernel_h = kernel,
                    .kernel_w = kernel,
                    .stride_h = stride,
                    .stride_w = stride,
                    .pad_top = before,
                    .pad_bottom = after,
                    .pad_left = before,
                    .pad_right = after};
  if (axes == 3) {
    s.in_d = size, s.out_d = out, s.kernel_d = kernel, s.stride_d = stride;
    s.pad_front = before, s.pad_back = after;
  }
  return {s, input};
}

/// He et al. 2016, section 4.2, with 1x1 convolutions as shortcuts where the shape changes.
std::string resnet20() {
  std::string text = "- conv2d: {filters: 16, kernel: 3, bias: false}\n- batch_norm\n- relu: {name: start}\n";
  std::string previous = "start";
  for (int stage = 0; stage < kStages; ++stage)
    for (int block = 0; block < kBlocks; ++block) {
      const std::string name = fmt::format("s{}b{}", stage, block);
      const int filters = 16 << stage, stride = stage > 0 && block == 0 ? 2 : 1;
      std::string shortcut = previous;
      if (stride == 2) {
        shortcut = name + "_shortcut";
        text += fmt::format("- conv2d: {{filters: {}, kernel: 1, stride: 2, bias: false, inputs: [{}]}}\n",
                            filters, previous);
        text += fmt::format("- batch_norm: {{name: {}}}\n", shortcut);
      }
      text += fmt::format("- conv2d: {{filters: {}, kernel: 3, stride: {}, bias: false, inputs: [{}]}}\n",
                          filters, stride, previous);
      text +=
          fmt::format("- batch_norm\n- relu\n- conv2d: {{filters: {}, kernel: 3, bias: false}}\n", filters);
      text += fmt::format(
          "- batch_norm: {{name: {0}_bn}}\n- add: {{inputs: [{0}_bn, {1}]}}\n- relu: {{name: {0}}}\n", name,
          shortcut);
      previous = name;
    }
  return text + "- global_avg_pool\n- dense: {units: 10}\n";
}

std::vector<BenchConvolution> resnet20_convolutions() {
  std::vector<BenchConvolution> all{same_convolution(2, 32, 3, 16, 3, 1, 0)};
  const auto count = [&] { return static_cast<int>(all.size()); };
  for (int stage = 0; stage < kStages; ++stage)
    for (int block = 0; block < kBlocks; ++block) {
      const bool shrinks = stage > 0 && block == 0;
      const std::int64_t out_c = 16 << stage, in_c = shrinks ? out_c / 2 : out_c, out_size = 32 >> stage,
                         in_size = shrinks ? out_size * 2 : out_size, stride = shrinks ? 2 : 1;
      const int input = count();
      if (shrinks) all.push_back(same_convolution(2, in_size, in_c, out_c, 1, stride, input));
      all.push_back(same_convolution(2, in_size, in_c, out_c, 3, stride, input));
      all.push_back(same_convolution(2, out_size, out_c, out_c, 3, 1, count()));
    }
  return all;
}

/// The layers of examples/cosmo_conv3d.yaml.
constexpr std::int64_t kCosmoSize = 32;
std::string cosmo() {
  std::string text;
  for (int filters = 16; filters <= 256; filters *= 2)
    text += fmt::format("- conv3d: {{filters: {}, kernel: 3}}\n- leaky_relu: {{alpha: 0.3}}\n- max_pool\n",
                        filters);
  text += "- flatten\n";
  for (int units : {128, 64})
    text += fmt::format("- dense: {{units: {}}}\n- leaky_relu: {{alpha: 0.3}}\n- dropout: {{rate: 0.5}}\n",
                        units);
  return text + "- dense: {units: 4}\n- tanh\n";
}
std::vector<BenchConvolution> cosmo_convolutions() {
  std::vector<BenchConvolution> all{same_convolution(3, kCosmoSize, 1, 16, 3, 1, 0)};
  for (std::int64_t size = kCosmoSize / 2, in_c = 16; in_c < 256; size /= 2, in_c *= 2)
    all.push_back(same_convolution(3, size, in_c, 2 * in_c, 3, 1, kOwnInput));
  return all;
}

/// The layers of examples/unet.yaml.
constexpr std::int64_t kUnetSize = 64;
constexpr int kUnetFilters = 16, kUnetLevels = 2;
std::string unet() {
  const auto block = [](const std::string& name, int filters) {
    std::string text;
    for (int i = 0; i < 2; ++i)
      text += fmt::format("- conv2d: {{filters: {}, kernel: 3, bias: false}}\n- batch_norm\n- relu{}\n",
                          filters, i == 1 ? fmt::format(": {{name: {}}}", name) : "");
    return text;
  };
  std::string text;
  for (int level = 0; level < kUnetLevels; ++level)
    text += block(fmt::format("down{}", level), kUnetFilters << level) + "- max_pool\n";
  text += block("bottom", kUnetFilters << kUnetLevels);
  for (int level = kUnetLevels; level-- > 0;) {
    text += fmt::format(
        "- conv2d_transpose: {{name: larger{0}, filters: {1}, kernel: 2, stride: 2}}\n- concat: {{inputs: "
        "[down{0}, "
        "larger{0}]}}\n",
        level, kUnetFilters << level);
    text += block(fmt::format("up{}", level), kUnetFilters << level);
  }
  return text + "- conv2d: {filters: 4, kernel: 1}\n";
}
std::vector<BenchConvolution> unet_convolutions() {
  std::vector<BenchConvolution> all;
  const auto block = [&](std::int64_t size, std::int64_t in_c, std::int64_t filters, int input) {
    all.push_back(same_convolution(2, size, in_c, filters, 3, 1, input));
    all.push_back(same_convolution(2, size, filters, filters, 3, 1, static_cast<int>(all.size())));
  };
  for (int level = 0; level <= kUnetLevels; ++level)
    block(kUnetSize >> level, level == 0 ? 3 : kUnetFilters << (level - 1), kUnetFilters << level,
          level == 0 ? 0 : kOwnInput);
  for (int level = kUnetLevels; level-- > 0;) {
    const std::int64_t filters = kUnetFilters << level;
    BenchConvolution larger =
        same_convolution(2, kUnetSize >> level, filters, 2 * filters, 2, 2, static_cast<int>(all.size()));
    larger.transposed = true;
    all.push_back(larger);
    block(kUnetSize >> level, 2 * filters, filters, kOwnInput);
  }
  all.push_back(same_convolution(2, kUnetSize, kUnetFilters, 4, 1, 1, static_cast<int>(all.size())));
  return all;
}

/// He et al. 2016, table 1, with the stride in the 3x3 convolution of a block.
std::string resnet50() {
  std::string text =
      "- conv2d: {filters: 64, kernel: 7, stride: 2, bias: false}\n- batch_norm\n- relu\n"
      "- max_pool: {name: start, window: 3, stride: 2, padding: same}\n";
  std::string previous = "start";
  const int blocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage)
    for (int block = 0; block < blocks[stage]; ++block) {
      const std::string name = fmt::format("s{}b{}", stage, block);
      const int filters = 64 << stage, stride = stage > 0 && block == 0 ? 2 : 1;
      std::string shortcut = previous;
      if (block == 0) {
        shortcut = name + "_shortcut";
        text += fmt::format("- conv2d: {{filters: {}, kernel: 1, stride: {}, bias: false, inputs: [{}]}}\n",
                            4 * filters, stride, previous);
        text += fmt::format("- batch_norm: {{name: {}}}\n", shortcut);
      }
      text +=
          fmt::format("- conv2d: {{filters: {}, kernel: 1, bias: false, inputs: [{}]}}\n", filters, previous);
      text +=
          fmt::format("- batch_norm\n- relu\n- conv2d: {{filters: {}, kernel: 3, stride: {}, bias: false}}\n",
                      filters, stride);
      text += fmt::format("- batch_norm\n- relu\n- conv2d: {{filters: {}, kernel: 1, bias: false}}\n",
                          4 * filters);
      text += fmt::format(
          "- batch_norm: {{name: {0}_bn}}\n- add: {{inputs: [{0}_bn, {1}]}}\n- relu: {{name: {0}}}\n", name,
          shortcut);
      previous = name;
    }
  return text + "- global_avg_pool\n- dense: {units: 1000}\n";
}

std::string lenet() {
  return "- conv2d: {filters: 32, kernel: 3}\n- relu\n- max_pool\n- conv2d: {filters: 64, kernel: 3}\n- "
         "relu\n- max_pool\n"
         "- flatten\n- dense: {units: 128}\n- relu\n- dense: {units: 10}\n";
}

std::string mlp() {
  return "- dense: {units: 512}\n- relu\n- dense: {units: 512}\n- relu\n- dense: {units: 10}\n";
}

std::string digits() {
  return "- conv2d: {filters: 32, kernel: 3, bias: false}\n- batch_norm\n- relu\n- max_pool\n"
         "- conv2d: {filters: 64, kernel: 3, bias: false}\n- batch_norm\n- relu\n"
         "- flatten\n- dropout: {rate: 0.25}\n- dense: {units: 10}\n";
}

/// Two layers of 128 units over 50 words; the last state is classified.
std::string lstm() {
  return "- embedding: {rows: 10000, units: 128}\n- lstm: {units: 128, layers: 2}\n- last_step\n"
         "- dense: {units: 10}\n";
}
/// The same without the embedding: bench/README.md lists these as the layer itself.
std::string lstm_alone() { return "- lstm: {units: 128, layers: 2}\n- last_step\n- dense: {units: 10}\n"; }
std::string gru_alone() { return "- gru: {units: 128, layers: 2}\n- last_step\n- dense: {units: 10}\n"; }

/// Layers so small that the overhead around them dominates.
std::string tiny_dense() {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "- dense: {units: 16}\n- tanh\n";
  return text + "- dense: {units: 10}\n";
}
std::string tiny_norm() {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "- dense: {units: 16, bias: false}\n- batch_norm\n";
  return text + "- dense: {units: 10}\n";
}

/// A table of which a step with 64 samples touches at most 3,200 rows.
std::string words() {
  return "- embedding: {rows: 100000, units: 128}\n- reduce: {operation: mean, axes: [0]}\n- dense: {units: "
         "10}\n";
}
/// Pre-norm blocks of causal attention and a feed-forward net four times as wide, after learned positions.
struct TransformerShape {
  int words, width, heads, blocks;
  bool approximate_gelu, head_bias;
};
std::string transformer(const TransformerShape& s) {
  std::string text = fmt::format(
      "- embedding: {{rows: {}, units: {}}}\n- positional_embedding: {{name: x0}}\n", s.words, s.width);
  for (int block = 0; block < s.blocks; ++block)
    text += fmt::format(
        "- layer_norm: {{inputs: [x{0}]}}\n- attention: {{name: a{0}, units: {2}, heads: {3}, causal: "
        "true}}\n"
        "- add: {{name: y{0}, inputs: [x{0}, a{0}]}}\n"
        "- layer_norm\n- dense: {{units: {4}}}\n- gelu: {{approximate: {5}}}\n"
        "- dense: {{name: f{0}, units: {2}}}\n"
        "- add: {{name: x{1}, inputs: [y{0}, f{0}]}}\n",
        block, block + 1, s.width, s.heads, 4 * s.width, s.approximate_gelu);
  return text + fmt::format("- layer_norm\n- dense: {{units: {}, bias: {}}}\n", s.words, s.head_bias);
}
std::string transformer() { return transformer({65, 128, 4, 4, false, true}); }
/// Radford et al. 2019, the smallest model of table 2, with its own output layer instead of the embedding's
/// table.
constexpr int kGpt2Words = 50304, kGpt2Steps = 1024;
std::string gpt2() { return transformer({kGpt2Words, 768, 12, 12, true, false}); }
constexpr int kTinyWords = 256, kTinySteps = 16;
std::string gpt2_tiny() { return transformer({kTinyWords, 64, 4, 2, true, false}); }

constexpr std::string_view kMomentum = "momentum: {learning_rate: 0.001, momentum: 0.9}";
constexpr std::string_view kAdam = "adam: {learning_rate: 0.0001}";
constexpr std::string_view kGradientDescent = "gradient_descent: {learning_rate: 0.1}";
constexpr std::string_view kLazyAdam = "adam: {learning_rate: 0.001, lazy: true}";

}  // namespace

std::vector<DenseAlone::Product> transformer_products() {
  std::vector<DenseAlone::Product> all;
  for (int block = 0; block < 4; ++block)
    for (const DenseAlone::Product product :
         {DenseAlone::Product{128, 384}, {128, 128}, {128, 512}, {512, 128}})
      all.push_back(product);
  all.push_back({128, 65});
  return all;
}

std::span<const BenchNet> bench_nets() {
  static const BenchNet kNets[] = {
      {"resnet20", "ResNet-20 on 32 x 32 x 3, momentum", Shape{32, 32, 3}, 10, 32, resnet20, kMomentum, 0,
       resnet20_convolutions},
      {"resnet50", "ResNet-50 on 224 x 224 x 3, momentum (for GPUs)", Shape{224, 224, 3}, 1000, 64, resnet50,
       kMomentum},
      {"lenet", "conv 32, pool, conv 64, pool, dense 128, dense 10 (3 x 3, same) on 28 x 28 x 1, momentum",
       Shape{28, 28, 1}, 10, 128, lenet, kMomentum},
      {"mlp", "784-512-512-10, momentum", Shape{784}, 10, 128, mlp, kMomentum},
      {"mlp_adam", "784-512-512-10, Adam", Shape{784}, 10, 128, mlp, kAdam},
      {"digits", "the net of examples/digits.yaml on 8 x 8 x 1, Adam", Shape{8, 8, 1}, 10, 64, digits, kAdam},
      {"lstm", "embedding of 10,000 x 128, two-layer LSTM of 128 units over 50 steps, dense 10; momentum",
       Shape{50}, 10, 64, lstm, kMomentum, 10000},
      {"lstm_alone", "the same on features of 50 x 128, without an embedding", Shape{50, 128}, 10, 64,
       lstm_alone, kMomentum},
      {"gru_alone", "lstm_alone with GRUs", Shape{50, 128}, 10, 64, gru_alone, kMomentum},
      {"transformer",
       "embedding of 65 x 128, 4 blocks of causal attention (4 heads) and 128-512-128, 128 steps; Adam",
       Shape{128}, 65, 16, transformer, kAdam, 65, nullptr, 128},
      {"gpt2",
       "GPT-2 (small): 12 pre-norm blocks of 768, 12 heads, 1,024 tokens of 50,304 words, GELU; Adam (for "
       "GPUs)",
       Shape{kGpt2Steps}, kGpt2Words, 8, gpt2, kAdam, kGpt2Words, nullptr, kGpt2Steps},
      {"gpt2_tiny",
       "gpt2 with 2 blocks of 64, 4 heads, 16 tokens of 256 words: to try programs that take gpt2",
       Shape{kTinySteps}, kTinyWords, 4, gpt2_tiny, kAdam, kTinyWords, nullptr, kTinySteps},
      {"cosmo", "the net of examples/cosmo_conv3d.yaml on 32 x 32 x 32 x 1, momentum",
       Shape{kCosmoSize, kCosmoSize, kCosmoSize, 1}, 4, 16, cosmo, kMomentum, 0, cosmo_convolutions},
      {"unet", "the net of examples/unet.yaml on 64 x 64 x 3, a class per pixel, Adam",
       Shape{kUnetSize, kUnetSize, 3}, 4, 16, unet, kAdam, 0, unet_convolutions, kUnetSize * kUnetSize},
      {"words", "embedding of 100,000 x 128 for 50 words, their mean, dense 10; gradient descent", Shape{50},
       10, 64, words, kGradientDescent, 100000},
      {"words_adam", "the same with Adam", Shape{50}, 10, 64, words, kAdam, 100000},
      {"words_lazy", "the same with lazy Adam", Shape{50}, 10, 64, words, kLazyAdam, 100000},
      {"tiny_dense", "200 layers of 16 units: the overhead per layer", Shape{16}, 10, 2, tiny_dense,
       kMomentum},
      {"tiny_norm", "200 layers of 16 units, half of them batch norms: the overhead with synchronisation",
       Shape{16}, 10, 2, tiny_norm, kMomentum},
  };
  return kNets;
}

const BenchNet& find_net(std::string_view name) {
  std::string known;
  for (const BenchNet& net : bench_nets()) {
    if (net.name == name) return net;
    known += fmt::format("\n  {:<12} {}", net.name, net.help);
  }
  throw Error(ErrorKind::usage, fmt::format("no net '{}'", name), {}, fmt::format("Known:{}", known));
}

}  // namespace lockstep
