// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Passes over the activations of an image net: ResNet-50's first stage at batch 64, and the sums of its batch
// norms at batch 256 (those of the last stages may stay in the card's cache). A stream is one array of that
// size, read or written.
#include <fmt/format.h>

#include "gpu/rate_bench.h"

namespace lockstep {

namespace {
float* floats(const Buffer& buffer) { return static_cast<float*>(buffer.data()); }

/// The sums of batch norm; `name` of a row is that of pass_rates().
void norm_sum_rates(RateBench& bench, DType type, std::int64_t rows, std::int64_t channels) {
  const std::int64_t count = rows * channels;
  const Buffer x_memory = bench.filled(count, type), dy_memory = bench.filled(count, type),
               per_channel = bench.filled(channels), sums_memory = bench.filled(4 * channels + 4);
  const Data x(x_memory.data(), type), dy(dy_memory.data(), type);
  const float* const p = floats(per_channel);
  auto* const sums = static_cast<double*>(sums_memory.data());
  const NormKernels& norm = bench.kernels().norm;
  const std::string shape = fmt::format("{} x {}", rows, channels);
  const double bytes = static_cast<double>(count) * static_cast<double>(size_in_bytes(type));
  bench.bandwidth("norm moments", shape, type, bytes,
                  [&](const Lane& lane) { norm.moments(lane, rows, channels, x, sums); });
  const NormKernels::Gradient gradient{
      .dy = dy, .mask_from_x = true, .x = x, .scale = p, .shift = p, .mean = p, .inverse_std = p};
  bench.bandwidth("norm backward_sums, mask from x", shape, type, 2 * bytes, [&](const Lane& lane) {
    norm.backward_sums(lane, rows, channels, gradient, nullptr, sums, sums + channels);
  });
}

struct Stage {
  std::int64_t size, channels;
};
/// Outputs of ResNet-50's convolutions.
constexpr Stage kStages[] = {{112, 64}, {56, 64},   {56, 256}, {28, 128}, {28, 512},
                             {14, 256}, {14, 1024}, {7, 512},  {7, 2048}};

}  // namespace

void pass_rates(RateBench& bench, DType type) {
  const std::int64_t samples = bench.tiny() ? 1 : 64, size = bench.tiny() ? 8 : 56,
                     channels = bench.tiny() ? 16 : 256, rows = samples * size * size,
                     count = rows * channels;
  const Buffer x_memory = bench.filled(count, type), r_memory = bench.filled(count, type),
               y_memory = bench.filled(count, type), dy_memory = bench.filled(count, type),
               dx_memory = bench.filled(count, type), per_channel = bench.filled(channels),
               sums_memory = bench.filled(4 * channels + 4), column_sums = bench.filled(channels);
  const Data x(x_memory.data(), type), r(r_memory.data(), type), y(y_memory.data(), type),
      dy(dy_memory.data(), type), dx(dx_memory.data(), type);
  const float* const p = floats(per_channel);
  // As doubles; the moments need one more.
  auto* const sums = static_cast<double*>(sums_memory.data());
  const KernelTable& k = bench.kernels();
  const std::string shape = fmt::format("{} x {}", rows, channels);
  const auto report = [&](const char* name, int streams, RateBench::Call call) {
    const auto size_of_one = static_cast<double>(size_in_bytes(type));
    bench.bandwidth(name, shape, type, static_cast<double>(count) * streams * size_of_one, call);
  };

  report("norm moments", 1, [&](const Lane& lane) { k.norm.moments(lane, rows, channels, x, sums); });
  report("norm normalize + relu", 2,
         [&](const Lane& lane) { k.norm.normalize(lane, rows, channels, x, p, p, p, nullptr, true, y); });
  report("norm normalize + residual + relu", 3,
         [&](const Lane& lane) { k.norm.normalize(lane, rows, channels, x, p, p, p, r, true, y); });
  NormKernels::Gradient from_y{.dy = dy, .y = y, .x = x, .scale = p, .shift = p, .mean = p, .inverse_std = p};
  NormKernels::Gradient from_x = from_y;
  from_x.y = nullptr;
  from_x.mask_from_x = true;
  report("norm backward_sums, mask from x", 2, [&](const Lane& lane) {
    k.norm.backward_sums(lane, rows, channels, from_x, nullptr, sums, sums + channels);
  });
  report("norm backward_sums, mask from y, g written", 4, [&](const Lane& lane) {
    k.norm.backward_sums(lane, rows, channels, from_y, dx, sums, sums + channels);
  });
  report("norm backward_apply, mask from x", 3,
         [&](const Lane& lane) { k.norm.backward_apply(lane, rows, channels, from_x, p, p, p, dx); });
  report("add + relu", 3, [&](const Lane& lane) { k.elementwise.add(lane, count, x, r, y, true); });
  report("relu backward", 3, [&](const Lane& lane) { k.elementwise.relu_backward(lane, count, dy, y, dx); });
  report("accumulate", 3, [&](const Lane& lane) { k.elementwise.accumulate(lane, count, dx, dy); });
  report("bias + relu", 2,
         [&](const Lane& lane) { k.elementwise.add_bias(lane, rows, channels, p, y, true); });
  report("mask and sum rows", 3, [&](const Lane& lane) {
    k.elementwise.mask_and_sum_rows(lane, rows, channels, dy, y, dx, floats(column_sums));
  });
  report("dropout", 2, [&](const Lane& lane) {
    k.elementwise.dropout(lane, samples, count / samples, x, 0.1F, 1, 2, 3, 0, y);
  });
  for (const auto& [side, width] : kStages)
    norm_sum_rates(bench, type, bench.tiny() ? side : 256 * side * side, width);
}

}  // namespace lockstep
