// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Layers that add randomness in training: dropout, spatial_dropout, drop_path, gaussian_noise. Their random
// numbers are a function of the seed, the layer's name, the step, the sample's position in the global batch
// and the element, so they are the same on any number of ranks and for any type. In inference the output is
// the input.
#include <algorithm>

#include "config/option.h"
#include "core/buffer.h"
#include "core/philox.h"
#include "model/axes.h"
#include "model/layer_table.h"
#include "model/scheduled_layer.h"

namespace lockstep {

namespace {

struct DropoutOptions {
  LayerNumber rate;
};
constexpr ParamSpec kDropoutTable[] = {option<&DropoutOptions::rate>(
    "rate", kRequired, kScheduledShare,
    "fraction of the elements set to zero; the others are divided by 1 - rate")};
constexpr ParamSpec kSpatialTable[] = {option<&DropoutOptions::rate>(
    "rate", kRequired, kScheduledShare,
    "fraction of the channels set to zero; the others are divided by 1 - rate")};
constexpr ParamSpec kPathTable[] = {option<&DropoutOptions::rate>(
    "rate", kRequired, kScheduledShare,
    "fraction of the samples that become zero; the others are divided by 1 - rate")};
struct GaussianNoiseOptions {
  float stddev = 0;
};
constexpr ParamSpec kNoiseTable[] = {option<&GaussianNoiseOptions::stddev>(
    "stddev", kRequired, between(0, 1e30), "standard deviation of the noise")};

void apply_dropout(const Layer& layer, const Pass& pass, std::int64_t features, ConstData x, float rate,
                   Data y) {
  pass.kernels.elementwise.dropout(pass.lane, pass.n, features, x, rate, pass.seed,
                                   philox_purpose(layer.name()), static_cast<std::uint32_t>(pass.step),
                                   static_cast<std::uint32_t>(pass.first_sample), y);
}

/// Inverted dropout (Srivastava et al. 2014).
class Dropout final : public Layer, public ScheduledLayer {
 public:
  using Options = DropoutOptions;
  Dropout(std::string name, const Options& o) : Layer(std::move(name)), rate_(o.rate) {}
  std::vector<LayerNumber*> numbers() override { return {&rate_}; }
  LayerTraits traits() const override {
    return {.kind = "dropout",
            .inputs = TypeRule::first_input,
            .outputs = TypeRule::first_input,
            .view = rate_.is_zero() ? View::always : View::in_inference,
            .backward_reads_input = false};
  }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    require_one_input(*this, inputs);
    elements_ = inputs[0].num_elements();
    return {inputs[0]};
  }
  void forward(const Pass& pass) override {
    apply_dropout(*this, pass, elements_, pass.inputs[0], rate_.value(), pass.outputs[0]);
  }
  void backward(const Pass& pass) override {
    if (pass.dx[0] != nullptr) apply_dropout(*this, pass, elements_, pass.dy[0], rate_.value(), pass.dx[0]);
  }

