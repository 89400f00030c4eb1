// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// softmax and log_softmax, along the last axis.
#include "model/axes.h"
#include "model/layer_table.h"

namespace lockstep {

namespace {

/// Softmax, or its logarithm.
class Softmax final : public Layer {
 public:
  Softmax(std::string name, bool log) : Layer(std::move(name)), log_(log) {}
  LayerTraits traits() const override {
    return {.kind = log_ ? "log_softmax" : "softmax",
            .backward_reads_input = false,
            .backward_reads_output = true};
  }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    require_one_input(*this, inputs);
    channels_ = inputs[0].last();
    rows_ = inputs[0].num_elements() / channels_;
    return {inputs[0]};
  }
  void forward(const Pass& pass) override {
    const LossKernels& kernels = pass.kernels.loss;
    if (log_)
      kernels.log_softmax(pass.lane, pass.n * rows_, channels_, pass.inputs[0], pass.outputs[0]);
    else
      kernels.softmax(pass.lane, pass.n * rows_, channels_, pass.inputs[0], pass.outputs[0]);
  }
  void backward(const Pass& pass) override {
    if (pass.dx[0] == nullptr) return;
    const LossKernels& kernels = pass.kernels.loss;
    const std::int64_t rows = pass.n * rows_;
    if (log_)
      kernels.log_softmax_backward(pass.lane, rows, channels_, pass.outputs[0], pass.dy[0], pass.dx[0]);
    else
      kernels.softmax_backward(pass.lane, rows, channels_, pass.outputs[0], pass.dy[0], pass.dx[0]);
  }

 private:
  bool log_;
  std::int64_t rows_ = 0, channels_ = 0;
};

}  // namespace

extern const LayerEntry kSoftmaxLayer = {"softmax",
                                         "softmax over the last axis",
                                         {},
                                         [](std::string name, const Params&) -> std::unique_ptr<Layer> {
                                           return std::make_unique<Softmax>(std::move(name), false);
                                         }};
extern const LayerEntry kLogSoftmaxLayer = {"log_softmax",
                                            "logarithm of the softmax over the last axis",
                                            {},
                                            [](std::string name, const Params&) -> std::unique_ptr<Layer> {
                                              return std::make_unique<Softmax>(std::move(name), true);
                                            }};

}  // namespace lockstep
