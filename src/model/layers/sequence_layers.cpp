// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Lengths of sequences: last_step, sequence_length, masking.
#include "model/layers/entries.h"
#include "model/layers/lengths.h"

namespace lockstep {

namespace {

/// The last row of a sequence, by its length if there is one.
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

constexpr ParamSpec kLengthTable[] = {
    {"padding", ParamType::real, "0", "", "what stands behind the end of a sequence"}};

class SequenceLength final : public Layer {
 public:
  SequenceLength(std::string name, const Params& p)
      : Layer(std::move(name)), padding_(static_cast<float>(p.real("padding"))) {}
  LayerTraits traits() const override {
    return {.kind = "sequence_length", .stops_gradient = true, .backward_reads_input = false};
  }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    LOCKSTEP_REQUIRE(inputs.size() == 1 && inputs[0].rank() == 1, ErrorKind::config,
                     "layer {}: sequence_length takes one input of rank 1 per sample (ids), not {}", name(),
                     inputs.empty() ? "nothing" : inputs[0].to_string());
    steps_ = inputs[0][0];
    return {Shape{1}};
  }
  void forward(const Pass& pass) override {
    pass.kernels.sequence.lengths(pass.lane, pass.n, steps_, pass.inputs[0], padding_, pass.outputs[0]);
  }
  /// A count: nothing comes back through it.
  void backward(const Pass& pass) override {
    if (pass.dx[0] != nullptr) pass.kernels.elementwise.zero(pass.lane, pass.n * steps_, pass.dx[0]);
  }

 private:
  float padding_;
  std::int64_t steps_ = 0;
};

constexpr ParamSpec kMaskingTable[] = {
    {"value", ParamType::real, "0", "", "a step whose features all equal it is masked"}};

class Masking final : public Layer {
 public:
  Masking(std::string name, const Params& p)
      : Layer(std::move(name)), value_(static_cast<float>(p.real("value"))) {}
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

const LayerEntry kLastStepLayer = {"last_step",
                                   "the last row of a sequence, or the one that its length says",
                                   {},
                                   [](std::string name, const Params&) -> std::unique_ptr<Layer> {
                                     return std::make_unique<LastStep>(std::move(name));
                                   }};
const LayerEntry kSequenceLengthLayer = {
    "sequence_length", "length of a padded sequence: up to its last number that is not the padding",
    kLengthTable, [](std::string name, const Params& p) -> std::unique_ptr<Layer> {
      return std::make_unique<SequenceLength>(std::move(name), p);
    }};
const LayerEntry kMaskingLayer = {
    "masking", "zeros in steps that equal a value; second output: 1 where kept, 0 where not", kMaskingTable,
    [](std::string name, const Params& p) -> std::unique_ptr<Layer> {
      return std::make_unique<Masking>(std::move(name), p);
    }};

}  // namespace lockstep
