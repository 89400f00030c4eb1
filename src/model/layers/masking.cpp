// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// masking: zeros in the steps of a sequence that equal a value.
#include "config/option.h"
#include "model/layer_table.h"

namespace lockstep {

namespace {

struct MaskingOptions {
  float value = 0;
};
constexpr ParamSpec kTable[] = {option<&MaskingOptions::value>(
    "value", "0", between(-1e30, 1e30), "a step is masked if all its features equal this value")};

class Masking final : public Layer {
 public:
  using Options = MaskingOptions;
  Masking(std::string name, const Options& o) : Layer(std::move(name)), value_(o.value) {}
  LayerTraits traits() const override {
    return {.kind = "masking",
            .inputs = TypeRule::first_input,
            .outputs = TypeRule::first_input,
            .backward_reads_input = false,
            .backward_reads_output = true};
  }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    LOCKSTEP_REQUIRE(inputs.size() == 1 && inputs[0].rank() == 2, ErrorKind::config,
                     "layer {}: masking takes one input of steps x features per sample, not {}", name(),
                     inputs.empty() ? "nothing" : inputs[0].to_string());
    steps_ = inputs[0][0];
    features_ = inputs[0][1];
    return {inputs[0], Shape{steps_}};
  }
  void forward(const Pass& pass) override {
    pass.kernels.sequence.mask(pass.lane, pass.n * steps_, features_, pass.inputs[0], value_, pass.outputs[0],
                               pass.outputs[1]);
  }
  /// The mask is a step function: its gradient is 0.
  void backward(const Pass& pass) override {
    if (pass.dx[0] != nullptr)
      pass.kernels.sequence.mask_backward(pass.lane, pass.n * steps_, features_, pass.dy[0], pass.outputs[1],
                                          pass.dx[0]);
  }

 private:
  float value_;
  std::int64_t steps_ = 0, features_ = 0;
};

}  // namespace

extern const LayerEntry kMaskingLayer = {
    "masking", "zeros in steps that equal a value; second output: 1 where kept, 0 where not", kTable,
    make_layer<Masking>};

}  // namespace lockstep
