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
#include "dense_alone.h"
#include "kernels/primitives.h"

namespace lockstep {

/// A convolution of a net, for one sample.
struct BenchConvolution {
  ConvolutionSpec spec;
  /// The input: 0: the net's features; i + 1: the output of the i-th convolution; kOwnInput: a tensor
  /// computed between convolutions (by a pooling or a concat).
  int input = 0;
  bool transposed = false;  ///< the data gradient of `spec`
};
inline constexpr int kOwnInput = -1;

struct BenchNet {
  std::string_view name, help;
  Shape features;  ///< of one sample
  std::int64_t classes;
  std::int64_t batch;
  std::string (*layers)();     ///< the YAML text under model.layers
  std::string_view optimizer;  ///< as YAML
  std::int64_t ids = 0;        ///< features are whole numbers below this; 0: any numbers
  /// All its convolutions, in forward order; null: they are not measured alone.
  std::vector<BenchConvolution> (*convolutions)() = nullptr;
  std::int64_t positions = 1;  ///< positions of a sample, each with its own label
};
/// All matrix products of the net `transformer`, in forward order.
std::vector<DenseAlone::Product> transformer_products();
std::span<const BenchNet> bench_nets();
/// Throws Error(usage) for an unknown name.
const BenchNet& find_net(std::string_view name);

}  // namespace lockstep
