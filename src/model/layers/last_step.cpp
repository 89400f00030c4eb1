// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// last_step: the last row of a sequence.
#include "model/layer_table.h"
#include "model/layers/lengths.h"

namespace lockstep {

namespace {

/// With a second input, the sequence's length, it is the last row within the length.
class LastStep final : public Layer {
 public:
  using Layer::Layer;
  LayerTraits traits() const override {
    return {.kind = "last_step",
            .inputs = TypeRule::first_input,
            .outputs = TypeRule::first_input,
            .float32_input = 1,
            .backward_reads_input = lengths_};
  }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    LOCKSTEP_REQUIRE(!inputs.empty() && inputs.size() <= 2, ErrorKind::config,
                     "layer {}: last_step takes a sequence and optionally its length, not {} inputs", name(),
                     inputs.size());
    LOCKSTEP_REQUIRE(inputs[0].rank() == 2, ErrorKind::config,
                     "layer {}: last_step takes steps x features per sample, not {}", name(),
                     inputs[0].to_string());
    LOCKSTEP_REQUIRE(inputs.size() == 1 || inputs[1] == Shape{1}, ErrorKind::config,
                     "layer {}: last_step's second input is the length of shape {}, not {}", name(),
                     Shape{1}.to_string(), inputs[1].to_string());
    steps_ = inputs[0][0];
    features_ = inputs[0][1];
    lengths_ = inputs.size() == 2;
    return {Shape{features_}};
  }
  LayerMemory prepare(const PrepareContext& context) override {
    on_host_ = context.device.is_host();
    return {};
  }
  void forward(const Pass& pass) override {
    if (lengths_ && on_host_) longest_of(*this, pass.inputs[1], pass.n, pass.first_sample, steps_);
    pass.kernels.sequence.last_step(pass.lane, {pass.n, steps_, features_}, pass.inputs[0],
                                    lengths_ ? pass.inputs[1] : nullptr, pass.outputs[0]);
  }
  void backward(const Pass& pass) override {
    if (pass.dx[0] != nullptr)
      pass.kernels.sequence.last_step_backward(pass.lane, {pass.n, steps_, features_}, pass.dy[0],
                                               lengths_ ? pass.inputs[1] : nullptr, pass.dx[0]);
    if (lengths_ && pass.dx[1] != nullptr) pass.kernels.elementwise.zero(pass.lane, pass.n, pass.dx[1]);
  }

 private:
  std::int64_t steps_ = 0, features_ = 0;
  bool lengths_ = false, on_host_ = true;
};

}  // namespace

extern const LayerEntry kLastStepLayer = {
    "last_step", "the last row of a sequence, or the last one within its length", {}, make_layer<LastStep>};

}  // namespace lockstep
