// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The base class of dense layers and convolutions: a kernel, a bias, an optional fused relu, and one
// primitive per microshard size.
#pragma once

#include <memory>
#include <vector>

#include "model/layer.h"
#include "model/layers/circular.h"
#include "model/layers/weight_packs.h"

namespace lockstep {

class LinearLayer : public Layer {
 public:
  LinearLayer(std::string name, bool bias, std::shared_ptr<const Initializer> kernel_initializer,
              std::shared_ptr<const Initializer> bias_initializer)
      : Layer(std::move(name)),
        bias_(bias),
        kernel_initializer_(std::move(kernel_initializer)),
        bias_initializer_(std::move(bias_initializer)) {}

  void declare(VariableStore& variables) override;
  LayerMemory prepare(const PrepareContext& context) override;
  void refresh_weights(const KernelTable&, const Lane& lane, const VariableStore& variables,
                       bool training) override;
  void forward(const Pass& pass) override;
  void backward(const Pass& pass) override;
  bool fuse(Fusible operation) override {
    if (operation != Fusible::relu || relu_) return false;
    return relu_ = true;
  }

 protected:
  /// The traits of a derived layer.
  LayerTraits linear_traits(const char* kind, double flops_per_sample) const {
    return {.kind = kind,
            .inputs = TypeRule::model,
            .outputs = TypeRule::model,
            .backward_reads_output = relu_,
            .overwrites_dy = relu_,
            .flops_per_sample = flops_per_sample,
            .widened_products = packs_.widened()};
  }
  virtual Shape kernel_shape() const = 0;
  virtual std::unique_ptr<LinearPrimitive> make_primitive(const PrepareContext& context,
                                                          std::int64_t n) const = 0;
  /// The shape of one output sample. The bias runs along its last axis.
  virtual const Shape& output_shape() const = 0;

  bool bias_, relu_ = false;
  CircularMargins margins_;  ///< around the primitive's input

 private:
  struct Sized {
    std::int64_t n;
    bool training;
    std::unique_ptr<LinearPrimitive> primitive;
    std::size_t pack;  ///< in packs_
  };
  const Sized& sized(const Pass& pass) const;
  /// The gradients of kernel and input, where the input has circular margins.
  void backward_with_margins(const Pass& pass);

  std::shared_ptr<const Initializer> kernel_initializer_, bias_initializer_;
  VariableId kernel_id_ = VariableId::none, bias_id_ = VariableId::none;
  std::vector<Sized> sized_;
  WeightPacks packs_;
};

}  // namespace lockstep
