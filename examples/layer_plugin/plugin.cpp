// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A plugin with a layer that learns, a function for inputs that has no backward pass, a schedule, and a
// transform:
//
//   plugins: [build/libswish.so]
//   data: {..., transforms: [channel_gain: {amount: 0.1}]}
//   model: {layers: [log1p, dense: {units: 64}, swish, dense: {units: 10}]}
//   optimizer: {adam: {learning_rate: {inverse_root: {peak: 0.01, warmup_steps: 40}}}}
#include <lockstep/plugin.h>

#include "swish.h"

namespace {

/// y = log(1 + max(x, 0)): for counts, as pixels that were summed up.
void log1p_of(const lockstep::FunctionCall& call) {
  const std::int64_t count = call.n * call.input_shapes[0].num_elements();
  for (std::int64_t i = 0; i < count; ++i) call.outputs[0][i] = std::log1p(std::max(call.inputs[0][i], 0.0F));
}

std::vector<lockstep::Shape> same_shape(std::span<const lockstep::Shape> inputs) {
  LOCKSTEP_REQUIRE(inputs.size() == 1, lockstep::ErrorKind::config, "log1p takes one input, not {}",
                   inputs.size());
  return {inputs[0]};
}

/// Rises to `peak` and falls with the inverse root of the time: Vaswani et al. 2017, arXiv:1706.03762.
class InverseRoot final : public lockstep::Schedule {
 public:
  explicit InverseRoot(const lockstep::Params& p) : peak_(p.real("peak")), warmup_(p.real("warmup_steps")) {}
  double at(double time) const override {
    const double done = time + 1;
    return peak_ * std::min(std::sqrt(warmup_ / done), done / warmup_);
  }

 private:
  double peak_, warmup_;
};

constexpr lockstep::ParamSpec kInverseRoot[] = {
    {"peak", lockstep::ParamType::real, lockstep::kRequired, lockstep::above(0), "largest value"},
    {"warmup_steps", lockstep::ParamType::real, lockstep::kRequired, lockstep::above(0),
     "time until the largest value"},
};

/// Multiplies each channel by a random factor.
class ChannelGain final : public lockstep::Transform {
 public:
  explicit ChannelGain(const lockstep::Params& p) : amount_(static_cast<float>(p.real("amount"))) {}
  lockstep::Shape prepare(const lockstep::Shape& shape) override {
    count_ = shape.num_elements();
    channels_ = shape.last();
    return shape;
  }
  bool in_place() const override { return true; }
  void apply(const float* in, float* out, lockstep::SampleRandom* random, float*) const override {
    for (std::int64_t c = 0; c < channels_; ++c) {
      const float gain = random == nullptr ? 1.0F : random->uniform(1 - amount_, 1 + amount_);
      for (std::int64_t i = c; i < count_; i += channels_) out[i] = in[i] * gain;
    }
  }

 private:
  float amount_;
  std::int64_t count_ = 0, channels_ = 1;
};

constexpr lockstep::ParamSpec kChannelGain[] = {
    {"amount", lockstep::ParamType::real, "0.1", lockstep::between(0, 1),
     "factors are uniform in [1 - amount, 1 + amount]"},
};

}  // namespace

LOCKSTEP_PLUGIN {
  lockstep::layer_table().add(example::kSwish);
  lockstep::register_function("log1p", same_shape, log1p_of, "log(1 + max(x, 0)), forward only");
  lockstep::schedule_table().add({"inverse_root",
                                  "rises to peak, then falls with the inverse root of the time", kInverseRoot,
                                  [](const lockstep::Params& p) -> std::unique_ptr<lockstep::Schedule> {
                                    return std::make_unique<InverseRoot>(p);
                                  }});
  lockstep::transform_table().add({"channel_gain", "a random factor per channel; fixed form: none",
                                   kChannelGain,
                                   [](const lockstep::Params& p) -> std::unique_ptr<lockstep::Transform> {
                                     return std::make_unique<ChannelGain>(p);
                                   }});
}
