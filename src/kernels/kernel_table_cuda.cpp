// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernel_table_cuda.h"

#include "kernels/cuda_launch.h"
#include "kernels/factory_cuda.h"

namespace lockstep {
namespace {

class CudaFactory final : public PrimitiveFactory {
 public:
  explicit CudaFactory(CudaOptions options) : options_(options) {}

  std::unique_ptr<LinearPrimitive> convolution(const ConvolutionSpec& spec, int) const override {
    return cuda::make_convolution(spec, options_);
  }
  std::unique_ptr<LinearPrimitive> dense(const DenseSpec& spec, int lanes) const override {
    return cuda::make_dense(spec, lanes, options_);
  }
  std::unique_ptr<PoolPrimitive> pool(const PoolSpec& spec, int) const override {
    return cuda::make_pool(spec);
  }

 private:
  CudaOptions options_;
};

KernelTable table_of(const PrimitiveFactory& factory) {
  // clang-format off
  return {cuda::activation_kernels(),
          cuda::broadcast_kernels(),
          cuda::clip_kernels(),
          cuda::distribution_kernels(),
          cuda::elementwise_kernels(),
          cuda::group_norm_kernels(),
          cuda::layout_kernels(),
          cuda::norm_kernels(),
          cuda::loss_kernels(),
          cuda::loss_term_kernels(),
          cuda::update_kernels(),
          cuda::recurrent_kernels(),
          cuda::sequence_kernels(),
          cuda::embedding_kernels(),
          cuda::attention_kernels(),
          cuda::sampling_kernels(),
          cuda::spatial_kernels(),
          cuda::fingerprint_kernels(),
          cuda::metric_kernels(),
          factory,
          cuda::kScratchBytes};
  // clang-format on
}

}  // namespace

const KernelTable& cuda_kernels(const CudaOptions& options) {
  struct Table {
    CudaFactory factory;
    KernelTable kernels;
    explicit Table(const CudaOptions& of) : factory(of), kernels(table_of(factory)) {}
  };
  static const Table plain({.allow_tf32 = false, .check_plans = false}),
      tf32({.allow_tf32 = true, .check_plans = false}), checked({.allow_tf32 = false, .check_plans = true}),
      checked_tf32({.allow_tf32 = true, .check_plans = true});
  if (options.check_plans) return options.allow_tf32 ? checked_tf32.kernels : checked.kernels;
  return options.allow_tf32 ? tf32.kernels : plain.kernels;
}

std::string cuda_library_versions() {
  return cuda::dense_library_version() + ", " + cuda::convolution_library_version();
}

}  // namespace lockstep
