// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Replaces kernels/cublaslt_cuda.cpp on the emulated GPU, so that dense_cuda.cpp itself runs there. Plain
// loops compute the product that cuBLASLt reads from the descriptors (described_product.h).
#include <algorithm>

#include "core/error.h"
#include "core/half.h"
#include "described_product.h"
#include "kernels/cuda_launch.h"
#include "kernels/factory_cuda.h"
#include "kernels/plan_check_cuda.h"

namespace lockstep::cuda {

namespace {

template <typename From, typename To>
void multiply(const ProductAccount& p, const void* a, const void* b, const void* bias, void* d) {
  const auto* const from_a = static_cast<const From*>(a);
  const auto* const from_b = static_cast<const From*>(b);
  const std::int64_t inner = p.transposed_a ? p.a.rows : p.a.columns;
  for (std::int64_t j = 0; j < p.d.columns; ++j)
    for (std::int64_t i = 0; i < p.d.rows; ++i) {
      double sum = p.bias ? static_cast<double>(to_float(static_cast<const To*>(bias)[i])) : 0.0;
      for (std::int64_t l = 0; l < inner; ++l) {
        const std::int64_t at_a = p.transposed_a ? l + i * p.a.leading : i + l * p.a.leading;
        const std::int64_t at_b = p.transposed_b ? j + l * p.b.leading : l + j * p.b.leading;
        sum += static_cast<double>(to_float(from_a[at_a])) * static_cast<double>(to_float(from_b[at_b]));
      }
      static_cast<To*>(d)[i + j * p.d.leading] = from_float<To>(static_cast<float>(sum));
    }
}

class EmulatedProduct final : public Product {
 public:
  EmulatedProduct(const ProductShape& shape, int lanes, bool check)
      : lanes_(lanes), account_(account_of(shape)) {
    if (!check) return;
    const PlanError error = error_of_plan(
        shape, 0, [&](cudaStream_t stream, const void* a, const void* b, const void* bias, void* d, void*) {
          queue(stream, a, b, bias, d);
        });
    LOCKSTEP_CHECK(error.text.empty(), "cuBLASLt reads another product from the descriptors of {}: {}",
                   shape.describe(), error.text);
  }

  /// Nonzero, so that a lane with too little scratch is detected.
  std::size_t scratch_bytes() const override { return 4096; }

  void run(const Lane& lane, const void* a, const void* b, const void* bias, void* d) const override {
    LOCKSTEP_CHECK(lane.index >= 0 && lane.index < lanes_, "lane {} of {}", lane.index, lanes_);
    LOCKSTEP_CHECK(lane.scratch_bytes >= scratch_bytes(), "lane {} has {} bytes of scratch", lane.index,
                   lane.scratch_bytes);
    queue(stream_of(lane), a, b, bias, d);
  }

 private:
  void queue(cudaStream_t stream, const void* a, const void* b, const void* bias, void* d) const {
    require_alignment(a, account_.alignment, account_.a.type);
    require_alignment(b, account_.alignment, account_.b.type);
    require_alignment(d, account_.alignment, account_.d.type);
    require_alignment(bias, account_.bias_alignment, account_.d.type);
    with_type(account_.a.type, [&]<typename From>(From) {
      with_type(account_.d.type, [&]<typename To>(To) {
        check(emulation::enqueue(stream,
                                 [p = account_, a, b, bias, d] { multiply<From, To>(p, a, b, bias, d); }),
              "an emulated product");
      });
    });
  }
  /// cublasLtMatmul refuses an address that is less aligned than the algorithm was promised, or than a number
  /// of this type is.
  static void require_alignment(const void* operand, std::size_t promised, DType type) {
    const std::size_t alignment = std::max(promised, size_in_bytes(type));
    LOCKSTEP_CHECK(reinterpret_cast<std::uintptr_t>(operand) % alignment == 0,
                   "an operand is not aligned to {} bytes", alignment);
  }

  int lanes_;
  ProductAccount account_;
};

}  // namespace

std::unique_ptr<Product> make_product(const ProductShape& shape, int lanes, bool check) {
  return std::make_unique<EmulatedProduct>(shape, lanes, check);
}
std::string dense_library_version() { return "emulated products"; }

}  // namespace lockstep::cuda
