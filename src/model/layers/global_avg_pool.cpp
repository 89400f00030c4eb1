// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// global_avg_pool: the mean of each channel over all positions.
#include "model/axes.h"
#include "model/layer_table.h"

namespace lockstep {

namespace {

class GlobalAvgPool final : public Layer {
 public:
  using Layer::Layer;
  LayerTraits traits() const override {
    return {.kind = "global_avg_pool",
            .inputs = TypeRule::model,
            .outputs = TypeRule::model,
            .backward_reads_input = false};
  }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    require_one_input(*this, inputs);
    LOCKSTEP_REQUIRE(inputs[0].rank() >= 2, ErrorKind::config,
                     "layer {}: global_avg_pool takes space x channels per sample, not {}", name(),
                     inputs[0].to_string());
    channels_ = inputs[0].last();
    positions_ = inputs[0].num_elements() / channels_;
    return {Shape{channels_}};
  }
  void forward(const Pass& pass) override {
    pass.kernels.elementwise.global_average(pass.lane, pass.n, positions_, channels_, pass.inputs[0],
                                            pass.outputs[0]);
  }
  void backward(const Pass& pass) override {
    if (pass.dx[0] != nullptr)
      pass.kernels.elementwise.global_average_backward(pass.lane, pass.n, positions_, channels_, pass.dy[0],
                                                       pass.dx[0]);
  }

 private:
  std::int64_t positions_ = 0, channels_ = 0;
};

}  // namespace

extern const LayerEntry kGlobalAvgPoolLayer = {
    "global_avg_pool", "mean over all positions of each channel", {}, make_layer<GlobalAvgPool>};

}  // namespace lockstep
