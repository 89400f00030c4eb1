// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Normalisation within a sample: layer_norm (Ba, Kiros, Hinton 2016, arXiv:1607.06450), rms_norm (Zhang and
// Sennrich 2019, arXiv:1910.07467), which is layer_norm without the mean and beta, group_norm (Wu and He
// 2018, arXiv:1803.08494) and instance_norm (Ulyanov et al. 2016, arXiv:1607.08022), which is group_norm with
// a group per channel. Samples do not influence one another, so training and inference are the same.
#include "config/option.h"
#include "model/axes.h"
#include "model/layer_table.h"

namespace lockstep {

namespace {

struct NormOptions {
  double epsilon = 0;
  bool center = false, scale = false;
  Node gamma_initializer;
};
struct LayerNormOptions {
  std::int64_t axis = 0;
  NormOptions norm;
};
struct GroupNormOptions {
  std::int64_t groups = 0;
  NormOptions norm;
};

// Options of all; `kNorm...` leads to the NormOptions.
template <auto... kNorm>
constexpr ParamSpec kEpsilon = option<kNorm..., &NormOptions::epsilon>("epsilon", "1e-5", above(0).up_to(1e6),
                                                                       "added to the variance");
template <auto... kNorm>
constexpr ParamSpec kRmsEpsilon = option<kNorm..., &NormOptions::epsilon>("epsilon", "1e-6",
                                                                          above(0).up_to(1e6),
                                                                          "added to the mean of the squares");
template <auto... kNorm>
constexpr ParamSpec kCenter = option<kNorm..., &NormOptions::center>("center", "true", {}, "learn beta");
template <auto... kNorm>
constexpr ParamSpec kScale = option<kNorm..., &NormOptions::scale>("scale", "true", {}, "learn gamma");
template <auto... kNorm>
constexpr ParamSpec kGamma = option<kNorm..., &NormOptions::gamma_initializer>("gamma_initializer", "ones",
                                                                               {}, "initial gamma");

constexpr ParamSpec kAxis = option<&LayerNormOptions::axis>(
    "axis", "-1", between(-8, 7),
    "first of the axes that are normalised together; -1: the last axis only, 0: the whole sample");
constexpr ParamSpec kLayerTable[] = {
    kAxis,
    kEpsilon<&LayerNormOptions::norm>,
    kCenter<&LayerNormOptions::norm>,
    kScale<&LayerNormOptions::norm>,
    kGamma<&LayerNormOptions::norm>,
};
constexpr ParamSpec kRmsTable[] = {
    kAxis,
    kRmsEpsilon<&LayerNormOptions::norm>,
    kScale<&LayerNormOptions::norm>,
    kGamma<&LayerNormOptions::norm>,
};
constexpr ParamSpec kGroupTable[] = {
    option<&GroupNormOptions::groups>("groups", "32", between(1, 16777216),
                                      "number of groups of channels; a divisor of the number of channels"),
    kEpsilon<&GroupNormOptions::norm>,
    kCenter<&GroupNormOptions::norm>,
    kScale<&GroupNormOptions::norm>,
    kGamma<&GroupNormOptions::norm>,
};
constexpr ParamSpec kInstanceTable[] = {kEpsilon<>, kCenter<>, kScale<>, kGamma<>};

class GroupNormLayer : public Layer {
 public:
  GroupNormLayer(std::string name, const char* kind, const NormOptions& o)
      : Layer(std::move(name)),
        kind_(kind),
        epsilon_(o.epsilon),
        center_(o.center),
        scale_(o.scale),
        gamma_initializer_(make_initializer(o.gamma_initializer)) {}

  LayerTraits traits() const final {
    return {.kind = kind_, .inputs = TypeRule::model, .outputs = TypeRule::model};
  }
  std::vector<Shape> infer(std::span<const Shape> inputs) final {
    LOCKSTEP_REQUIRE(inputs.size() == 1, ErrorKind::config, "layer {}: {} takes one input, not {}", name(),
                     kind(), inputs.size());
    shape_ = shape_of(inputs[0]);
    return {inputs[0]};
  }
  void declare(VariableStore& variables) final {
    if (scale_) gamma_ = variables.declare(name() + "/gamma", parameters_, gamma_initializer_);
    if (center_) beta_ = variables.declare(name() + "/beta", parameters_, make_initializer("zeros"));
  }
  LayerMemory prepare(const PrepareContext& context) final {
    LayerMemory memory;
    for (std::int64_t n : context.sample_counts)
      memory.scratch_bytes =
          std::max(memory.scratch_bytes, context.kernels.group_norm.scratch_bytes(of_samples(n)));
    if (context.training)
      memory.saved_bytes = static_cast<std::size_t>(context.max_samples() * shape_.samples * shape_.groups) *
                           2 * sizeof(float);
    return memory;
  }
  void forward(const Pass& pass) final {
    pass.kernels.group_norm.forward(pass.lane, of_samples(pass.n), pass.inputs[0], epsilon_, gamma(pass),
                                    center_ ? pass.value(beta_) : nullptr, static_cast<float*>(pass.saved),
                                    pass.outputs[0]);
  }
  void backward(const Pass& pass) final {
    pass.kernels.group_norm.backward(pass.lane, of_samples(pass.n), pass.inputs[0], pass.dy[0], gamma(pass),
                                     static_cast<const float*>(pass.saved), pass.dx[0],
                                     scale_ && pass.wants(gamma_) ? pass.gradient(gamma_) : nullptr,
                                     center_ && pass.wants(beta_) ? pass.gradient(beta_) : nullptr);
  }

