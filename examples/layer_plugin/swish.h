// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// swish with a learned slope per channel, a layer that is not part of Lockstep (Ramachandran, Zoph, Le 2017,
// "Searching for Activation Functions", arXiv:1710.05941): y = x s, s = sigmoid(beta[c] x).
#pragma once

#include <algorithm>
#include <cmath>

#include <lockstep/layer.h>

namespace example {

using namespace lockstep;

class Swish final : public Layer {
 public:
  Swish(std::string name, std::shared_ptr<const Initializer> initializer)
      : Layer(std::move(name)), initializer_(std::move(initializer)) {}

  LayerTraits traits() const override { return {.kind = "swish"}; }

  // Shapes are per sample, channels last.
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    LOCKSTEP_REQUIRE(inputs.size() == 1, ErrorKind::config, "layer {}: swish takes one input, not {}", name(),
                     inputs.size());
    channels_ = inputs[0].last();
    rows_ = inputs[0].num_elements() / channels_;
    return {inputs[0]};
  }

  void declare(VariableStore& store) override {
    beta_ = store.declare(name() + "/beta", Shape{channels_}, initializer_);
  }

  void forward(const Pass& pass) override {
    const float *x = pass.inputs[0], *beta = pass.value(beta_);
    float* y = pass.outputs[0];
    for (std::int64_t row = 0; row < pass.n * rows_; ++row, x += channels_, y += channels_)
      for (std::int64_t c = 0; c < channels_; ++c) y[c] = x[c] * sigmoid(beta[c] * x[c]);
  }

  // dy/dx = s + x beta s (1 - s), dy/dbeta = x x s (1 - s). Overwrites the gradients. The sum over rows has
  // one fixed order.
  void backward(const Pass& pass) override {
    const float *x = pass.inputs[0], *dy = pass.dy[0], *beta = pass.value(beta_);
    float *dx = pass.dx[0], *dbeta = pass.gradient(beta_);  // dx is null if it is not wanted
    std::fill_n(dbeta, channels_, 0.0F);
    for (std::int64_t row = 0; row < pass.n * rows_; ++row, x += channels_, dy += channels_) {
      for (std::int64_t c = 0; c < channels_; ++c) {
        const float s = sigmoid(beta[c] * x[c]), slope = s * (1.0F - s);
        dbeta[c] += dy[c] * x[c] * x[c] * slope;
        if (dx != nullptr) dx[c] = dy[c] * (s + x[c] * beta[c] * slope);
      }
      if (dx != nullptr) dx += channels_;
    }
  }

 private:
  static float sigmoid(float x) { return 1.0F / (1.0F + std::exp(-x)); }

  std::shared_ptr<const Initializer> initializer_;
  std::int64_t rows_ = 0, channels_ = 0;
  VariableId beta_ = VariableId::none;
};

inline constexpr ParamSpec kSwishOptions[] = {
    {"initializer", ParamType::node, "ones", {}, "initial slopes; with ones it begins as silu"}};

inline const LayerEntry kSwish = {"swish", "x sigmoid(beta x), beta learned per channel", kSwishOptions,
                                  [](std::string name, const Params& options) -> std::unique_ptr<Layer> {
                                    return std::make_unique<Swish>(
                                        std::move(name), make_initializer(options.node("initializer")));
                                  }};

}  // namespace example
