// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "layer_cases.h"

#include <numeric>

#include "support/reference_kernels.h"

namespace lockstep {

namespace {

using Inputs = std::vector<Values>;
using Variables = std::map<std::string, Values>;

Values variable(const Variables& variables, const std::string& name) {
  const auto found = variables.find(name);
  return found == variables.end() ? Values{} : found->second;
}

Values rectified(Values values) {
  for (double& value : values) value = std::max(value, 0.0);
  return values;
}

LayerCase dense(std::string name, std::string options, bool relu = false) {
  return {.name = std::move(name),
          .yaml = "dense: {units: 5" + options + "}",
          .inputs = {Shape{7}},
          .reference =
              [relu](const Inputs& in, const Variables& v) {
                return reference::dense({.n = 3, .in = 7, .out = 5, .relu = relu}, in[0], v.at("kernel"),
                                        variable(v, "bias"));
              },
          .relu = relu};
}

/// `spec` says what the options should mean.
LayerCase conv2d(std::string name, const std::string& options, ConvolutionSpec spec, bool relu = false) {
  spec.relu = relu;
  return {.name = std::move(name),
          .yaml = "conv2d: {" + options + "}",
          .inputs = {Shape{spec.in_h, spec.in_w, spec.in_c}},
          .reference =
              [spec](const Inputs& in, const Variables& v) {
                return reference::convolution(spec, in[0], v.at("kernel"), variable(v, "bias"));
              },
          .relu = relu};
}

LayerCase pool(std::string name, const std::string& yaml, const PoolSpec& spec) {
  return {.name = std::move(name),
          .yaml = yaml,
          .inputs = {Shape{spec.in_h, spec.in_w, spec.channels}},
          .reference = [spec](const Inputs& in, const Variables&) { return reference::pool(spec, in[0]); }};
}

LayerCase activation(const std::string& name, const std::string& yaml, ActivationKind kind,
                     double alpha = 0) {
  return {.name = name,
          .yaml = yaml,
          .inputs = {Shape{5, 3}},
          .reference =
              [=](const Inputs& in, const Variables&) {
                Values y;
                for (double x : in[0]) y.push_back(reference::activation(kind, alpha, x));
                return y;
              },
          .low = -3,
          .high = 8};
}

/// Each group of `group` microshards (0: all) normalised by itself.
LayerCase batch_norm(std::string name, std::string options, std::vector<std::int64_t> microshards,
                     std::size_t group = 0, bool relu = false, bool residual = false,
                     bool two_gradients = false) {
  const Shape shape{3, 2, 4};
  return {.name = std::move(name),
          .yaml = "batch_norm: {epsilon: 0.01" + options + "}",
          .inputs = {shape},
          .reference =
              [=](const Inputs& in, const Variables& v) {
                Values gamma = variable(v, "gamma"), beta = variable(v, "beta"), y;
                if (gamma.empty()) gamma.assign(4, 1.0);
                if (beta.empty()) beta.assign(4, 0.0);
                auto from = in[0].begin();
                for (std::size_t s = 0; s < microshards.size();) {
                  std::int64_t n = 0;
                  for (std::size_t last = s + (group == 0 ? microshards.size() : group); s < last; ++s)
                    n += microshards[s];
                  const auto to = from + n * shape.num_elements();
                  const Values part = reference::batch_norm(n * 6, 4, Values(from, to), gamma, beta, 0.01);
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
          .microshards = microshards};
}

/// The mask that docs and kernels/elementwise.h promise: element e of sample s keeps word e % 4 of block e
/// / 4.
Values dropped(const Values& x, std::size_t features, float rate, const std::string& layer,
               std::uint64_t seed) {
  Values y(x.size());
  const auto factor = static_cast<double>(static_cast<float>(1.0 / (1.0 - static_cast<double>(rate))));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t sample = i / features, e = i % features;
    const PhiloxBlock words = philox_words(seed, philox_purpose(layer), 0, static_cast<std::uint32_t>(sample),
                                           static_cast<std::uint32_t>(e / 4));
    y[i] = philox_uniform(words[e % 4]) >= rate ? x[i] * factor : 0.0;
  }
  return y;
}

void add_linear(std::vector<LayerCase>& cases) {
  cases.push_back(dense("dense", ""));
  cases.push_back(dense("dense_without_bias", ", bias: false"));
  cases.push_back(dense("dense_relu", "", true));
  cases.push_back(dense("dense_relu_without_bias", ", bias: false", true));
  const ConvolutionSpec same{.n = 3,
                             .in_h = 5,
                             .in_w = 6,
                             .in_c = 4,
                             .out_h = 5,
                             .out_w = 6,
                             .out_c = 6,
                             .kernel_h = 3,
                             .kernel_w = 3,
                             .pad_top = 1,
                             .pad_bottom = 1,
                             .pad_left = 1,
                             .pad_right = 1};
  cases.push_back(conv2d("conv2d_same", "filters: 6, kernel: 3", same));
  cases.push_back(conv2d("conv2d_without_bias", "filters: 6, kernel: 3, bias: false", same));
  cases.push_back(conv2d("conv2d_relu", "filters: 6, kernel: 3", same, true));
  cases.push_back(conv2d("conv2d_relu_without_bias", "filters: 6, kernel: 3, bias: false", same, true));
  ConvolutionSpec spec = same;  // same, stride 2: 3 x 3 out of 5 x 6; the odd padding element is at the end
  spec.out_h = spec.out_w = 3;
  spec.stride_h = spec.stride_w = 2;
  spec.pad_left = 0;
  cases.push_back(conv2d("conv2d_same_stride", "filters: 6, kernel: 3, stride: 2", spec));
  spec = same;
  spec.pad_top = spec.pad_bottom = spec.pad_left = spec.pad_right = 0;
  spec.out_h = 3;
  spec.out_w = 2;
  spec.stride_w = 2;
  cases.push_back(
      conv2d("conv2d_valid_two_strides", "filters: 6, kernel: 3, stride: [1, 2], padding: valid", spec));
  spec = same;
  spec.pad_top = 2, spec.pad_bottom = 0, spec.pad_left = 1, spec.pad_right = 3;
  spec.kernel_w = 2;
  spec.out_w = 9;
  cases.push_back(conv2d("conv2d_explicit", "filters: 6, kernel: [3, 2], padding: [2, 0, 1, 3]", spec));
  spec = same;
  spec.dilation_h = spec.dilation_w = 2;
  spec.pad_top = spec.pad_bottom = spec.pad_left = spec.pad_right = 2;
  cases.push_back(conv2d("conv2d_dilation", "filters: 6, kernel: 3, dilation: 2", spec));
  spec = same;
  spec.groups = 2;
  cases.push_back(conv2d("conv2d_groups", "filters: 6, kernel: 3, groups: 2", spec));
  spec = same;
  spec.groups = spec.out_c = 4;
  cases.push_back(conv2d("conv2d_depthwise", "filters: 4, kernel: 3, groups: 4", spec));
  spec.out_c = 8;
  cases.push_back(conv2d("conv2d_depthwise_multiplier", "filters: 8, kernel: 3, groups: 4", spec));
}

void add_pools(std::vector<LayerCase>& cases) {
  const PoolSpec halves{.n = 3,
                        .in_h = 4,
                        .in_w = 6,
                        .channels = 5,
                        .out_h = 2,
                        .out_w = 3,
                        .window_h = 2,
                        .window_w = 2,
                        .stride_h = 2,
                        .stride_w = 2};
  PoolSpec padded{.n = 3,
                  .in_h = 5,
                  .in_w = 6,
                  .channels = 5,
                  .out_h = 3,
                  .out_w = 3,
                  .window_h = 3,
                  .window_w = 3,
                  .stride_h = 2,
                  .stride_w = 2,
                  .pad_top = 1,
                  .pad_bottom = 1,
                  .pad_left = 0,
                  .pad_right = 1};
  const std::string options = ": {window: 3, stride: 2, padding: same}";
  cases.push_back(pool("max_pool", "max_pool", halves));
  cases.push_back(pool("max_pool_overlapping", "max_pool" + options, padded));
  padded.kind = PoolKind::average;
  PoolSpec mean = halves;
  mean.kind = PoolKind::average;
  cases.push_back(pool("avg_pool", "avg_pool", mean));
  cases.push_back(pool("avg_pool_padding", "avg_pool" + options, padded));
  cases.push_back({.name = "global_avg_pool",
                   .yaml = "global_avg_pool",
                   .inputs = {Shape{3, 2, 4}},
                   .reference = [](const Inputs& in, const Variables&) {
                     Values y(12);
                     for (std::size_t i = 0; i < in[0].size(); ++i) y[i / 24 * 4 + i % 4] += in[0][i] / 6;
                     return y;
                   }});
}

void add_simple(std::vector<LayerCase>& cases) {
  const auto same = [](const Inputs& in, const Variables&) { return in[0]; };
  const auto sum = [](const Inputs& in, const Variables&) {
    Values y = in[0];
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += in[1][i];
    return y;
  };
  cases.push_back({.name = "flatten", .yaml = "flatten", .inputs = {Shape{2, 3, 2}}, .reference = same});
  cases.push_back({.name = "add", .yaml = "add", .inputs = {Shape{3, 5}, Shape{3, 5}}, .reference = sum});
  cases.push_back({.name = "add_relu",
                   .yaml = "add",
                   .inputs = {Shape{3, 5}, Shape{3, 5}},
                   .reference = [=](const Inputs& in, const Variables& v) { return rectified(sum(in, v)); },
                   .relu = true});
  cases.push_back({.name = "relu",
                   .yaml = "relu",
                   .inputs = {Shape{3, 5}},
                   .reference = [](const Inputs& in, const Variables&) { return rectified(in[0]); }});
  cases.push_back(
      {.name = "dropout",
       .yaml = "dropout: {rate: 0.3, name: drop}",
       .inputs = {Shape{11}},
       .reference = [](const Inputs& in, const Variables&) { return dropped(in[0], 11, 0.3F, "drop", 1); }});
  cases.push_back(
      {.name = "dropout_rate_0", .yaml = "dropout: {rate: 0}", .inputs = {Shape{11}}, .reference = same});
  cases.push_back(
      {.name = "softmax",
       .yaml = "softmax",
       .inputs = {Shape{2, 5}},
       .reference = [](const Inputs& in, const Variables&) { return reference::softmax(6, 5, in[0]); }});
  cases.push_back(activation("leaky_relu", "leaky_relu: {alpha: 0.1}", ActivationKind::leaky_relu,
                             static_cast<double>(0.1F)));
  cases.push_back(activation("relu6", "relu6", ActivationKind::relu6));
  cases.push_back(activation("elu", "elu: {alpha: 0.7}", ActivationKind::elu, static_cast<double>(0.7F)));
  cases.push_back(activation("gelu", "gelu", ActivationKind::gelu_erf));
  cases.push_back(activation("gelu_approximate", "gelu: {approximate: true}", ActivationKind::gelu_tanh));
  cases.push_back(activation("silu", "silu", ActivationKind::silu));
  cases.push_back(activation("tanh", "tanh", ActivationKind::tanh));
  cases.push_back(activation("sigmoid", "sigmoid", ActivationKind::sigmoid));
  cases.push_back(activation("softplus", "softplus", ActivationKind::softplus));
}

void add_batch_norms(std::vector<LayerCase>& cases) {
  cases.push_back(batch_norm("batch_norm", "", {3}));
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
}

}  // namespace

std::vector<LayerCase> layer_cases() {
  std::vector<LayerCase> cases;
  add_linear(cases);
  add_pools(cases);
  add_simple(cases);
  add_batch_norms(cases);
  return cases;
}

}  // namespace lockstep
