// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A small residual net, forward and backward over a whole batch at once, in plain loops in double: the
// reference for training on any number of ranks, threads and microshards.
//
//   conv1 (3x3, no bias) - bn1 - relu - conv2 (3x3) - bn2 - add(relu's output) - relu - avg_pool - flatten -
//   dense
#pragma once

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "support/reference_kernels.h"

namespace lockstep::reference {

/// Samples [first, first + count) that a batch norm normalises together.
struct Segment {
  std::int64_t first, count;
};

class Net {
 public:
  static constexpr std::int64_t kSide = 6, kIn = 2, kChannels = 4, kClasses = 3;
  static constexpr double kEpsilon = 0.001;
  static constexpr const char* kLayers = R"(
- conv2d: {name: conv1, filters: 4, kernel: 3, bias: false}
- batch_norm: {name: bn1, momentum: 0.9, group: GROUP}
- relu: {name: first}
- conv2d: {name: conv2, filters: 4, kernel: 3}
- batch_norm: {name: bn2, momentum: 0.9, group: GROUP}
- add: {name: sum, inputs: [bn2, first]}
- relu
- avg_pool
- flatten
- dense: {name: logits, units: 3}
)";

  std::map<std::string, Values> variables;    ///< by name: "conv1/kernel"
  std::map<std::string, Values> gradients;    ///< of the mean loss
  std::map<std::string, Moments> statistics;  ///< of each batch norm, over the whole batch
  double loss = 0, accuracy = 0;
  double nearest_kink = std::numeric_limits<double>::infinity();  ///< the smallest |x| at the input of a relu

  /// x: n x 6 x 6 x 2. Each segment is normalised separately.
  void run(std::int64_t n, const Values& x, const std::vector<std::int32_t>& labels,
           const std::vector<Segment>& segments) {
    const ConvolutionSpec first = convolution_spec(n, kIn), second = convolution_spec(n, kChannels);
    const PoolSpec pool_spec{.kind = PoolKind::average,
                             .n = n,
                             .in_h = 6,
                             .in_w = 6,
                             .channels = kChannels,
                             .out_h = 3,
                             .out_w = 3,
                             .window_h = 2,
                             .window_w = 2,
                             .stride_h = 2,
                             .stride_w = 2};
    const DenseSpec dense_spec{.n = n, .in = 9 * kChannels, .out = kClasses};
    const Values c1 = convolution(first, x, variables.at("conv1/kernel"), {});
    const Values b1 = normalized("bn1", n, c1, segments);
    const Values a1 = rectified(b1);
    const Values c2 = convolution(second, a1, variables.at("conv2/kernel"), variables.at("conv2/bias"));
    Values b2 = normalized("bn2", n, c2, segments);
    for (std::size_t i = 0; i < b2.size(); ++i) b2[i] += a1[i];
    const Values a2 = rectified(b2);
    const Values pooled = pool(pool_spec, a2);
    const Values outputs =
        dense(dense_spec, pooled, variables.at("logits/kernel"), variables.at("logits/bias"));

    Values g = loss_gradient(n, outputs, labels);
    gradients["logits/kernel"] = dense_backward_weights(dense_spec, pooled, g);
    gradients["logits/bias"] = column_sums(g, kClasses);
    g = masked(
        pool_backward(pool_spec, a2, dense_backward_data(dense_spec, g, variables.at("logits/kernel"))), b2);
    Values g2 = normalized_backward("bn2", n, c2, g, segments);
    gradients["conv2/kernel"] = convolution_backward_weights(second, a1, g2);
    gradients["conv2/bias"] = column_sums(g2, kChannels);
    g2 = convolution_backward_data(second, g2, variables.at("conv2/kernel"));
    for (std::size_t i = 0; i < g.size(); ++i) g[i] += g2[i];
    gradients["conv1/kernel"] =
        convolution_backward_weights(first, x, normalized_backward("bn1", n, c1, masked(g, b1), segments));
  }

 private:
  static ConvolutionSpec convolution_spec(std::int64_t n, std::int64_t in) {
    return {.n = n,
            .in_h = kSide,
            .in_w = kSide,
            .in_c = in,
            .out_h = kSide,
            .out_w = kSide,
            .out_c = kChannels,
            .kernel_h = 3,
            .kernel_w = 3,
            .pad_top = 1,
            .pad_bottom = 1,
            .pad_left = 1,
            .pad_right = 1};
  }
  static constexpr std::int64_t kPositions = kSide * kSide;
  static Values part(const Values& x, const Segment& segment) {
    constexpr std::int64_t kSample = kPositions * kChannels;
    return Values(x.begin() + segment.first * kSample, x.begin() + (segment.first + segment.count) * kSample);
  }
  Values normalized(const std::string& name, std::int64_t n, const Values& x,
                    const std::vector<Segment>& segments) {
    statistics[name] = moments(n * kPositions, kChannels, x);
    Values y;
    for (const Segment& segment : segments) {
      const Values own = batch_norm(segment.count * kPositions, kChannels, part(x, segment),
                                    variables.at(name + "/gamma"), variables.at(name + "/beta"), kEpsilon);
      y.insert(y.end(), own.begin(), own.end());
    }
    return y;
  }
  Values normalized_backward(const std::string& name, std::int64_t, const Values& x, const Values& dy,
                             const std::vector<Segment>& segments) {
    Values dx, &dgamma = gradients[name + "/gamma"], &dbeta = gradients[name + "/beta"];
    dgamma = dbeta = zeros(kChannels);
    for (const Segment& segment : segments) {
      const BatchNormGradients own =
          batch_norm_backward(segment.count * kPositions, kChannels, part(x, segment),
                              variables.at(name + "/gamma"), part(dy, segment), kEpsilon);
      dx.insert(dx.end(), own.dx.begin(), own.dx.end());
      for (std::size_t c = 0; c < dgamma.size(); ++c) {
        dgamma[c] += own.dgamma[c];
        dbeta[c] += own.dbeta[c];
      }
    }
    return dx;
  }
  Values rectified(Values x) {
    for (double& value : x) {
      nearest_kink = std::min(nearest_kink, std::abs(value));
      value = std::max(value, 0.0);
    }
    return x;
  }
  static Values masked(Values g, const Values& x) {
    for (std::size_t i = 0; i < g.size(); ++i)
      if (x[i] <= 0) g[i] = 0;
    return g;
  }
  static Values column_sums(const Values& g, std::int64_t channels) {
    Values sums = zeros(channels);
    for (std::size_t i = 0; i < g.size(); ++i) sums[i % sums.size()] += g[i];
    return sums;
  }
  /// Also computes loss and accuracy.
  Values loss_gradient(std::int64_t n, const Values& outputs, const std::vector<std::int32_t>& labels) {
    Values g = softmax(n, kClasses, outputs);
    loss = accuracy = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const auto row = g.begin() + i * kClasses;
      const std::int64_t label = labels[static_cast<std::size_t>(i)];
      loss -= std::log(row[label]) / static_cast<double>(n);
      accuracy += (std::max_element(row, row + kClasses) - row == label ? 1.0 : 0.0) / static_cast<double>(n);
      row[label] -= 1;
      for (std::int64_t j = 0; j < kClasses; ++j) row[j] /= static_cast<double>(n);
    }
    return g;
  }
};

}  // namespace lockstep::reference
