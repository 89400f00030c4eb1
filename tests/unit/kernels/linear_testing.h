// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Shapes for the tests of linear primitives, and the error of a sum of products.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "kernels/primitives.h"
#include "unit/kernels/kernel_testing.h"

namespace lockstep {

/// A convolution whose output extents follow from the arguments.
inline ConvolutionSpec convolution(std::int64_t n, std::int64_t h, std::int64_t w, std::int64_t in_c,
                                   std::int64_t out_c, std::int64_t kernel, std::int64_t stride,
                                   std::int64_t pad, std::int64_t groups = 1, std::int64_t dilation = 1) {
  ConvolutionSpec s;
  s.n = n, s.in_h = h, s.in_w = w, s.in_c = in_c, s.out_c = out_c;
  s.kernel_h = s.kernel_w = kernel;
  s.stride_h = s.stride_w = stride;
  s.pad_top = s.pad_bottom = s.pad_left = s.pad_right = pad;
  s.dilation_h = s.dilation_w = dilation;
  s.groups = groups;
  s.out_h = (h + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1;
  s.out_w = (w + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1;
  return s;
}

/// Bottom and right have one more row of padding ("same" with stride 2), and the kernel is not square.
inline ConvolutionSpec asymmetric(std::int64_t n, std::int64_t in_c, std::int64_t out_c) {
  ConvolutionSpec s = convolution(n, 8, 10, in_c, out_c, 3, 2, 0);
  s.kernel_w = 5;
  s.pad_bottom = 1;
  s.pad_left = 1, s.pad_right = 2;
  s.out_h = (8 + 1 - 3) / 2 + 1;
  s.out_w = (10 + 3 - 5) / 2 + 1;
  return s;
}

/// A volume; front and back padding differ.
inline ConvolutionSpec volume(std::int64_t n, std::int64_t in_c, std::int64_t out_c, std::int64_t stride,
                              std::int64_t groups = 1, std::int64_t dilation = 1) {
  ConvolutionSpec s = convolution(n, 6, 5, in_c, out_c, 3, stride, dilation, groups, dilation);
  s.in_d = 7, s.kernel_d = 2, s.stride_d = stride, s.dilation_d = dilation, s.pad_back = 1;
  s.out_d = (7 + 1 - dilation - 1) / stride + 1;
  return s;
}

inline std::vector<ConvolutionSpec> convolution_specs() {
  return {convolution(2, 8, 8, 16, 16, 3, 1, 1),
          convolution(3, 9, 7, 3, 16, 3, 1, 1),
          convolution(1, 28, 28, 1, 32, 5, 1, 2),
          convolution(2, 16, 16, 16, 32, 3, 2, 1),
          convolution(2, 8, 8, 32, 64, 1, 1, 0),
          convolution(2, 9, 9, 16, 32, 1, 2, 0),
          convolution(7, 16, 16, 4, 4, 1, 2, 0),
          convolution(2, 7, 5, 5, 7, 3, 1, 1),
          convolution(1, 6, 6, 17, 33, 3, 2, 1),
          convolution(2, 10, 10, 16, 16, 3, 1, 2, 1, 2),
          convolution(2, 8, 8, 16, 32, 3, 1, 1, 4),
          convolution(2, 8, 8, 32, 32, 3, 1, 1, 32),
          convolution(1, 9, 9, 6, 6, 3, 2, 1, 6),
          convolution(2, 6, 6, 6, 9, 3, 1, 1, 3),
          convolution(1, 1, 1, 64, 10, 1, 1, 0),
          convolution(1, 32, 32, 3, 8, 7, 2, 3),
          convolution(1, 5, 5, 64, 64, 3, 1, 1),
          asymmetric(2, 16, 16),
          asymmetric(1, 3, 5),
          convolution(2, 1, 17, 3, 8, 1, 1, 0),
          volume(2, 16, 16, 1),
          volume(1, 3, 5, 2),
          volume(2, 6, 9, 1, 3),
          volume(1, 4, 4, 1, 4, 2),
          volume(1, 1, 16, 2)};
}

inline std::string describe(const ConvolutionSpec& s) {
  return fmt::format(
      "n {} in {}x{}x{}x{} out_c {} kernel {}x{}x{} stride {} groups {} dilation {} bias {} relu {}", s.n,
      s.in_d, s.in_h, s.in_w, s.in_c, s.out_c, s.kernel_d, s.kernel_h, s.kernel_w, s.stride_h, s.groups,
      s.dilation_h, s.bias, s.relu);
}

inline std::int64_t x_count(const ConvolutionSpec& s) { return s.n * s.in_positions() * s.in_c; }
inline std::int64_t y_count(const ConvolutionSpec& s) { return s.n * s.out_positions() * s.out_c; }
inline std::int64_t w_count(const ConvolutionSpec& s) { return s.kernel_rows() * s.out_c; }

inline std::vector<DenseSpec> dense_specs() {
  std::vector<DenseSpec> specs;
  for (auto [n, in, out] : std::vector<std::array<std::int64_t, 3>>{
           {1, 1, 1}, {16, 784, 512}, {5, 3, 7}, {64, 512, 10}, {17, 33, 65}, {1, 100, 1}, {33, 1, 9}}) {
    DenseSpec s;
    s.n = n, s.in = in, s.out = out;
    for (const bool packed : {false, true}) {
      s.packed = packed;
      specs.push_back(s);
    }
  }
  return specs;
}

/// The error of a sum of k products in any order, with fused or separate rounding: (k + 2) roundings of the
/// sum of magnitudes (Higham 2002, section 3.1).
inline double dot_error(std::int64_t k) { return static_cast<double>(k + 2) * kRounding; }

}  // namespace lockstep
