// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What the real cuBLASLt understood of the program's products (kernels/cublaslt_product_cuda.h). Unlike cuDNN
// it chooses algorithms on a GPU alone: here it sees the descriptors and no more.
#pragma once

#include <cstdint>

#include "kernels/cublaslt_cuda.h"

namespace lockstep {

/// Column-major, as all of cuBLASLt's here.
struct ProductMatrix {
  DType type = DType::f32;
  std::int64_t rows = 0, columns = 0, leading = 0;
};
/// d = op(a) op(b) (+ bias[row]).
struct ProductAccount {
  ProductMatrix a, b, d;
  bool transposed_a = false, transposed_b = false, bias = false, tf32 = false;
  std::uint32_t alignment = 0;
};

/// Throws Error(device) where cuBLASLt refuses a descriptor, Error(bug) where it understood another thing
/// than such a product with float32 sums and a deterministic choice of algorithms.
ProductAccount account_of(const cuda::ProductShape& shape);

}  // namespace lockstep
