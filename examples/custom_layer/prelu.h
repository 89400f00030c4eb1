// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// prelu, a layer that is not part of Lockstep: a relu whose slope below zero is learned, one per channel
// (He, Zhang, Ren, Sun 2015, "Delving Deep into Rectifiers", arXiv:1502.01852, section 2.1):
//   y = x for x > 0, else alpha[c] x
#pragma once

#include <algorithm>

#include "model/initializer.h"
#include "model/layer_table.h"

namespace example {

using lockstep::ErrorKind;
using lockstep::LayerTraits;
using lockstep::Params;
using lockstep::ParamSpec;
using lockstep::ParamType;
using lockstep::Pass;
using lockstep::Shape;

// Each option: name, type, default (as YAML), range, help. Errors in a configuration are reported from this
// table.
inline constexpr ParamSpec kPreluOptions[] = {
    {"initializer", ParamType::node, "zeros", "", "initial slopes; with zeros it begins as relu"}};

class Prelu final : public lockstep::Layer {
 public:
  Prelu(std::string name, std::shared_ptr<const lockstep::Initializer> initializer)
      : Layer(std::move(name)), initializer_(std::move(initializer)) {}

  LayerTraits traits() const override { return {.kind = "prelu"}; }

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

  // Overwrites the gradients. The sum over rows has one fixed order, so it does not depend on the thread or
  // rank that computes the microshard.
  void backward(const Pass& pass) override {
    const float* alpha = pass.value(alpha_);
    const float* x = pass.inputs[0];
    const float* dy = pass.dy[0];
    float* dx = pass.dx[0];  // null: not wanted
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

/// The entry in the table of layers: name in a configuration, help, options, factory.
inline const lockstep::LayerEntry kPrelu = {
    "prelu", "x, or a learned multiple of it for x < 0", kPreluOptions,
    [](std::string name, const Params& options) -> std::unique_ptr<lockstep::Layer> {
      return std::make_unique<Prelu>(std::move(name),
                                     lockstep::make_initializer(options.node("initializer")));
    }};

}  // namespace example
