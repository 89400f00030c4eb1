// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The whole of Lockstep's program with one more layer: prelu, a relu whose slope below zero is learned, one
// per channel (He, Zhang, Ren, Sun 2015, "Delving Deep into Rectifiers", arXiv:1502.01852, section 2.1):
//   y = x for x > 0, else alpha[c] x
#include <algorithm>

#include "driver/program.h"
#include "model/initializer.h"
#include "model/layer_table.h"

namespace {

using lockstep::ErrorKind;
using lockstep::Params;
using lockstep::ParamSpec;
using lockstep::ParamType;
using lockstep::Pass;
using lockstep::Shape;

// Each option: name, type, default (as YAML), range, help. Mistakes in a configuration are reported from this
// table.
constexpr ParamSpec kOptions[] = {
    {"initializer", ParamType::node, "zeros", "", "initial slopes; with zeros it begins as relu"}};

class Prelu final : public lockstep::Layer {
 public:
  Prelu(std::string name, const Params& options)
      : Layer(std::move(name)), initializer_(lockstep::make_initializer(options.node("initializer"))) {}

  const char* kind() const override { return "prelu"; }

  // Shapes are per sample, channels last.
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    LOCKSTEP_REQUIRE(inputs.size() == 1, ErrorKind::config, "layer {}: prelu takes one input, not {}", name(),
                     inputs.size());
    channels_ = inputs[0].last();
    rows_ = inputs[0].num_elements() / channels_;
    return {inputs[0]};
  }

  void declare(lockstep::VariableStore& store) override {
    alpha_ = store.declare(name() + "/alpha", Shape{channels_}, initializer_);
  }

  void forward(const Pass& pass) override {
    const float* alpha = pass.value(alpha_);
    const float* x = pass.inputs[0];
    float* y = pass.outputs[0];
    for (std::int64_t row = 0; row < pass.n * rows_; ++row, x += channels_, y += channels_)
      for (std::int64_t c = 0; c < channels_; ++c)
        y[c] = x[c] <= 0 ? alpha[c] * x[c] : x[c];  // NaN stays NaN
  }

  // Gradients are overwritten. The sum over rows has one order, and one thread computes it: nothing here may
  // depend on who computes the microshard.
  void backward(const Pass& pass) override {
    const float* alpha = pass.value(alpha_);
    const float* x = pass.inputs[0];
    const float* dy = pass.dy[0];
    float* dx = pass.dx[0];  // null: nobody wants it
    float* dalpha = pass.gradient(alpha_);
    std::fill_n(dalpha, channels_, 0.0F);
    for (std::int64_t row = 0; row < pass.n * rows_; ++row, x += channels_, dy += channels_) {
      for (std::int64_t c = 0; c < channels_; ++c)
        if (x[c] <= 0) dalpha[c] += dy[c] * x[c];
      if (dx == nullptr) continue;
      for (std::int64_t c = 0; c < channels_; ++c) dx[c] = x[c] <= 0 ? alpha[c] * dy[c] : dy[c];
      dx += channels_;
    }
  }

 private:
  std::shared_ptr<const lockstep::Initializer> initializer_;
  std::int64_t rows_ = 0, channels_ = 0;
  lockstep::VariableId alpha_ = lockstep::VariableId::none;
};

}  // namespace

int main(int argc, char** argv) {
  lockstep::register_layer({"prelu", "x, or a learned multiple of it for x < 0", kOptions,
                            [](std::string name, const Params& options) -> std::unique_ptr<lockstep::Layer> {
                              return std::make_unique<Prelu>(std::move(name), options);
                            }});
  return lockstep::run_program(argc, argv);
}
