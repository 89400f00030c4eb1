// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// sequence_length: the length of a padded sequence.
#include "config/option.h"
#include "model/layer_table.h"

namespace lockstep {

namespace {

struct SequenceLengthOptions {
  float padding = 0;
};
constexpr ParamSpec kTable[] = {option<&SequenceLengthOptions::padding>(
    "padding", "0", between(-1e30, 1e30), "the value after the end of a sequence")};

class SequenceLength final : public Layer {
 public:
  using Options = SequenceLengthOptions;
  SequenceLength(std::string name, const Options& o) : Layer(std::move(name)), padding_(o.padding) {}
  LayerTraits traits() const override {
    return {.kind = "sequence_length",
            .stops_gradient = true,
            .backward_reads_input = false,
            .padding = padding_};
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
  /// A count has no gradient.
  void backward(const Pass& pass) override {
    if (pass.dx[0] != nullptr) pass.kernels.elementwise.zero(pass.lane, pass.n * steps_, pass.dx[0]);
  }

 private:
  float padding_;
  std::int64_t steps_ = 0;
};

}  // namespace

extern const LayerEntry kSequenceLengthLayer = {
    "sequence_length", "length of a padded sequence: up to its last number that is not the padding", kTable,
    make_layer<SequenceLength>};

}  // namespace lockstep
