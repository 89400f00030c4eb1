// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Convolutions over one and three axes, and transposed ones. The cases of conv2d are in linear_cases.cpp.
#include "layer_cases.h"
#include "support/reference_kernels.h"

namespace lockstep {

namespace {

Shape sample(int axes, std::int64_t d, std::int64_t h, std::int64_t w, std::int64_t c) {
  return axes == 1 ? Shape{w, c} : axes == 2 ? Shape{h, w, c} : Shape{d, h, w, c};
}

/// `spec` says what the options should mean; the microshards are its samples.
LayerCase convolution(std::string name, int axes, const std::string& options, ConvolutionSpec spec,
                      bool relu = false) {
  spec.relu = relu;
  return {.name = std::move(name),
          .yaml = fmt::format("conv{}d: {{{}}}", axes, options),
          .inputs = {sample(axes, spec.in_d, spec.in_h, spec.in_w, spec.in_c)},
          .reference =
              [spec](const Inputs& in, const Variables& v) {
                return reference::convolution(spec, in[0], v.at("kernel"), variable(v, "bias"));
              },
          .relu = relu,
          .microshards = {2, 0, 1}};
}

/// `margins` are those of the circular axes, and `spec` the convolution over the input that has them.
LayerCase circular(std::string name, int axes, const std::string& options, const MarginSpec& margins,
                   const ConvolutionSpec& spec, bool relu = false) {
  LayerCase made = convolution(std::move(name), axes, options, spec, relu);
  made.inputs = {sample(axes, margins.inner[0], margins.inner[1], margins.inner[2], margins.channels)};
  made.reference = [margins, of_padded = made.reference](const Inputs& in, const Variables& v) {
    return of_padded({reference::pad(margins, in[0], 0)}, v);
  };
  return made;
}

void add_circular(std::vector<LayerCase>& cases) {
  // A globe: zeros beyond the poles, and a circle along the width.
  const MarginSpec around{.n = 3,
                          .inner = {1, 4, 5},
                          .channels = 2,
                          .before = {0, 0, 1},
                          .after = {0, 0, 1},
                          .circular = {false, false, true}};
  const ConvolutionSpec globe{.n = 3,
                              .in_h = 4,
                              .in_w = 7,
                              .in_c = 2,
                              .out_h = 4,
                              .out_w = 5,
                              .out_c = 3,
                              .kernel_h = 3,
                              .kernel_w = 3,
                              .pad_top = 1,
                              .pad_bottom = 1};
  cases.push_back(circular("conv2d_circular", 2, "filters: 3, kernel: 3, circular: width", around, globe));
  cases.push_back(
      circular("conv2d_circular_relu", 2, "filters: 3, kernel: 3, circular: [width]", around, globe, true));
  cases.push_back(
      circular("conv1d_circular_explicit", 1,
               "filters: 4, kernel: 3, dilation: 2, padding: [5, 3], circular: steps, bias: false",
               {.n = 3,
                .inner = {1, 1, 5},
                .channels = 3,
                .before = {0, 0, 5},
                .after = {0, 0, 3},
                .circular = {false, false, true}},
               {.n = 3, .in_w = 13, .in_c = 3, .out_w = 9, .out_c = 4, .kernel_w = 3, .dilation_w = 2}));
  cases.push_back(circular("conv3d_circular_all", 3, "filters: 2, kernel: [3, 1, 2], circular: all",
                           {.n = 3,
                            .inner = {3, 4, 3},
                            .channels = 2,
                            .before = {1, 0, 0},
                            .after = {1, 0, 1},
                            .circular = {true, true, true}},
                           {.n = 3,
                            .in_d = 5,
                            .in_h = 4,
                            .in_w = 4,
                            .in_c = 2,
                            .out_d = 3,
                            .out_h = 4,
                            .out_w = 3,
                            .out_c = 2,
                            .kernel_d = 3,
                            .kernel_h = 1,
                            .kernel_w = 2}));
}

/// `spec` is the convolution whose data gradient it is.
LayerCase transposed(std::string name, int axes, const std::string& options, const ConvolutionSpec& spec,
                     bool relu = false) {
  return {.name = std::move(name),
          .yaml = fmt::format("conv{}d_transpose: {{{}}}", axes, options),
          .inputs = {sample(axes, spec.out_d, spec.out_h, spec.out_w, spec.out_c)},
          .reference =
              [spec, relu](const Inputs& in, const Variables& v) {
                Values y = reference::convolution_backward_data(spec, in[0], v.at("kernel"));
                const Values bias = variable(v, "bias");
                for (std::size_t i = 0; i < y.size() && !bias.empty(); ++i) y[i] += bias[i % bias.size()];
                return relu ? rectified(y) : y;
              },
          .relu = relu,
          .microshards = {2, 0, 1}};
}

void add_conv1d(std::vector<LayerCase>& cases) {
  const ConvolutionSpec same{
      .n = 3, .in_w = 17, .in_c = 3, .out_w = 17, .out_c = 4, .kernel_w = 3, .pad_left = 1, .pad_right = 1};
  cases.push_back(convolution("conv1d_same", 1, "filters: 4, kernel: 3", same));
  cases.push_back(convolution("conv1d_relu", 1, "filters: 4, kernel: 3", same, true));
  cases.push_back(convolution("conv1d_without_bias", 1, "filters: 4, kernel: 3, bias: false", same));
  ConvolutionSpec spec = same;
  spec.kernel_w = 4, spec.stride_w = 3, spec.out_w = 6, spec.pad_left = 1, spec.pad_right = 1;
  cases.push_back(convolution("conv1d_same_stride", 1, "filters: 4, kernel: 4, stride: 3", spec));
  spec = same;
  spec.dilation_w = 4, spec.out_w = 9, spec.pad_left = spec.pad_right = 0;
  cases.push_back(
      convolution("conv1d_valid_dilation", 1, "filters: 4, kernel: 3, dilation: 4, padding: valid", spec));
  spec = same;
  spec.pad_left = 2, spec.pad_right = 0;  // reads no later step
  cases.push_back(convolution("conv1d_explicit", 1, "filters: 4, kernel: 3, padding: [2, 0]", spec));
  spec = same;
  spec.in_c = spec.groups = 4, spec.out_c = 8;
  cases.push_back(convolution("conv1d_depthwise", 1, "filters: 8, kernel: 3, groups: 4", spec));
  spec = {.n = 3, .in_w = 1, .in_c = 1, .out_w = 1, .out_c = 1, .kernel_w = 3, .pad_left = 1, .pad_right = 1};
  cases.push_back(convolution("conv1d_of_one_step", 1, "filters: 1, kernel: 3", spec));
}

void add_conv3d(std::vector<LayerCase>& cases) {
  const ConvolutionSpec same{.n = 3,
                             .in_d = 3,
                             .in_h = 4,
                             .in_w = 3,
                             .in_c = 2,
                             .out_d = 3,
                             .out_h = 4,
                             .out_w = 3,
                             .out_c = 2,
                             .kernel_d = 3,
                             .kernel_h = 1,
                             .kernel_w = 2,
                             .pad_front = 1,
                             .pad_back = 1,
                             .pad_right = 1};
  const std::string plain = "filters: 2, kernel: [3, 1, 2]";
  cases.push_back(convolution("conv3d_same", 3, plain, same));
  cases.push_back(convolution("conv3d_relu", 3, plain, same, true));
  cases.push_back(convolution("conv3d_without_bias", 3, plain + ", bias: false", same));
  ConvolutionSpec spec = same;
  spec.kernel_h = spec.kernel_w = 3;
  spec.stride_d = spec.stride_h = spec.stride_w = 2;
  spec.out_d = spec.out_h = spec.out_w = 2;
  spec.pad_bottom = 1, spec.pad_left = 1;  // same of 3: one on each side; of 4: one at the end
  cases.push_back(convolution("conv3d_same_stride", 3, "filters: 2, kernel: 3, stride: 2", spec));
  spec = same;
  spec.kernel_d = 2, spec.dilation_d = 2, spec.out_d = 1, spec.pad_front = spec.pad_back = spec.pad_right = 0;
  spec.out_w = 2;
  cases.push_back(convolution("conv3d_valid_dilation", 3,
                              "filters: 2, kernel: [2, 1, 2], dilation: [2, 1, 1], padding: valid", spec));
  spec = same;
  spec.pad_front = 0, spec.pad_back = 2, spec.pad_top = 1, spec.out_h = 5, spec.pad_right = 0,
  spec.pad_left = 2;
  spec.out_w = 4;
  cases.push_back(convolution("conv3d_explicit", 3, plain + ", padding: [0, 2, 1, 0, 2, 0]", spec));
  spec = same;
  spec.groups = 2, spec.out_c = 4;
  cases.push_back(convolution("conv3d_depthwise", 3, "filters: 4, kernel: [3, 1, 2], groups: 2", spec));
  // The depth has more than one element, but the window has one.
  spec = same;
  spec.kernel_d = 1, spec.pad_front = spec.pad_back = 0;
  cases.push_back(convolution("conv3d_of_flat_windows", 3, "filters: 2, kernel: [1, 1, 2]", spec));
  spec.in_d = spec.out_d = 1;
  cases.push_back(convolution("conv3d_of_one_plane", 3, "filters: 2, kernel: [1, 1, 2]", spec));
}

void add_transposed(std::vector<LayerCase>& cases) {
  // From 3 x 2 x 3 channels to 6 x 4 x 4.
  const ConvolutionSpec same{.n = 3,
                             .in_h = 6,
                             .in_w = 4,
                             .in_c = 4,
                             .out_h = 3,
                             .out_w = 2,
                             .out_c = 3,
                             .kernel_h = 3,
                             .kernel_w = 3,
                             .stride_h = 2,
                             .stride_w = 2,
                             .pad_bottom = 1,
                             .pad_right = 1};
  const std::string plain = "filters: 4, kernel: 3, stride: 2";
  cases.push_back(transposed("conv2d_transpose_same", 2, plain, same));
  cases.push_back(transposed("conv2d_transpose_relu", 2, plain, same, true));
  cases.push_back(transposed("conv2d_transpose_without_bias", 2, plain + ", bias: false", same));
  cases.push_back(transposed("conv2d_transpose_relu_without_bias", 2, plain + ", bias: false", same, true));
  ConvolutionSpec spec = same;
  spec.in_h = 7, spec.in_w = 5, spec.pad_bottom = spec.pad_right = 0;
  cases.push_back(transposed("conv2d_transpose_valid", 2, plain + ", padding: valid", spec));
  spec.in_h = 8;
  cases.push_back(transposed("conv2d_transpose_output_padding", 2,
                             plain + ", padding: valid, output_padding: [1, 0]", spec));
  spec = same;
  spec.in_h = 6, spec.in_w = 2, spec.pad_top = 1, spec.pad_bottom = 0, spec.pad_left = 2, spec.pad_right = 1;
  cases.push_back(transposed("conv2d_transpose_explicit", 2, plain + ", padding: [1, 0, 2, 1]", spec));
  spec = same;
  spec.stride_h = 3, spec.kernel_h = 2, spec.in_h = 9,
  spec.pad_bottom = 0;  // a window shorter than the stride
  cases.push_back(transposed("conv2d_transpose_gaps", 2, "filters: 4, kernel: [2, 3], stride: [3, 2]", spec));
  spec = same;
  spec.stride_h = spec.stride_w = 1, spec.dilation_h = 2;
  spec.in_h = 3, spec.in_w = 2, spec.pad_top = spec.pad_bottom = 2, spec.pad_left = spec.pad_right = 1;
  cases.push_back(
      transposed("conv2d_transpose_dilation", 2, "filters: 4, kernel: 3, dilation: [2, 1]", spec));
  spec = same;
  spec.in_c = 2, spec.out_c = 4, spec.groups = 2;
  cases.push_back(
      transposed("conv2d_transpose_groups", 2, "filters: 2, kernel: 3, stride: 2, groups: 2", spec));

  const ConvolutionSpec volume{.n = 3,
                               .in_d = 4,
                               .in_h = 2,
                               .in_w = 4,
                               .in_c = 2,
                               .out_d = 2,
                               .out_h = 1,
                               .out_w = 2,
                               .out_c = 3,
                               .kernel_d = 3,
                               .kernel_h = 2,
                               .kernel_w = 2,
                               .stride_d = 2,
                               .stride_h = 2,
                               .stride_w = 2,
                               .pad_back = 1};
  const std::string options = "filters: 2, kernel: [3, 2, 2], stride: 2";
  cases.push_back(transposed("conv3d_transpose_same", 3, options, volume));
  cases.push_back(transposed("conv3d_transpose_relu", 3, options, volume, true));
  spec = volume;
  spec.in_d = 6, spec.in_w = 5, spec.pad_back = 0;
  cases.push_back(transposed("conv3d_transpose_valid_output_padding", 3,
                             options + ", padding: valid, output_padding: [1, 0, 1]", spec));
  spec = volume;
  spec.pad_front = 1, spec.pad_back = 0, spec.pad_left = 1, spec.in_w = 3;
  cases.push_back(transposed("conv3d_transpose_explicit", 3,
                             options + ", padding: [1, 0, 0, 0, 1, 0], bias: false", spec));
}

}  // namespace

void add_convolution_cases(std::vector<LayerCase>& cases) {
  add_circular(cases);
  add_conv1d(cases);
  add_conv3d(cases);
  add_transposed(cases);
}

}  // namespace lockstep