 private:
  LayerNumber rate_;
  std::int64_t elements_ = 0;
};

/// Dropout of whole channels (Tompson et al. 2015, arXiv:1411.4280) or of whole samples (stochastic depth:
/// Huang et al. 2016, arXiv:1603.09382, per sample). The mask of a sample is that of dropout with one number
/// per channel, or one number. NaN stays NaN even where it is dropped.
enum class Dropped { channels, samples };
template <Dropped kDropped>
class DropoutOfParts final : public Layer, public ScheduledLayer {
 public:
  using Options = DropoutOptions;
  DropoutOfParts(std::string name, const Options& o) : Layer(std::move(name)), rate_(o.rate) {}
  std::vector<LayerNumber*> numbers() override { return {&rate_}; }
  LayerTraits traits() const override {
    return {.kind = kDropped == Dropped::channels ? "spatial_dropout" : "drop_path",
            .inputs = TypeRule::first_input,
            .outputs = TypeRule::first_input,
            .view = rate_.is_zero() ? View::always : View::in_inference,
            .backward_reads_input = false};
  }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    require_one_input(*this, inputs);
    LOCKSTEP_REQUIRE(kDropped == Dropped::samples || inputs[0].rank() >= 2, ErrorKind::config,
                     "layer {}: spatial_dropout takes space x channels per sample, not {}", name(),
                     inputs[0].to_string());
    channels_ = kDropped == Dropped::channels ? inputs[0].last() : 1;
    positions_ = inputs[0].num_elements() / channels_;
    return {inputs[0]};
  }
  LayerMemory prepare(const PrepareContext& context) override {
    if (traits().is_view(context.training)) return {};
    const std::vector<float> ones(static_cast<std::size_t>(context.max_samples() * channels_), 1.0F);
    ones_ = Buffer(context.device, ones.size() * sizeof(float));
    context.device.copy_from_host(ones_.data(), ones.data(), ones_.size_bytes());
    return {.saved_bytes = ones_.size_bytes()};
  }
  void forward(const Pass& pass) override {
    apply_dropout(*this, pass, channels_, ones_.as<float>().data(), rate_.value(), factors(pass));
    multiply(pass, pass.inputs[0], pass.outputs[0]);
  }
  void backward(const Pass& pass) override {
    if (pass.dx[0] != nullptr) multiply(pass, pass.dy[0], pass.dx[0]);
  }

 private:
  static float* factors(const Pass& pass) { return static_cast<float*>(pass.saved); }
  void multiply(const Pass& pass, ConstData x, Data y) const {
    pass.kernels.broadcast.multiply(pass.lane, {pass.n, positions_, channels_}, x, factors(pass), y);
  }
  LayerNumber rate_;
  std::int64_t positions_ = 0, channels_ = 0;
  Buffer ones_;
};

class GaussianNoise final : public Layer {
 public:
  using Options = GaussianNoiseOptions;
  GaussianNoise(std::string name, const Options& o) : Layer(std::move(name)), stddev_(o.stddev) {}
  LayerTraits traits() const override {
    return {.kind = "gaussian_noise",
            .inputs = TypeRule::first_input,
            .outputs = TypeRule::first_input,
            .view = stddev_ == 0.0F ? View::always : View::in_inference,
            .backward_reads_input = false};
  }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    require_one_input(*this, inputs);
    elements_ = inputs[0].num_elements();
    return {inputs[0]};
  }
  void forward(const Pass& pass) override {
    pass.kernels.elementwise.gaussian_noise(pass.lane, pass.n, elements_, pass.inputs[0], stddev_, pass.seed,
                                            philox_purpose(name()), static_cast<std::uint32_t>(pass.step),
                                            static_cast<std::uint32_t>(pass.first_sample), pass.outputs[0]);
  }
  void backward(const Pass& pass) override {
    if (pass.dx[0] != nullptr)
      pass.kernels.elementwise.scale(pass.lane, pass.n * elements_, 1.0F, pass.dy[0], pass.dx[0]);
  }

 private:
  float stddev_;
  std::int64_t elements_ = 0;
};

}  // namespace

extern const LayerEntry kDropoutLayer = {"dropout", "inverted dropout in training", kDropoutTable,
                                         make_layer<Dropout>};
extern const LayerEntry kSpatialDropoutLayer = {"spatial_dropout", "dropout of whole channels in training",
                                                kSpatialTable, make_layer<DropoutOfParts<Dropped::channels>>};
extern const LayerEntry kDropPathLayer = {
    "drop_path", "stochastic depth: dropout of a residual branch, per sample, in training", kPathTable,
    make_layer<DropoutOfParts<Dropped::samples>>};
extern const LayerEntry kGaussianNoiseLayer = {"gaussian_noise", "adds normal noise in training", kNoiseTable,
                                               make_layer<GaussianNoise>};

}  // namespace lockstep
