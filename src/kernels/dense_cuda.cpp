// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows times a matrix on a GPU: cuBLASLt for all three passes. Our matrices are row-major and cuBLAS's
// column-major: a row-major matrix is its transpose there, so y = x W is y' = W' x' with the operands as they
// lie.
//
// The algorithm is chosen among deterministic ones (cublaslt_product_cuda.h) by cuBLAS's heuristic, not by
// timing, once per shape, when a primitive is made.
//
// ReLU is not an epilogue of the product: CUBLASLT_EPILOGUE_RELU is max(x, 0), which is 0 for NaN on a GPU,
// and a broken weight would go on unseen. It is one pass of our own, together with the bias; a bias alone is
// the epilogue.
//
// In 16-bit types the operands are of that type (the pack has the rounded weights, as they lie), sums and
// scales are float32, and so is the gradient of the weights. The epilogue would take a bias of y's type only,
// so a bias is the pass of our own there: y is rounded, and once more with the bias. That costs 6 bytes of
// memory traffic per element; to leave a float32 y in scratch and round once would cost 10. Where cuBLASLt
// has no algorithm for a product: float32's products of widened numbers (widened_linear.h).
#include <algorithm>

#include "core/error.h"
#include "kernels/cublaslt_cuda.h"
#include "kernels/factory_cuda.h"
#include "kernels/linear_cuda.h"
#include "kernels/widened_linear.h"

namespace lockstep::cuda {
namespace {

class CudaDense final : public LinearPrimitive {
 public:
  CudaDense(const DenseSpec& spec, int lanes, const CudaOptions& options)
      : spec_(spec), bias_in_product_(spec.bias && !spec.relu && spec.dtype == DType::f32) {
    LOCKSTEP_CHECK(spec.n > 0 && spec.in > 0 && spec.out > 0, "n {} in {} out {}", spec.n, spec.in, spec.out);
    ProductShape shape{spec.out, spec.n, spec.in};
    shape.tf32 = options.allow_tf32 && spec.dtype == DType::f32;
    shape.from = shape.to = spec.dtype;
    if (!spec.aligned) shape.alignment = static_cast<std::uint32_t>(size_in_bytes(spec.dtype));
    const auto product = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
      shape.m = m, shape.n = n, shape.k = k;
      return shape;
    };
    shape.bias = bias_in_product_;
    forward_ = make_product(product(spec.out, spec.n, spec.in), lanes);
    if (!spec.training) return;
    shape.bias = false, shape.transposed_a = true;
    backward_data_ = make_product(product(spec.in, spec.n, spec.out), lanes);
    shape.transposed_a = false, shape.transposed_b = true, shape.to = DType::f32;
    backward_weights_ = make_product(product(spec.out, spec.in, spec.n), lanes);
  }

  std::size_t scratch_bytes() const override {
    std::size_t bytes = forward_->scratch_bytes();
    for (const Product* product : {backward_data_.get(), backward_weights_.get()})
      if (product != nullptr) bytes = std::max(bytes, product->scratch_bytes());
    return bytes;
  }
  std::size_t packed_bytes() const override {
    return packs() ? static_cast<std::size_t>(spec_.in * spec_.out) * size_in_bytes(spec_.dtype) : 0;
  }
  bool same_packing(const LinearPrimitive& other) const override {
    const auto* o = dynamic_cast<const CudaDense*>(&other);
    return o != nullptr && o->spec_.dtype == spec_.dtype && o->packed_bytes() == packed_bytes();
  }
  void pack(const Lane& lane, const float* weights, void* packed) const override {
    if (packs()) elementwise_kernels().convert(lane, spec_.in * spec_.out, weights, {packed, spec_.dtype});
  }

  void forward(const Lane& lane, ConstData x, const float* weights, const void* packed, const float* bias,
               Data y) const override {
    forward_->run(lane, used(weights, packed), address_in(spec_.dtype, x), bias_in_product_ ? bias : nullptr,
                  address_in(spec_.dtype, y));
    if (!bias_in_product_) add_bias(lane, spec_.n, spec_.out, spec_.bias ? bias : nullptr, spec_.relu, y);
  }
  void backward_data(const Lane& lane, ConstData dy, const float* weights, const void* packed,
                     Data dx) const override {
    LOCKSTEP_CHECK(spec_.training, "backward pass of a primitive made without training");
    backward_data_->run(lane, used(weights, packed), address_in(spec_.dtype, dy), nullptr,
                        address_in(spec_.dtype, dx));
  }
  void backward_weights(const Lane& lane, ConstData x, ConstData dy, float* dweights) const override {
    LOCKSTEP_CHECK(spec_.training, "backward pass of a primitive made without training");
    backward_weights_->run(lane, address_in(spec_.dtype, dy), address_in(spec_.dtype, x), nullptr, dweights);
  }
  double flops() const override {
    return 2.0 * static_cast<double>(spec_.n * spec_.in) * static_cast<double>(spec_.out);
  }

 private:
  bool packs() const { return spec_.dtype != DType::f32; }
  const void* used(const float* weights, const void* packed) const { return packs() ? packed : weights; }

  DenseSpec spec_;
  bool bias_in_product_;
  std::unique_ptr<Product> forward_, backward_data_, backward_weights_;
};

}  // namespace

std::unique_ptr<LinearPrimitive> make_dense(const DenseSpec& spec, int lanes, const CudaOptions& options) {
  return make_in_its_type<CudaDense>(elementwise_kernels(), true, spec, lanes, options);
}

}  // namespace lockstep::cuda
