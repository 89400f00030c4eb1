// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Optimizer updates, over as many variables as GPT-2 has.
#include <fmt/format.h>

#include "gpu/rate_bench.h"

namespace lockstep {

namespace {
float* at(const Buffer& buffer) { return static_cast<float*>(buffer.data()); }
}  // namespace

void update_rates(RateBench& bench) {
  const std::int64_t count = bench.tiny() ? 5000 : 160'000'000;
  const Buffer w = bench.filled(count), g = bench.filled(count), m = bench.filled(count),
               v = bench.filled(count, DType::f32, 0.0F), flag = Buffer::pinned(bench.device(), 4);
  const UpdateKernels& update = bench.kernels().update;
  const std::string shape = fmt::format("{}", count);
  const auto report = [&](const char* name, int streams, RateBench::Call call) {
    bench.bandwidth(name, shape, DType::f32, static_cast<double>(count) * streams * sizeof(float), call);
  };
  report("gradient_descent", 3,
         [&](const Lane& lane) { update.gradient_descent(lane, count, at(w), at(g), 1e-9F); });
  report("momentum", 5,
         [&](const Lane& lane) { update.momentum(lane, count, at(w), at(g), at(m), 1e-9F, 0.9F, false); });
  report("adam", 7, [&](const Lane& lane) {
    update.adam(lane, count, at(w), at(g), at(m), at(v), 1e-9F, 0.9F, 0.999F, 1e-8F);
  });
  report("unscale", 2, [&](const Lane& lane) {
    update.unscale(lane, count, 1.0F, at(g), static_cast<std::int32_t*>(flag.data()));
  });
}

}  // namespace lockstep
