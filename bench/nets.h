// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The networks that the benchmarks train, each with its optimizer and usual batch.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/shape.h"

namespace lockstep {

struct BenchNet {
  std::string_view name, help;
  Shape features;  ///< of one sample
  std::int64_t classes;
  std::int64_t batch;
  std::string (*layers)();     ///< as YAML, what stands under model.layers
  std::string_view optimizer;  ///< as YAML
  std::int64_t ids = 0;        ///< features are whole numbers below it; 0: any numbers
};
std::span<const BenchNet> bench_nets();
/// Throws Error(usage) for an unknown name.
const BenchNet& find_net(std::string_view name);

/// A convolution of ResNet-20: from `input` (0: the images, i + 1: the output of the i-th convolution).
struct ConvolutionShape {
  std::int64_t in_size, in_c, out_c, kernel, stride;
  int input;
};
/// All of ResNet-20's convolutions on 32 x 32 images, in order of the forward pass.
std::vector<ConvolutionShape> resnet20_convolutions();

}  // namespace lockstep