 protected:
  /// The shape of one sample, which may be several rows. Sets parameters_.
  virtual GroupNormShape shape_of(const Shape& input) = 0;
  Shape parameters_;  ///< of gamma and beta

 private:
  GroupNormShape of_samples(std::int64_t n) const {
    GroupNormShape shape = shape_;
    shape.samples *= n;
    return shape;
  }
  const float* gamma(const Pass& pass) const { return scale_ ? pass.value(gamma_) : nullptr; }

  const char* kind_;
  double epsilon_;
  bool center_, scale_;
  std::shared_ptr<const Initializer> gamma_initializer_;
  GroupNormShape shape_;
  VariableId gamma_ = VariableId::none, beta_ = VariableId::none;
};

/// layer_norm, and rms_norm if it is not centred.
class LayerNorm final : public GroupNormLayer {
 public:
  LayerNorm(std::string name, const LayerNormOptions& o, bool centred)
      : GroupNormLayer(std::move(name), centred ? "layer_norm" : "rms_norm", o.norm),
        axis_(o.axis),
        centred_(centred) {}

 private:
  GroupNormShape shape_of(const Shape& input) override {
    const int axis = axis_of(*this, "axis", axis_, input);
    parameters_ = Shape(input.extents().subspan(static_cast<std::size_t>(axis)));
    const std::int64_t width = parameters_.num_elements();
    return {.samples = input.num_elements() / width,
            .positions = 1,
            .groups = 1,
            .width = width,
            .centred = centred_};
  }
  std::int64_t axis_;
  bool centred_;
};

/// `groups` 0: one group per channel.
class GroupNorm final : public GroupNormLayer {
 public:
  GroupNorm(std::string name, const char* kind, std::int64_t groups, const NormOptions& o)
      : GroupNormLayer(std::move(name), kind, o), groups_(groups) {}

 private:
  GroupNormShape shape_of(const Shape& input) override {
    LOCKSTEP_REQUIRE(input.rank() >= 2, ErrorKind::config,
                     "layer {}: {} takes space x channels per sample, not {}", name(), kind(),
                     input.to_string());
    const std::int64_t channels = input.last(), groups = groups_ == 0 ? channels : groups_;
    LOCKSTEP_REQUIRE(channels % groups == 0, ErrorKind::config,
                     "layer {}: {} groups do not divide the {} channels of its input {}", name(), groups,
                     channels, input.to_string());
    parameters_ = Shape{channels};
    return {.samples = 1,
            .positions = input.num_elements() / channels,
            .groups = groups,
            .width = channels / groups};
  }
  std::int64_t groups_;
};

using Made = std::unique_ptr<Layer>;

}  // namespace

extern const LayerEntry kLayerNormLayer = {"layer_norm", "normalisation over the last axes of each sample",
                                           kLayerTable, [](std::string name, const Params& p) -> Made {
                                             return std::make_unique<LayerNorm>(
                                                 std::move(name), p.as<LayerNormOptions>(), true);
                                           }};
extern const LayerEntry kRmsNormLayer = {
    "rms_norm", "division by the root mean square over the last axes of each sample", kRmsTable,
    [](std::string name, const Params& p) -> Made {
      return std::make_unique<LayerNorm>(std::move(name), p.as<LayerNormOptions>(), false);
    }};
extern const LayerEntry kGroupNormLayer = {
    "group_norm", "normalisation over all positions of a group of channels, per sample", kGroupTable,
    [](std::string name, const Params& p) -> Made {
      const auto options = p.as<GroupNormOptions>();
      return std::make_unique<GroupNorm>(std::move(name), "group_norm", options.groups, options.norm);
    }};
extern const LayerEntry kInstanceNormLayer = {
    "instance_norm", "normalisation over all positions of a channel, per sample", kInstanceTable,
    [](std::string name, const Params& p) -> Made {
      return std::make_unique<GroupNorm>(std::move(name), "instance_norm", 0, p.as<NormOptions>());
    }};

}  // namespace lockstep
