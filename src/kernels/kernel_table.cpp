// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernel_table.h"

#include "core/cpu.h"
#include "core/error.h"
#include "kernels/factory_cpu.h"
#include "kernels/isa.h"
#include "kernels/onednn.h"

namespace lockstep {

// These destructors are defined here, not in the headers, so that the vtables and type information of the
// abstract classes are compiled once, for every processor (isa.h).
ActivationKernels::~ActivationKernels() = default;
BroadcastKernels::~BroadcastKernels() = default;
ClipKernels::~ClipKernels() = default;
DistributionKernels::~DistributionKernels() = default;
ElementwiseKernels::~ElementwiseKernels() = default;
GroupNormKernels::~GroupNormKernels() = default;
LayoutKernels::~LayoutKernels() = default;
NormKernels::~NormKernels() = default;
LossKernels::~LossKernels() = default;
LossTermKernels::~LossTermKernels() = default;
PoolKernels::~PoolKernels() = default;
RecurrentKernels::~RecurrentKernels() = default;
SequenceKernels::~SequenceKernels() = default;
SpatialKernels::~SpatialKernels() = default;
UpdateKernels::~UpdateKernels() = default;
FingerprintKernels::~FingerprintKernels() = default;
MetricKernels::~MetricKernels() = default;
EmbeddingKernels::~EmbeddingKernels() = default;
AttentionKernels::~AttentionKernels() = default;
SamplingKernels::~SamplingKernels() = default;

const float* RecurrentTerm::computed() const {
  LOCKSTEP_CHECK(!is_product(), "a product where the kernel takes its value");
  return sum;
}

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
  // clang-format off
#define LOCKSTEP_TABLE_OF(level)  \
  {                               \
    level::activation_kernels(),  \
    level::broadcast_kernels(),   \
    level::clip_kernels(),        \
    level::distribution_kernels(), \
    level::elementwise_kernels(), \
    level::group_norm_kernels(),  \
    level::layout_kernels(),      \
    level::norm_kernels(),        \
    level::loss_kernels(),        \
    level::loss_term_kernels(),   \
    level::update_kernels(),      \
    level::recurrent_kernels(),   \
    level::sequence_kernels(),    \
    level::embedding_kernels(),   \
    level::attention_kernels(),   \
    level::sampling_kernels(),    \
    level::spatial_kernels(),     \
    cpu_fingerprint_kernels(),    \
    cpu_metric_kernels(),         \
    factory                       \
  }
  // clang-format on
  switch (level) {
#if defined(__x86_64__)
    case IsaLevel::avx512:
      return LOCKSTEP_TABLE_OF(avx512);
    case IsaLevel::avx2:
      return LOCKSTEP_TABLE_OF(avx2);
#endif
    default:
      return LOCKSTEP_TABLE_OF(baseline);
  }
#undef LOCKSTEP_TABLE_OF
}

}  // namespace

const KernelTable& cpu_kernels() {
  static const KernelTable table = table_of(isa_level());
  return table;
}

std::string primitive_library_version(DType activations) {
  return fmt::format("oneDNN {} ({}{})", onednn::version(), name_of(isa_level()),
                     activations == DType::bf16 && onednn::multiplies_bfloat16() ? ", AVX-512 BF16" : "");
}

}  // namespace lockstep
