// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// cuBLASLt products for the GPU's dense layers (private to this room). A product selects and checks one
// algorithm, once per shape and process, and runs it in any lane.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>

#include "core/dtype.h"
#include "kernels/lane.h"

namespace lockstep::cuda {

inline constexpr std::uint32_t kProductAlignment = 16;  ///< of all matrices, unless the shape sets another

inline constexpr std::size_t kWorkspaceAlignment = 256;  ///< required by cublasLtMatmul

/// A column-major product d (m x n) = op(a) op(b) (+ bias[m], of d's type).
struct ProductShape {
  std::int64_t m = 0, n = 0, k = 0;
  bool transposed_a = false, transposed_b = false, bias = false, tf32 = false;
  std::uint32_t alignment = kProductAlignment;
  DType from = DType::f32, to = DType::f32;  ///< of a and b; of d
  /// The matrices' alignment, but at least that of one number: `to` may be wider than `from`.
  std::uint32_t bias_alignment() const {
    return std::max(alignment, static_cast<std::uint32_t>(size_in_bytes(to)));
  }
  auto key() const {
    return std::tuple(m, n, k, transposed_a, transposed_b, bias, tf32, alignment, from, to);
  }
  std::string describe() const;
};

class Product {
 public:
  virtual ~Product() = default;
  virtual std::size_t scratch_bytes() const = 0;
  /// d = op(a) op(b) (+ bias; null if the shape has none), in device memory. The lane is one of those given
  /// to make_product().
  virtual void run(const Lane& lane, const void* a, const void* b, const void* bias, void* d) const = 0;
};

/// A product for lanes 0 to `lanes` - 1 of the current device. `check`: by the first algorithm that computes
/// rightly (plan_check_cuda.h); the others are noted. Throws Error(device) that names the call and the
/// product, and NotSupported if there is no such algorithm, or no deterministic one.
std::unique_ptr<Product> make_product(const ProductShape& shape, int lanes, bool check);

}  // namespace lockstep::cuda
