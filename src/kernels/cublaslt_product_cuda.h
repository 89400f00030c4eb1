// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a product is for cuBLASLt (private to this room): its descriptors. No call here needs a GPU.
#pragma once

#include <cublasLt.h>

#include <memory>
#include <string>

#include "kernels/cublaslt_cuda.h"

namespace lockstep::cuda {

/// Throws Error(device) with the call's name, `what` and cuBLAS's own words unless `status` is success.
void check(cublasStatus_t status, const char* call, const std::string& what);

struct DestroyCublasLt {
  void operator()(cublasLtMatrixLayout_t layout) const { cublasLtMatrixLayoutDestroy(layout); }
  void operator()(cublasLtMatmulDesc_t operation) const { cublasLtMatmulDescDestroy(operation); }
  void operator()(cublasLtMatmulPreference_t preference) const {
    cublasLtMatmulPreferenceDestroy(preference);
  }
};
template <typename Opaque>
using CublasLtOwner = std::unique_ptr<Opaque, DestroyCublasLt>;

struct ProductLayouts {
  CublasLtOwner<cublasLtMatrixLayoutOpaque_t> a, b, d;
};

/// All three throw as check() does.
ProductLayouts layouts_of(const ProductShape& shape);
/// With a bias's address that has the product's alignment and is to be replaced (bias_pointer).
CublasLtOwner<cublasLtMatmulDescOpaque_t> operation_of(const ProductShape& shape);
/// Determinism: cuBLASLt gives the same bits for the same algorithm, shape and GPU, unless it cuts the inner
/// dimension and adds the parts as they come. The reduction scheme is restricted to the one that leaves parts
/// in the workspace and adds them in order (CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) and to no cut at all.
CublasLtOwner<cublasLtMatmulPreferenceOpaque_t> preference_of(const ProductShape& shape);

/// Sets the bias's address for the next run.
void bias_pointer(cublasLtMatmulDesc_t operation, const float* bias, const std::string& what);

}  // namespace lockstep::cuda
