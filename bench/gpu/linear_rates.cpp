// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Dense layers and convolutions: forward, the gradient of x, the gradient of the weights. Times do not
// include packing the weights, which is done once per step.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/error.h"
#include "gpu/rate_bench.h"

namespace lockstep {

namespace {

float* floats(const Buffer& buffer) { return static_cast<float*>(buffer.data()); }

struct LinearSize {
  std::int64_t x, y, weights;
};

template <typename Make>
void measure(RateBench& bench, const std::string& kernel, const std::string& shape, const ComputeType& type,
             const LinearSize& size, bool forward_only, const Make& make) {
  try {
    const std::unique_ptr<LinearPrimitive> primitive = make();
    bench.grow_scratch(primitive->scratch_bytes());
    const Buffer x_memory = bench.filled(size.x, type.dtype), y_memory = bench.filled(size.y, type.dtype),
                 weights = bench.filled(size.weights), packed(bench.device(), primitive->packed_bytes());
    const Data x(x_memory.data(), type.dtype), y(y_memory.data(), type.dtype);
    const double flops = primitive->flops();
    primitive->pack(bench.lane(), floats(weights), packed.data());
    bench.flops(kernel + " forward", shape, type, flops, [&](const Lane& lane) {
      primitive->forward(lane, x, floats(weights), packed.data(), nullptr, y);
    });
    if (forward_only) return;
    bench.flops(kernel + " backward data", shape, type, flops, [&](const Lane& lane) {
      primitive->backward_data(lane, y, floats(weights), packed.data(), x);
    });
    bench.flops(kernel + " backward weights", shape, type, flops,
                [&](const Lane& lane) { primitive->backward_weights(lane, x, y, floats(weights)); });
  } catch (const Error& error) {  // no primitive or out of memory: further cases may still work
    bench.problem(kernel, shape, type.name(), error.what());
  }
}

void measure_dense(RateBench& bench, const ComputeType& type, std::int64_t n, std::int64_t in,
                   std::int64_t out, bool forward_only) {
  const DenseSpec spec{.n = n, .in = in, .out = out, .training = !forward_only, .dtype = type.dtype};
  measure(bench, "dense", fmt::format("{} x {} x {}", n, in, out), type, {n * in, n * out, in * out},
          forward_only, [&] { return bench.kernels(type).make.dense(spec, 1); });
}

/// With `same` padding and a stride of 1.
void measure_convolution(RateBench& bench, const ComputeType& type, std::int64_t kernel, std::int64_t size,
                         std::int64_t in_c, std::int64_t out_c) {
  const std::int64_t n = bench.tiny() ? 1 : 64, padding = kernel / 2, positions = n * size * size;
  const ConvolutionSpec spec{.n = n,
                             .in_h = size,
                             .in_w = size,
                             .in_c = in_c,
                             .out_h = size,
                             .out_w = size,
                             .out_c = out_c,
                             .kernel_h = kernel,
                             .kernel_w = kernel,
                             .pad_top = padding,
                             .pad_bottom = padding,
                             .pad_left = padding,
                             .pad_right = padding,
                             .dtype = type.dtype};
  measure(bench, fmt::format("convolution {0}x{0}", kernel),
          fmt::format("{}, {} to {} at {}", n, in_c, out_c, size), type,
          {positions * in_c, positions * out_c, kernel * kernel * in_c * out_c}, false,
          [&] { return bench.kernels(type).make.convolution(spec, 1); });
}

}  // namespace

void gemm_rate(RateBench& bench, const ComputeType& type) {
  const std::int64_t size = bench.tiny() ? 32 : 8192;
  bench.next_is_the_peak();
  measure_dense(bench, type, size, size, size, true);
}

void dense_rates(RateBench& bench, const ComputeType& type) {
  if (bench.tiny()) return measure_dense(bench, type, 16, 24, 40, false);
  measure_dense(bench, type, 128, 784, 512, false);  // of an MLP
  for (const auto& [in, out] : {std::pair{768, 2304}, {768, 768}, {768, 3072}, {3072, 768}, {768, 50304}})
    measure_dense(bench, type, 8 * 1024, in, out, false);  // of GPT-2
}

void convolution_rates(RateBench& bench, const ComputeType& type) {
  if (bench.tiny()) {
    measure_convolution(bench, type, 3, 6, 8, 8);
    return measure_convolution(bench, type, 1, 6, 8, 16);
  }
  // The 3x3 convolutions of ResNet-50's four stages.
  for (const auto& [channels, size] : {std::pair{64, 56}, {128, 28}, {256, 14}, {512, 7}})
    measure_convolution(bench, type, 3, size, channels, channels);
  for (const auto& [channels, size] : {std::pair{64, 56}, {128, 28}, {256, 14}, {512, 7}})
    measure_convolution(bench, type, 1, size, channels, 4 * channels);
}

}  // namespace lockstep
