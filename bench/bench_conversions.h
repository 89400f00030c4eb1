// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Speed of conversions between float32 and the 16-bit types, in cache.
#pragma once

#include <fmt/format.h>

#include "bench_memory.h"
#include "kernels/kernel_table.h"

namespace lockstep {

/// report(name, value, unit); best_seconds(call) returns the shortest time of several calls.
template <typename Report, typename BestSeconds>
void bench_conversions(const Report& report, const BestSeconds& best_seconds) {
  constexpr std::int64_t kCount = 1 << 14;
  const Buffer floats = bench_floats(kCount), narrow(cpu_device(), kCount * 2);
  auto* wide = static_cast<float*>(floats.data());
  const ElementwiseKernels& kernels = cpu_kernels().elementwise;
  for (const DType type : {DType::bf16, DType::f16}) {
    const Data there(narrow.data(), type);
    const double to = best_seconds([&] { kernels.convert({}, kCount, wide, there); }),
                 from = best_seconds([&] { kernels.convert({}, kCount, there, wide); });
    report(fmt::format("float32 to {}", name_of(type)), kCount / to * 1e-9, "G numbers/s");
    report(fmt::format("{} to float32", name_of(type)), kCount / from * 1e-9, "G numbers/s");
  }
}

}  // namespace lockstep
