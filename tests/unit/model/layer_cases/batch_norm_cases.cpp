// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "layer_cases.h"
#include "support/reference_kernels.h"

namespace lockstep {

namespace {

/// Each group of `group` microshards (0: all) normalised by itself.
LayerCase batch_norm(std::string name, std::string options, std::vector<std::int64_t> microshards,
                     std::size_t group = 0, bool relu = false, bool residual = false,
                     bool two_gradients = false, const Shape& shape = Shape{3, 2, 4}) {
  const std::int64_t channels = shape.last(), positions = shape.num_elements() / channels;
  return {.name = std::move(name),
          .yaml = "batch_norm: {epsilon: 0.01" + options + "}",
          .inputs = {shape},
          .reference =
              [=](const Inputs& in, const Variables& v) {
                Values gamma = variable(v, "gamma"), beta = variable(v, "beta"), y;
                if (gamma.empty()) gamma.assign(static_cast<std::size_t>(channels), 1.0);
                if (beta.empty()) beta.assign(static_cast<std::size_t>(channels), 0.0);
                auto from = in[0].begin();
                for (std::size_t s = 0; s < microshards.size();) {
                  std::int64_t n = 0;
                  for (std::size_t last = s + (group == 0 ? microshards.size() : group); s < last; ++s)
                    n += microshards[s];
                  const auto to = from + n * shape.num_elements();
                  const Values part =
                      reference::batch_norm(n * positions, channels, Values(from, to), gamma, beta, 0.01);
                  y.insert(y.end(), part.begin(), part.end());
                  from = to;
                }
                if (residual)
                  for (std::size_t i = 0; i < y.size(); ++i) y[i] += in[1][i];
                return relu ? rectified(y) : y;
              },
          .relu = relu,
          .residual = residual,
          .two_gradients = two_gradients,
          .low = -1,
          .high = 3,
          .microshards = microshards,
          .same_in_inference = false};
}

/// With fixed statistics, at their initial values: mean 0, variance 1.
LayerCase fixed_batch_norm(std::string name, bool relu, bool residual, bool two_gradients) {
  LayerCase test = batch_norm(std::move(name), "", {2, 0, 1}, 0, relu, residual, two_gradients);
  test.frozen = "moving_";
  test.same_in_inference = true;
  test.reference = [=](const Inputs& in, const Variables& v) {
    const Values gamma = variable(v, "gamma"), beta = variable(v, "beta");
    Values y = in[0];
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t c = i % gamma.size();
      y[i] = gamma[c] * y[i] / std::sqrt(1 + 0.01) + beta[c] + (residual ? in[1][i] : 0);
    }
    return relu ? rectified(y) : y;
  };
  return test;
}

}  // namespace

void add_batch_norm_cases(std::vector<LayerCase>& cases) {
  cases.push_back(batch_norm("batch_norm", "", {3}));
  // 0 to 3 spatial axes: always rows of channels.
  cases.push_back(batch_norm("batch_norm_features", "", {4, 0, 3}, 0, false, false, false, Shape{17}));
  cases.push_back(batch_norm("batch_norm_1d", "", {2, 0, 1}, 0, false, false, false, Shape{5, 3}));
  cases.push_back(
      batch_norm("batch_norm_1d_each", ", group: 1", {2, 1}, 1, false, false, false, Shape{7, 1}));
  cases.push_back(batch_norm("batch_norm_3d", "", {2, 0, 1}, 0, false, false, false, Shape{2, 3, 2, 3}));
  cases.push_back(batch_norm("batch_norm_3d_groups_relu", ", group: 2", {1, 1, 0, 2}, 2, true, false, false,
                             Shape{3, 1, 2, 3}));
  cases.push_back(batch_norm("batch_norm_shards", "", {2, 0, 3, 1}));
  cases.push_back(batch_norm("batch_norm_groups", ", group: 2", {2, 1, 0, 3}, 2));
  cases.push_back(batch_norm("batch_norm_each", ", group: 1", {2, 3}, 1));
  cases.push_back(batch_norm("batch_norm_without_scale", ", scale: false", {2, 1}));
  cases.push_back(batch_norm("batch_norm_without_center", ", center: false", {2, 1}));
  cases.push_back(batch_norm("batch_norm_two_gradients", "", {2, 1}, 0, false, false, true));
  cases.push_back(batch_norm("batch_norm_relu", "", {2, 0, 2}, 0, true));
  cases.push_back(batch_norm("batch_norm_relu_two_gradients", "", {2, 2}, 0, true, false, true));
  cases.push_back(batch_norm("batch_norm_residual", "", {2, 2}, 0, false, true));
  cases.push_back(batch_norm("batch_norm_residual_two_gradients", "", {2, 2}, 0, false, true, true));
  cases.push_back(batch_norm("batch_norm_residual_relu", "", {1, 3}, 0, true, true));
  cases.push_back(
      batch_norm("batch_norm_residual_relu_groups_two_gradients", ", group: 1", {3, 2}, 1, true, true, true));
  cases.push_back(fixed_batch_norm("batch_norm_fixed", false, false, false));
  cases.push_back(fixed_batch_norm("batch_norm_fixed_relu_two_gradients", true, false, true));
  cases.push_back(fixed_batch_norm("batch_norm_fixed_residual_relu", true, true, false));
  cases.push_back(fixed_batch_norm("batch_norm_fixed_residual_relu_two_gradients", true, true, true));
}

}  // namespace lockstep
