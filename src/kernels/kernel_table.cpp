// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernel_table.h"

#include "core/cpu.h"
#include "core/error.h"
#include "kernels/factory_cpu.h"
#include "kernels/isa.h"
#include "kernels/onednn.h"

namespace lockstep {

// Here, not in the headers: so the tables and type information of the abstract classes are compiled once, for
// every processor (isa.h).
ActivationKernels::~ActivationKernels() = default;
BroadcastKernels::~BroadcastKernels() = default;
ElementwiseKernels::~ElementwiseKernels() = default;
GroupNormKernels::~GroupNormKernels() = default;
LayoutKernels::~LayoutKernels() = default;
NormKernels::~NormKernels() = default;
LossKernels::~LossKernels() = default;
PoolKernels::~PoolKernels() = default;
UpdateKernels::~UpdateKernels() = default;

namespace {

const PoolKernels& pool_kernels() {
  switch (isa_level()) {
#if defined(__x86_64__)
    case IsaLevel::avx512:
      return avx512::pool_kernels();
    case IsaLevel::avx2:
      return avx2::pool_kernels();
#endif
    default:
      return baseline::pool_kernels();
  }
}

class CpuFactory final : public PrimitiveFactory {
 public:
  std::unique_ptr<LinearPrimitive> convolution(const ConvolutionSpec& spec, int lanes) const override {
    return make_cpu_convolution(spec, lanes);
  }
  std::unique_ptr<LinearPrimitive> dense(const DenseSpec& spec, int lanes) const override {
    return make_cpu_dense(spec, lanes);
  }
  std::unique_ptr<PoolPrimitive> pool(const PoolSpec& spec, int) const override {
    return make_cpu_pool(spec, pool_kernels());
  }
};
const CpuFactory factory;

KernelTable table_of(IsaLevel level) {
  switch (level) {
#if defined(__x86_64__)
    case IsaLevel::avx512:
      // clang-format off: one per line
      return {avx512::activation_kernels(), avx512::broadcast_kernels(), avx512::elementwise_kernels(),
              avx512::group_norm_kernels(), avx512::layout_kernels(),    avx512::norm_kernels(),
              avx512::loss_kernels(),       avx512::update_kernels(),    factory};
      // clang-format on
    case IsaLevel::avx2:
      // clang-format off: one per line
      return {avx2::activation_kernels(), avx2::broadcast_kernels(), avx2::elementwise_kernels(),
              avx2::group_norm_kernels(), avx2::layout_kernels(),    avx2::norm_kernels(),
              avx2::loss_kernels(),       avx2::update_kernels(),    factory};
      // clang-format on
#endif
    default:
      // clang-format off: one per line
      return {baseline::activation_kernels(), baseline::broadcast_kernels(), baseline::elementwise_kernels(),
              baseline::group_norm_kernels(), baseline::layout_kernels(),    baseline::norm_kernels(),
              baseline::loss_kernels(),       baseline::update_kernels(),    factory};
      // clang-format on
  }
}

}  // namespace

const KernelTable& cpu_kernels() {
  static const KernelTable table = table_of(isa_level());
  return table;
}

std::string primitive_library_version() {
  return fmt::format("oneDNN {} ({})", onednn::version(), name_of(isa_level()));
}

}  // namespace lockstep
