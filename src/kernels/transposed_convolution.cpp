// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/transposed_convolution.h"

#include "core/error.h"

namespace lockstep {
namespace {

class TransposedConvolution final : public LinearPrimitive {
 public:
  TransposedConvolution(const KernelTable& kernels, const ConvolutionSpec& spec, int lanes)
      : kernels_(kernels), spec_(spec), convolution_(inner(kernels, spec, lanes)) {}

  std::size_t scratch_bytes() const override { return convolution_->scratch_bytes(); }
  std::size_t packed_bytes() const override { return convolution_->packed_bytes(); }
  bool same_packing(const LinearPrimitive& other) const override {
    const auto* o = dynamic_cast<const TransposedConvolution*>(&other);
    return o != nullptr && convolution_->same_packing(*o->convolution_);
  }
  void pack(const Lane& lane, const float* weights, void* packed) const override {
    convolution_->pack(lane, weights, packed);
  }

  void forward(const Lane& lane, ConstData x, const float* weights, const void* packed, const float* bias,
               Data y) const override {
    convolution_->backward_data(lane, x, weights, packed, y);
    const std::int64_t rows = spec_.n * spec_.in_positions();
    if (spec_.bias)
      kernels_.elementwise.add_bias(lane, rows, spec_.in_c, bias, y, spec_.relu);
    else if (spec_.relu)
      kernels_.elementwise.relu(lane, rows * spec_.in_c, y, y);
  }
  void backward_data(const Lane& lane, ConstData dy, const float* weights, const void* packed,
                     Data dx) const override {
    require_training();
    convolution_->forward(lane, dy, weights, packed, nullptr, dx);
  }
  void backward_weights(const Lane& lane, ConstData x, ConstData dy, float* dweights) const override {
    require_training();
    convolution_->backward_weights(lane, dy, x, dweights);
  }
  double flops() const override { return convolution_->flops(); }
  std::string_view widened() const override { return convolution_->widened(); }

 private:
  /// The inner convolution. It needs its backward pass in inference too.
  static std::unique_ptr<LinearPrimitive> inner(const KernelTable& kernels, ConvolutionSpec spec, int lanes) {
    spec.bias = spec.relu = false;
    spec.training = true;
    return kernels.make.convolution(spec, lanes);
  }
  void require_training() const {
    LOCKSTEP_CHECK(spec_.training, "backward pass of a primitive made without training");
  }

  const KernelTable& kernels_;
  ConvolutionSpec spec_;
  std::unique_ptr<LinearPrimitive> convolution_;
};

}  // namespace

std::unique_ptr<LinearPrimitive> make_transposed_convolution(const KernelTable& kernels,
                                                             const ConvolutionSpec& convolution, int lanes) {
  return std::make_unique<TransposedConvolution>(kernels, convolution, lanes);
}

}  // namespace lockstep
