// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// stop_gradient: its input; the backward pass ends here.
#include "model/axes.h"
#include "model/layer_table.h"

namespace lockstep {

namespace {

/// A copy rather than a view, because the gradient of its input does not include that of its output.
class StopGradient final : public Layer {
 public:
  using Layer::Layer;
  LayerTraits traits() const override {
    return {.kind = "stop_gradient",
            .inputs = TypeRule::first_input,
            .outputs = TypeRule::first_input,
            .stops_gradient = true,
            .backward_reads_input = false};
  }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    require_one_input(*this, inputs);
    elements_ = inputs[0].num_elements();
    return {inputs[0]};
  }
  void forward(const Pass& pass) override {
    pass.kernels.elementwise.convert(pass.lane, pass.n * elements_, pass.inputs[0], pass.outputs[0]);
  }
  void backward(const Pass& pass) override {
    if (pass.dx[0] != nullptr) pass.kernels.elementwise.zero(pass.lane, pass.n * elements_, pass.dx[0]);
  }

 private:
  std::int64_t elements_ = 0;
};

}  // namespace

extern const LayerEntry kStopGradientLayer = {
    "stop_gradient", "its input; no gradient passes", {}, make_layer<StopGradient>};

}  // namespace lockstep
