// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Dense layers on a GPU: cuBLASLt for all three passes. Our matrices are row-major and cuBLAS's are
// column-major. A row-major matrix is its transpose there, so y = x W is computed as y' = W' x' without
// moving the operands.
//
// cuBLAS's heuristic selects the algorithm among deterministic ones (cublaslt_product_cuda.h), without
// timing, once per shape, when a primitive is created.
//
// ReLU is not an epilogue of the product: CUBLASLT_EPILOGUE_RELU is max(x, 0), which is 0 for NaN on a GPU
// and would hide broken weights. A pass of our own applies it, in float32 and together with the bias. A bias
// without relu is the epilogue.
//
// In 16-bit types the operands have that type (the pack holds the rounded weights in plain layout). Sums,
// scales and the weight gradient are float32. There a bias is the epilogue with relu too: it is added to the
// float32 sum, so y is rounded once, and relu of a rounded number needs no rounding. The epilogue requires a
// bias of y's type (cublasLt.h), so a launch over one row first rounds the bias, like the weights, into
// scratch. This costs 2 bytes of memory traffic per element of y. A separate bias pass over y would cost 6,
// or 10 with a float32 y that is rounded once. If cuBLASLt has no algorithm for a product, the float32
// product runs on widened numbers (widened_linear.h).
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
      : spec_(spec), bias_in_product_(spec.bias && (!spec.relu || spec.y_type() != DType::f32)) {
    LOCKSTEP_CHECK(spec.n > 0 && spec.in > 0 && spec.out > 0, "n {} in {} out {}", spec.n, spec.in, spec.out);
    ProductShape shape{spec.out, spec.n, spec.in};
    shape.tf32 = options.allow_tf32 && spec.dtype == DType::f32;
    shape.from = spec.dtype, shape.to = spec.y_type();
    if (!spec.aligned) shape.alignment = static_cast<std::uint32_t>(size_in_bytes(spec.dtype));
    const auto product = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
      shape.m = m, shape.n = n, shape.k = k;
      return shape;
    };
    shape.bias = bias_in_product_;
    forward_ = make_product(product(spec.out, spec.n, spec.in), lanes, options.check_plans);
    if (!spec.training) return;
    shape.bias = false, shape.transposed_a = true, shape.to = spec.dx_type();
    backward_data_ = make_product(product(spec.in, spec.n, spec.out), lanes, options.check_plans);
    shape.transposed_a = false, shape.transposed_b = true, shape.to = DType::f32;
    backward_weights_ = make_product(product(spec.out, spec.in, spec.n), lanes, options.check_plans);
  }

  std::size_t scratch_bytes() const override {
    std::size_t bytes = forward_->scratch_bytes();
    for (const Product* product : {backward_data_.get(), backward_weights_.get()})
      if (product != nullptr) bytes = std::max(bytes, product->scratch_bytes());
    return bytes + bias_bytes();
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
    Lane rest = lane;
    const void* added = bias_in_product_ ? bias : nullptr;
    if (bias_bytes() > 0) added = rounded_bias(rest, bias);
    forward_->run(rest, used(weights, packed), address_in(spec_.dtype, x), added,
                  address_in(spec_.y_type(), y));
    const float* left = spec_.bias && !bias_in_product_ ? bias : nullptr;
    if (left != nullptr || spec_.relu) add_bias(lane, spec_.n, spec_.out, left, spec_.relu, y);
  }
  void backward_data(const Lane& lane, ConstData dy, const float* weights, const void* packed,
                     Data dx) const override {
    LOCKSTEP_CHECK(spec_.training, "backward pass of a primitive made without training");
    backward_data_->run(lane, used(weights, packed), address_in(spec_.dtype, dy), nullptr,
                        address_in(spec_.dx_type(), dx));
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
  /// Scratch bytes of the rounded bias, including alignment; 0: no rounded bias.
  std::size_t bias_bytes() const {
    if (!bias_in_product_ || spec_.y_type() == DType::f32) return 0;
    const std::size_t bytes = static_cast<std::size_t>(spec_.out) * size_in_bytes(spec_.dtype);
    return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment +
           kWorkspaceAlignment;
  }
  /// Writes the bias in y's type to the beginning of the lane's scratch, returns it, and removes it from the
  /// lane's scratch.
  const void* rounded_bias(Lane& lane, const float* bias) const {
    LOCKSTEP_CHECK(lane.scratch_bytes >= scratch_bytes(), "lane {} has {} bytes of scratch, needs {}",
                   lane.index, lane.scratch_bytes, scratch_bytes());
    const auto begin = (reinterpret_cast<std::uintptr_t>(lane.scratch) + kWorkspaceAlignment - 1) /
                       kWorkspaceAlignment * kWorkspaceAlignment;
    void* rounded = reinterpret_cast<void*>(begin);
    elementwise_kernels().convert(lane, spec_.out, bias, {rounded, spec_.dtype});
    lane.scratch = static_cast<char*>(lane.scratch) + bias_bytes();
    lane.scratch_bytes -= bias_bytes();
    return rounded;
  }
  const void* used(const float* weights, const void* packed) const { return packs() ? packed : weights; }

  DenseSpec spec_;
  bool bias_in_product_;
  std::unique_ptr<Product> forward_, backward_data_, backward_weights_;
};

}  // namespace

std::unique_ptr<LinearPrimitive> make_dense(const DenseSpec& spec, int lanes, const CudaOptions& options) {
  return make_in_its_type<CudaDense>(elementwise_kernels(), "", spec, lanes, options);
}

}  // namespace lockstep::cuda
