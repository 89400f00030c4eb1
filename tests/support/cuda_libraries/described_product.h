// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The program's products as the real cuBLASLt reads them (kernels/cublaslt_product_cuda.h). Unlike cuDNN, it
// selects algorithms only on a GPU, so it receives only the descriptors here.
#pragma once

#include <cstdint>

#include "kernels/cublaslt_cuda.h"

namespace lockstep {

/// Column-major, like all matrices of cuBLASLt here.
struct ProductMatrix {
  DType type = DType::f32;
  std::int64_t rows = 0, columns = 0, leading = 0;
};
/// d = op(a) op(b) (+ bias[row]).
struct ProductAccount {
  ProductMatrix a, b, d;
  bool transposed_a = false, transposed_b = false, bias = false, tf32 = false;
  std::uint32_t alignment = 0;        ///< of the matrices
  std::uintptr_t bias_alignment = 1;  ///< that the search for an algorithm is promised
};

/// Throws Error(device) if cuBLASLt rejects a descriptor, or would reject it in its search for an algorithm,
/// which is modelled on what an H100 said; and Error(bug) if cuBLASLt reads anything other than this product
/// with float32 sums and a deterministic choice of algorithms.
ProductAccount account_of(const cuda::ProductShape& shape);

}  // namespace lockstep
