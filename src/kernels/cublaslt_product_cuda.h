// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// cuBLASLt descriptors of a product (private to this room). No call here needs a GPU.
#pragma once

#include <cublasLt.h>

#include <memory>
#include <string>

#include "kernels/cublaslt_cuda.h"

namespace lockstep::cuda {

/// Throws Error(device) with the call's name, `what` and cuBLAS's message unless `status` is success.
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

/// These three functions throw as check() does.
ProductLayouts layouts_of(const ProductShape& shape);
/// Its bias pointer is a placeholder with the bias's alignment; bias_pointer() replaces it before each run.
CublasLtOwner<cublasLtMatmulDescOpaque_t> operation_of(const ProductShape& shape);
/// Restricts the algorithms to deterministic ones. cuBLASLt returns the same bits for the same algorithm,
/// shape and GPU, unless it splits the inner dimension and adds the parts in completion order. The preference
/// allows no split, or the scheme that stores parts in the workspace and adds them in order
/// (CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE).
CublasLtOwner<cublasLtMatmulPreferenceOpaque_t> preference_of(const ProductShape& shape);

/// The number of parts into which an algorithm splits the inner dimension; 1: none.
int num_splits(const cublasLtMatmulAlgo_t& algorithm, const std::string& what);
/// "algorithm 66, tile 20, stages 15, 2 splits, ...".
std::string describe(const cublasLtMatmulAlgo_t& algorithm, const std::string& what);

/// Sets the bias's address for the next run.
void bias_pointer(cublasLtMatmulDesc_t operation, const void* bias, const std::string& what);

}  // namespace lockstep::cuda
