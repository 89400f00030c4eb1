// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// cuBLASLt behind the GPU's dense layers (private to this room): one product becomes an algorithm, chosen
// once per shape and process, that runs in any lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>

#include "core/dtype.h"
#include "kernels/lane.h"

namespace lockstep::cuda {

inline constexpr std::uint32_t kProductAlignment = 16;  ///< of all matrices, unless the shape says otherwise

/// A column-major product d (m x n) = op(a) op(b) (+ bias[m], with float32 only).
struct ProductShape {
  std::int64_t m = 0, n = 0, k = 0;
  bool transposed_a = false, transposed_b = false, bias = false, tf32 = false;
  std::uint32_t alignment = kProductAlignment;
  DType from = DType::f32, to = DType::f32;  ///< of a and b; of d
  auto key() const {
    return std::tuple(m, n, k, transposed_a, transposed_b, bias, tf32, alignment, from, to);
  }
  std::string describe() const;
};

class Product {
 public:
  virtual ~Product() = default;
  virtual std::size_t scratch_bytes() const = 0;
  /// d = op(a) op(b) (+ bias; null without one), in device memory; the lane is one of those it was made for.
  virtual void run(const Lane& lane, const void* a, const void* b, const float* bias, void* d) const = 0;
};

/// For lanes 0 to `lanes` - 1 of the current device. Throws Error(device) that names the call and the
/// product, or says that there is no deterministic algorithm for it.
std::unique_ptr<Product> make_product(const ProductShape& shape, int lanes);

}  // namespace lockstep::cuda
