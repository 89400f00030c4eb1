// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// dense: the fully connected layer.
#include "config/option.h"
#include "model/layer_table.h"
#include "model/layers/linear.h"

namespace lockstep {

namespace {

struct DenseOptions {
  std::int64_t units = 0;
  bool bias = false;
  Node kernel_initializer;
  Node bias_initializer;
};
constexpr ParamSpec kTable[] = {
    option<&DenseOptions::units>("units", kRequired, between(1, 16777216), "number of outputs"),
    option<&DenseOptions::bias>("bias", "true", {}, "add a bias"),
    option<&DenseOptions::kernel_initializer>("kernel_initializer", "glorot_uniform", {},
                                              "initial kernel (in x units)"),
    option<&DenseOptions::bias_initializer>("bias_initializer", "zeros", {}, "initial bias"),
};

/// y = x W + b. x has F features per sample, or per step of a sequence {T, F}; W is F x units.
class Dense final : public LinearLayer {
 public:
  using Options = DenseOptions;
  Dense(std::string name, const Options& o)
      : LinearLayer(std::move(name), o.bias, make_initializer(o.kernel_initializer),
                    make_initializer(o.bias_initializer)),
        units_(o.units) {}

  LayerTraits traits() const override {
    return linear_traits("dense", 2.0 * static_cast<double>(steps_ * in_) * static_cast<double>(units_));
  }

  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    LOCKSTEP_REQUIRE(
        inputs.size() == 1 && (inputs[0].rank() == 1 || inputs[0].rank() == 2), ErrorKind::config,
        "layer {}: dense takes one input of features, or of steps x features, per sample, not {}; "
        "put a flatten before it",
        name(), inputs.empty() ? "nothing" : inputs[0].to_string());
    const bool sequence = inputs[0].rank() == 2;
    steps_ = sequence ? inputs[0][0] : 1;
    in_ = inputs[0].last();
    output_ = sequence ? Shape{steps_, units_} : Shape{units_};
    return {output_};
  }

 protected:
  Shape kernel_shape() const override { return Shape{in_, units_}; }
  const Shape& output_shape() const override { return output_; }
  std::unique_ptr<LinearPrimitive> make_primitive(const PrepareContext& context,
                                                  std::int64_t n) const override {
    return context.kernels.make.dense({.n = n * steps_,
                                       .in = in_,
                                       .out = units_,
                                       .bias = bias_,
                                       .relu = relu_,
                                       .training = context.training,
                                       .dtype = context.type},
                                      context.lanes);
  }

 private:
  std::int64_t units_, in_ = 0, steps_ = 1;
  Shape output_;
};

}  // namespace

extern const LayerEntry kDenseLayer = {"dense", "fully connected: y = x W + b; a sequence step by step",
                                       kTable, make_layer<Dense>};

}  // namespace lockstep
