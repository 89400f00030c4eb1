// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// add: the sum of its inputs.
#include "model/layer_table.h"

namespace lockstep {

namespace {

/// y = a + b + ..., added from the left with each sum rounded to its type, then relu if fused.
class Add final : public Layer {
 public:
  using Layer::Layer;
  LayerTraits traits() const override {
    return {.kind = "add",
            .inputs = TypeRule::model,
            .outputs = TypeRule::model,
            .fusible = !relu_ && count_ == 2 ? Fusible::addition : Fusible::none,
            .backward_reads_input = false,
            .backward_reads_output = relu_};
  }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    LOCKSTEP_REQUIRE(inputs.size() >= 2, ErrorKind::config,
                     "layer {}: add takes two inputs or more, not {}; name them in `inputs`", name(),
                     inputs.size());
    for (const Shape& other : inputs.subspan(1))
      LOCKSTEP_REQUIRE(other == inputs[0], ErrorKind::config,
                       "layer {}: add takes inputs of one shape, not {} and {}", name(),
                       inputs[0].to_string(), other.to_string());
    elements_ = inputs[0].num_elements();
    count_ = inputs.size();
    return {inputs[0]};
  }
  void forward(const Pass& pass) override {
    ConstData sum = pass.inputs[0];
    for (std::size_t i = 1; i < count_; ++i) {
      pass.kernels.elementwise.add(pass.lane, pass.n * elements_, sum, pass.inputs[i], pass.outputs[0],
                                   relu_ && i + 1 == count_);
      sum = pass.outputs[0];
    }
  }
  void backward(const Pass& pass) override {
    for (std::size_t i = 0; i < count_; ++i) {
      if (pass.dx[i] == nullptr || pass.dx[i].address() == pass.dy[0].address()) continue;
      if (relu_)
        pass.kernels.elementwise.relu_backward(pass.lane, pass.n * elements_, pass.dy[0], pass.outputs[0],
                                               pass.dx[i]);
      else
        pass.kernels.elementwise.scale(pass.lane, pass.n * elements_, 1.0F, pass.dy[0], pass.dx[i]);
    }
  }
  bool fuse(Fusible operation) override {
    if (operation != Fusible::relu || relu_) return false;
    return relu_ = true;
  }

 private:
  std::int64_t elements_ = 0;
  std::size_t count_ = 0;
  bool relu_ = false;
};

}  // namespace

extern const LayerEntry kAddLayer = {"add", "sum of two or more inputs of one shape", {}, make_layer<Add>};

}  // namespace lockstep
