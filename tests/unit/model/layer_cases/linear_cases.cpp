// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "layer_cases.h"
#include "support/reference_kernels.h"

namespace lockstep {

namespace {

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

/// Sequences of 4 steps: every step of the 3 samples is a row.
LayerCase dense_steps(std::string name, bool relu) {
  return {.name = std::move(name),
          .yaml = "dense: {units: 5}",
          .inputs = {Shape{4, 7}},
          .reference =
              [relu](const Inputs& in, const Variables& v) {
                return reference::dense({.n = 12, .in = 7, .out = 5, .relu = relu}, in[0], v.at("kernel"),
                                        variable(v, "bias"));
              },
          .relu = relu};
}

/// The table is units x in.
LayerCase tied_dense(std::string name, const Shape& input) {
  return {.name = std::move(name),
          .yaml = "tied_dense: {units: 5}",
          .inputs = {input},
          .reference =
              [input](const Inputs& in, const Variables& v) {
                const std::int64_t width = input.last(),
                                   rows = static_cast<std::int64_t>(in[0].size()) / width;
                const Values& table = v.at("embeddings");
                Values kernel(table.size());
                for (std::size_t i = 0; i < table.size(); ++i)
                  kernel[i % static_cast<std::size_t>(width) * 5 + i / static_cast<std::size_t>(width)] =
                      table[i];
                return reference::dense({.n = rows, .in = width, .out = 5}, in[0], kernel, {});
              },
          .microshards = {2, 0, 1}};
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

}  // namespace

void add_linear_cases(std::vector<LayerCase>& cases) {
  cases.push_back(dense("dense", ""));
  cases.push_back(dense("dense_without_bias", ", bias: false"));
  cases.push_back(dense("dense_relu", "", true));
  cases.push_back(dense_steps("dense_steps", false));
  cases.push_back(dense_steps("dense_steps_relu", true));
  cases.push_back(tied_dense("tied_dense", Shape{7}));
  cases.push_back(tied_dense("tied_dense_steps", Shape{4, 3}));
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

}  // namespace lockstep
