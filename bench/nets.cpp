// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "nets.h"

#include <fmt/format.h>

#include "core/error.h"

namespace lockstep {

namespace {

constexpr int kStages = 3, kBlocks = 3;

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

/// Two layers of 128 units over 50 words, the last state to a class.
std::string lstm() {
  return "- embedding: {rows: 10000, units: 128}\n- lstm: {units: 128, layers: 2}\n- last_step\n"
         "- dense: {units: 10}\n";
}
/// The same without the words: what stands in bench/README.md about the layer itself.
std::string lstm_alone() { return "- lstm: {units: 128, layers: 2}\n- last_step\n- dense: {units: 10}\n"; }
std::string gru_alone() { return "- gru: {units: 128, layers: 2}\n- last_step\n- dense: {units: 10}\n"; }

/// Layers so small that what they cost is the frame around them.
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

constexpr std::string_view kMomentum = "momentum: {learning_rate: 0.001, momentum: 0.9}";
constexpr std::string_view kAdam = "adam: {learning_rate: 0.0001}";

}  // namespace

std::span<const BenchNet> bench_nets() {
  static const BenchNet kNets[] = {
      {"resnet20", "ResNet-20 on 32 x 32 x 3, momentum", Shape{32, 32, 3}, 10, 32, resnet20, kMomentum},
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
      {"tiny_dense", "200 layers of 16 units: the frame's cost", Shape{16}, 10, 2, tiny_dense, kMomentum},
      {"tiny_norm", "200 layers of 16 units, half of them batch norms: the frame's cost with meetings",
       Shape{16}, 10, 2, tiny_norm, kMomentum},
  };
  return kNets;
}

const BenchNet& find_net(std::string_view name) {
  std::string known;
  for (const BenchNet& net : bench_nets()) {
    if (net.name == name) return net;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", net.name);
  }
  throw Error(ErrorKind::usage, fmt::format("no net '{}'", name), {}, fmt::format("Known: {}.", known));
}

std::vector<ConvolutionShape> resnet20_convolutions() {
  std::vector<ConvolutionShape> all{{32, 3, 16, 3, 1, 0}};
  const auto count = [&] { return static_cast<int>(all.size()); };
  for (int stage = 0; stage < kStages; ++stage)
    for (int block = 0; block < kBlocks; ++block) {
      const bool shrinks = stage > 0 && block == 0;
      const std::int64_t out_c = 16 << stage, in_c = shrinks ? out_c / 2 : out_c, out_size = 32 >> stage,
                         in_size = shrinks ? out_size * 2 : out_size, stride = shrinks ? 2 : 1;
      const int input = count();
      if (shrinks) all.push_back({in_size, in_c, out_c, 1, stride, input});
      all.push_back({in_size, in_c, out_c, 3, stride, input});
      all.push_back({out_size, out_c, out_c, 3, 1, count()});
    }
  return all;
}

}  // namespace lockstep
