// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// prelu, a layer that is not part of Lockstep: a relu whose slope below zero is learned, one per channel
// (He, Zhang, Ren, Sun 2015, "Delving Deep into Rectifiers", arXiv:1502.01852, section 2.1):
//   y = x for x > 0, else alpha[c] x
#pragma once

#include <lockstep/eigen.h>
#include <lockstep/layer.h>

namespace example {

using lockstep::array;
using lockstep::ErrorKind;
using lockstep::LayerTraits;
using lockstep::Params;
using lockstep::ParamSpec;
using lockstep::ParamType;
using lockstep::Pass;
using lockstep::row;
using lockstep::Shape;

// Each option: name, type, default (as YAML), range, help. Errors in a configuration are reported from this
// table.
inline constexpr ParamSpec kPreluOptions[] = {
    {"initializer", ParamType::node, "zeros", {}, "initial slopes; with zeros it begins as relu"}};

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
    const auto x = array(pass.inputs[0], pass.n * rows_, channels_);
    const auto alpha = row(pass.value(alpha_), channels_).array().replicate(x.rows(), 1);
    array(pass.outputs[0], x.rows(), channels_) = (x <= 0).select(alpha * x, x);  // NaN stays NaN
  }

  // Overwrites the gradients. A microshard's sum over rows has one fixed order, so it does not depend on the
  // thread or rank that computes it.
  void backward(const Pass& pass) override {
    const auto x = array(pass.inputs[0], pass.n * rows_, channels_);
    const auto dy = array(lockstep::ConstData(pass.dy[0]), x.rows(), channels_);
    const auto alpha = row(pass.value(alpha_), channels_).array().replicate(x.rows(), 1);
    row(pass.gradient(alpha_), channels_) = (x <= 0).select(dy * x, 0.0F).colwise().sum().matrix();
    if (pass.dx[0])  // null: not wanted
      array(pass.dx[0], x.rows(), channels_) = (x <= 0).select(alpha * dy, dy);
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
