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

// Returns what(level) for a level that the program was built for (LOCKSTEP_ISA_LEVELS in CMake).
#ifdef LOCKSTEP_BUILDS_AVX512
#define LOCKSTEP_IF_AVX512(what) \
  case IsaLevel::avx512:         \
    return what(avx512);
#else
#define LOCKSTEP_IF_AVX512(what)
#endif
#ifdef LOCKSTEP_BUILDS_AVX2
#define LOCKSTEP_IF_AVX2(what) \
  case IsaLevel::avx2:         \
    return what(avx2);
#else
#define LOCKSTEP_IF_AVX2(what)
#endif
#ifdef LOCKSTEP_BUILDS_BASELINE
#define LOCKSTEP_IF_BASELINE(what) \
  case IsaLevel::baseline:         \
    return what(baseline);
#else
#define LOCKSTEP_IF_BASELINE(what)
#endif
#define LOCKSTEP_AT_LEVEL(level, what) \
  switch (level) {                     \
    LOCKSTEP_IF_AVX512(what)           \
    LOCKSTEP_IF_AVX2(what)             \
    LOCKSTEP_IF_BASELINE(what)         \
    default:                           \
      break;                           \
  }                                    \
  LOCKSTEP_CHECK(false, "level {} is not built", name_of(level));

namespace {

const PoolKernels& pool_kernels();

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
  LOCKSTEP_AT_LEVEL(level, LOCKSTEP_TABLE_OF)
#undef LOCKSTEP_TABLE_OF
}

const PoolKernels& pool_kernels() {
#define LOCKSTEP_POOL_OF(level) level::pool_kernels()
  LOCKSTEP_AT_LEVEL(isa_level(), LOCKSTEP_POOL_OF)
#undef LOCKSTEP_POOL_OF
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
