// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Layers without variables or primitives: flatten, global_avg_pool, add, relu, dropout, softmax.
#include "core/philox.h"
#include "model/layers/entries.h"

namespace lockstep {

namespace {

void require_one_input(const Layer& layer, std::span<const Shape> inputs) {
  LOCKSTEP_REQUIRE(inputs.size() == 1, ErrorKind::config, "layer {}: {} takes one input, not {}",
                   layer.name(), layer.kind(), inputs.size());
}

class Flatten final : public Layer {
 public:
  using Layer::Layer;
  const char* kind() const override { return "flatten"; }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    require_one_input(*this, inputs);
    return {Shape{inputs[0].num_elements()}};
  }
  void forward(const Pass&) override {}
  void backward(const Pass&) override {}
  bool is_view(bool) const override { return true; }
};

class GlobalAvgPool final : public Layer {
 public:
  using Layer::Layer;
  const char* kind() const override { return "global_avg_pool"; }
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
  bool backward_reads_input() const override { return false; }

 private:
  std::int64_t positions_ = 0, channels_ = 0;
};

/// y = a + b, then relu if fused.
class Add final : public Layer {
 public:
  using Layer::Layer;
  const char* kind() const override { return "add"; }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    LOCKSTEP_REQUIRE(inputs.size() == 2, ErrorKind::config,
                     "layer {}: add takes two inputs, not {}; name them in `inputs`", name(), inputs.size());
    LOCKSTEP_REQUIRE(inputs[0] == inputs[1], ErrorKind::config,
                     "layer {}: add takes two inputs of one shape, not {} and {}", name(),
                     inputs[0].to_string(), inputs[1].to_string());
    elements_ = inputs[0].num_elements();
    return {inputs[0]};
  }
  void forward(const Pass& pass) override {
    pass.kernels.elementwise.add(pass.lane, pass.n * elements_, pass.inputs[0], pass.inputs[1],
                                 pass.outputs[0], relu_);
  }
  void backward(const Pass& pass) override {
    for (int i = 0; i < 2; ++i) {
      if (pass.dx[i] == nullptr) continue;
      if (relu_)
        pass.kernels.elementwise.relu_backward(pass.lane, pass.n * elements_, pass.dy[0], pass.outputs[0],
                                               pass.dx[i]);
      else
        pass.kernels.elementwise.scale(pass.lane, pass.n * elements_, 1.0F, pass.dy[0], pass.dx[i]);
    }
  }
  bool backward_reads_input() const override { return false; }
  bool backward_reads_output() const override { return relu_; }
  bool fuse_relu() override {
    const bool fused = !relu_;
    relu_ = true;
    return fused;
  }
  bool is_addition() const override { return !relu_; }

 private:
  std::int64_t elements_ = 0;
  bool relu_ = false;
};

class Relu final : public Layer {
 public:
  using Layer::Layer;
  const char* kind() const override { return "relu"; }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    require_one_input(*this, inputs);
    elements_ = inputs[0].num_elements();
    return {inputs[0]};
  }
  void forward(const Pass& pass) override {
    pass.kernels.elementwise.relu(pass.lane, pass.n * elements_, pass.inputs[0], pass.outputs[0]);
  }
  void backward(const Pass& pass) override {
    if (pass.dx[0] != nullptr)
      pass.kernels.elementwise.relu_backward(pass.lane, pass.n * elements_, pass.dy[0], pass.outputs[0],
                                             pass.dx[0]);
  }
  bool backward_reads_input() const override { return false; }
  bool backward_reads_output() const override { return true; }
  bool is_relu() const override { return true; }

 private:
  std::int64_t elements_ = 0;
};

constexpr ParamSpec kDropoutTable[] = {{"rate", ParamType::real, kRequired, "[0, 1)",
                                        "share of elements set to zero; the others are divided by 1 - rate"}};

/// Inverted dropout (Srivastava et al. 2014). The mask is a function of (seed, layer name, step, sample's
/// position in the global batch, element): the same on any number of ranks.
class Dropout final : public Layer {
 public:
  Dropout(std::string name, const Params& p)
      : Layer(std::move(name)), rate_(static_cast<float>(p.real("rate"))) {}
  const char* kind() const override { return "dropout"; }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    require_one_input(*this, inputs);
    elements_ = inputs[0].num_elements();
    return {inputs[0]};
  }
  void forward(const Pass& pass) override { apply(pass, pass.inputs[0], pass.outputs[0]); }
  void backward(const Pass& pass) override {
    if (pass.dx[0] != nullptr) apply(pass, pass.dy[0], pass.dx[0]);
  }
  bool backward_reads_input() const override { return false; }
  bool is_view(bool training) const override { return !training || rate_ == 0.0F; }

 private:
  void apply(const Pass& pass, const float* x, float* y) const {
    pass.kernels.elementwise.dropout(pass.lane, pass.n, elements_, x, rate_, pass.seed,
                                     philox_purpose(name()), static_cast<std::uint32_t>(pass.step),
                                     static_cast<std::uint32_t>(pass.first_sample), y);
  }
  float rate_;
  std::int64_t elements_ = 0;
};

class Softmax final : public Layer {
 public:
  using Layer::Layer;
  const char* kind() const override { return "softmax"; }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    require_one_input(*this, inputs);
    channels_ = inputs[0].last();
    rows_ = inputs[0].num_elements() / channels_;
    return {inputs[0]};
  }
  void forward(const Pass& pass) override {
    pass.kernels.loss.softmax(pass.lane, pass.n * rows_, channels_, pass.inputs[0], pass.outputs[0]);
  }
  void backward(const Pass& pass) override {
    if (pass.dx[0] != nullptr)
      pass.kernels.loss.softmax_backward(pass.lane, pass.n * rows_, channels_, pass.outputs[0], pass.dy[0],
                                         pass.dx[0]);
  }
  bool backward_reads_input() const override { return false; }
  bool backward_reads_output() const override { return true; }

 private:
  std::int64_t rows_ = 0, channels_ = 0;
};

template <typename T>
std::unique_ptr<Layer> make_plain(std::string name, const Params&) {
  return std::make_unique<T>(std::move(name));
}

}  // namespace

const LayerEntry kFlattenLayer = {"flatten", "one row of features per sample", {}, make_plain<Flatten>};
const LayerEntry kGlobalAvgPoolLayer = {
    "global_avg_pool", "mean over all positions of each channel", {}, make_plain<GlobalAvgPool>};
const LayerEntry kAddLayer = {"add", "sum of two inputs of one shape", {}, make_plain<Add>};
const LayerEntry kReluLayer = {"relu", "max(x, 0)", {}, make_plain<Relu>};
const LayerEntry kSoftmaxLayer = {"softmax", "softmax over the last axis", {}, make_plain<Softmax>};
const LayerEntry kDropoutLayer = {"dropout", "inverted dropout while training", kDropoutTable,
                                  [](std::string name, const Params& p) -> std::unique_ptr<Layer> {
                                    return std::make_unique<Dropout>(std::move(name), p);
                                  }};

}  // namespace lockstep
