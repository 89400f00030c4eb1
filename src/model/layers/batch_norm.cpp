// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Batch normalisation (Ioffe and Szegedy 2015), exact over all microshards of a group on all ranks.
//
// Forward: every microshard computes (count, mean, M2) per channel. They are merged along the reduction tree
// by the formula of Chan, Golub and LeVeque (1979), which allows different counts. Then
//   y = gamma (x - mean) / sqrt(M2 / count + epsilon) + beta,
// followed by the fused residual and relu.
//
// Backward: every microshard computes (sum g, sum g xhat). With the group's count N,
//   dx = gamma / std * (g - sum g / N - xhat * sum g xhat / N).
//
// The moving variance is the unbiased variance of the whole batch, of all groups together.
//
// Frozen, the layer is a function of each value: it normalises with the moving statistics in training too,
//   dx = gamma / std * g,
// does not change them, and needs no sums.
#include "config/option.h"
#include "core/buffer.h"
#include "model/collective_layer.h"
#include "model/layer_table.h"
#include "model/moving_statistics.h"

namespace lockstep {

namespace {

struct BatchNormOptions {
  double momentum = 0, epsilon = 0;
  int group = 0;
  bool center = true, scale = true;
  Node gamma_initializer;
};
using Options = BatchNormOptions;
constexpr ParamSpec kTable[] = {
    option<&Options::momentum>("momentum", "0.9", at_least(0).below(1),
                               "moving = momentum * moving + (1 - momentum) * batch"),
    option<&Options::epsilon>("epsilon", "0.001", above(0).up_to(1e6), "added to the variance"),
    option<&Options::group>("group", "0", between(0, 65536),
                            "microshards that are normalised together. 0: all of them, on all ranks; 1: each "
                            "one separately; n: n "
                            "consecutive ones"),
    option<&Options::center>("center", "true", {}, "learn beta"),
    option<&Options::scale>("scale", "true", {}, "learn gamma"),
    option<&Options::gamma_initializer>("gamma_initializer", "ones", {}, "initial gamma"),
};

class BatchNorm final : public CollectiveLayer, public MovingStatistics {
 public:
  using Options = BatchNormOptions;
  BatchNorm(std::string name, const Options& o)
      : CollectiveLayer(std::move(name)),
        momentum_(o.momentum),
        epsilon_(o.epsilon),
        group_(o.group),
        center_(o.center),
        scale_(o.scale),
        gamma_initializer_(make_initializer(o.gamma_initializer)) {}

  LayerTraits traits() const override {
    return {.kind = "batch_norm",
            .inputs = TypeRule::model,
            .outputs = TypeRule::model,
            .backward_reads_output = relu_ && residual_,
            .takes_two_gradients = true,
            .overwrites_dy = true};
  }

  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    LOCKSTEP_REQUIRE(inputs.size() == 1 && inputs[0].rank() >= 1, ErrorKind::config,
                     "layer {}: batch_norm takes one input with channels", name());
    channels_ = static_cast<int>(inputs[0].last());
    positions_ = inputs[0].num_elements() / channels_;
    return {inputs[0]};
  }

  void declare(VariableStore& variables) override {
    const Shape shape{channels_};
    if (scale_) gamma_ = variables.declare(name() + "/gamma", shape, gamma_initializer_);
    if (center_) beta_ = variables.declare(name() + "/beta", shape, make_initializer("zeros"));
    moving_mean_ = variables.declare(name() + "/moving_mean", shape, make_initializer("zeros"), false);
    moving_variance_ = variables.declare(name() + "/moving_variance", shape, make_initializer("ones"), false);
    fixed_ = variables[moving_mean_].frozen;
    LOCKSTEP_REQUIRE(fixed_ == variables[moving_variance_].frozen, ErrorKind::config,
                     "layer {}: only one of moving_mean and moving_variance is frozen; freeze both, as with "
                     "'{}/moving_*', or none",
                     name(), name());
  }

  LayerMemory prepare(const PrepareContext& context) override {
    if (!context.training || fixed_) {
      if (inference_.mean == nullptr) inference_ = Coefficients(context.device, channels_);
      return {.saved_bytes = context.training ? static_cast<std::size_t>(2 * channels_) * sizeof(double) : 0};
    }
    const int groups = group_ == 0 ? 1 : context.shards / group_;
    groups_.clear();
    for (int g = 0; g < groups; ++g) groups_.emplace_back(context.device, channels_);
    return {};
  }

  bool synchronises() const override { return !fixed_; }
  void set_kept(std::optional<double> share) override { kept_ = share; }
  double kept() const override { return momentum_; }
  CollectiveTraits collective_traits() const override {
    return {.group_size = group_,
            .forward = {.width = 1 + 2 * channels_, .merge = Merge::moments},
            .backward = {.width = 2 * channels_, .merge = Merge::sums}};
  }

  void forward_local(const Pass& pass, double* leaf) override {
    pass.kernels.norm.moments(pass.lane, pass.n * positions_, channels_, pass.inputs[0], leaf);
  }

  void forward_reduced(const Reduced& reduced) override {
    const NormKernels& norm = reduced.kernels.norm;
    for (std::size_t g = 0; g < groups_.size(); ++g) forward_group(group_of(reduced, g));
    norm.moving_average(reduced.lane, channels_, reduced.whole, kept_.value_or(momentum_),
                        reduced.variables.value(moving_mean_), reduced.variables.value(moving_variance_));
  }

  void forward_group(const ReducedGroup& reduced) override {
    const Coefficients& k = groups_[static_cast<std::size_t>(reduced.group)];
    reduced.kernels.norm.coefficients(reduced.lane, channels_, reduced.total, epsilon_,
                                      gamma(reduced.variables), beta(reduced.variables), k.kernel_view());
  }

  void forward(const Pass& pass) override {
    const Coefficients& k = pass.training ? coefficients(pass) : inference_;
    pass.kernels.norm.normalize(pass.lane, pass.n * positions_, channels_, pass.inputs[0], k.mean, k.scale,
                                k.shift, residual_ ? pass.inputs[1] : ConstData(), relu_, pass.outputs[0]);
  }

  void refresh_weights(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
                       bool training) override {
    if (training && !fixed_) return;
    kernels.norm.inference_coefficients(lane, channels_, variables.value(moving_mean_),
                                        variables.value(moving_variance_), epsilon_, gamma(variables),
                                        beta(variables), inference_.kernel_view());
  }

  /// Writes the sums to `leaf`, the masked gradient, and the gradients of beta and gamma.
  void backward_local(const Pass& pass, double* leaf) override {
    const NormKernels& norm = pass.kernels.norm;
    double* sum_g = leaf;
    double* sum_gx = leaf + channels_;
    norm.backward_sums(pass.lane, pass.n * positions_, channels_, gradient(pass), masked_gradient(pass),
                       sum_g, sum_gx);
    if (pass.n == 0) return;
    if (wants_beta(pass)) norm.to_float(pass.lane, channels_, sum_g, pass.gradient(beta_));
    if (wants_gamma(pass)) norm.to_float(pass.lane, channels_, sum_gx, pass.gradient(gamma_));
  }

  void backward_reduced(const Reduced& reduced) override {
    for (std::size_t g = 0; g < groups_.size(); ++g) backward_group(group_of(reduced, g));
  }

  void backward_group(const ReducedGroup& reduced) override {
    const Coefficients& k = groups_[static_cast<std::size_t>(reduced.group)];
    reduced.kernels.norm.gradient_coefficients(reduced.lane, channels_, reduced.total,
                                               gamma(reduced.variables), k.kernel_view(), k.a, k.b, k.d);
  }

  void backward(const Pass& pass) override {
    const bool sums =
        !fixed_ || wants_beta(pass) || wants_gamma(pass) || (residual_ && pass.dx[1] != nullptr);
    if (fixed_ && sums) backward_local(pass, static_cast<double*>(pass.saved));
    const Coefficients& k = coefficients(pass);
    NormKernels::Gradient g = gradient(pass);
    if (const Data masked = masked_gradient(pass); sums && masked != nullptr) {  // written by backward_local
      g.dy = masked;
      g.dy2 = nullptr;
      g.y = nullptr;
      g.mask_from_x = false;
    }
    if (pass.dx[0] != nullptr)  // b and d stay 0 where the statistics are fixed
      pass.kernels.norm.backward_apply(pass.lane, pass.n * positions_, channels_, g, fixed_ ? k.scale : k.a,
                                       k.b, k.d, pass.dx[0]);
  }

  bool fuse(Fusible operation) override {
    if (relu_ || (operation == Fusible::addition && residual_)) return false;
    (operation == Fusible::relu ? relu_ : residual_) = true;
    return true;
  }

 private:
  /// The coefficients of one group per channel, on the device: y = (x - mean) * scale + shift and
  /// dx = a g + b (x - mean) + d. shift and d account for the rounding of the mean.
  struct Coefficients {
    Coefficients() = default;
    Coefficients(Device& device, int channels)
        : memory(device,
                 static_cast<std::size_t>(padded(channels)) * (7 * sizeof(float) + 2 * sizeof(double)) +
                     sizeof(double)) {
      const std::int64_t step = padded(channels);
      float* next = memory.as<float>().data();
      for (float** values : {&mean, &inverse_std, &scale, &shift, &a, &b, &d}) {
        *values = next;
        next += step;
      }
      mean_rest = reinterpret_cast<double*>(next);
      precise_inverse_std = mean_rest + step;
      count = precise_inverse_std + step;
    }
    NormKernels::Coefficients kernel_view() const {
      return {mean, inverse_std, scale, shift, mean_rest, precise_inverse_std, count};
    }

    float *mean = nullptr, *inverse_std = nullptr, *scale = nullptr, *shift = nullptr;
    float *a = nullptr, *b = nullptr, *d = nullptr;
    double *mean_rest = nullptr, *precise_inverse_std = nullptr, *count = nullptr;
    Buffer memory;

   private:
    /// Every array begins at a multiple of 64 bytes.
    static std::int64_t padded(std::int64_t channels) { return (channels + 15) / 16 * 16; }
  };

  static ReducedGroup group_of(const Reduced& all, std::size_t group) {
    return {all.kernels, all.lane, all.variables, static_cast<int>(group), all.totals[group]};
  }
  const float* gamma(const VariableStore& variables) const {
    return scale_ ? variables.value(gamma_) : nullptr;
  }
  const float* beta(const VariableStore& variables) const {
    return center_ ? variables.value(beta_) : nullptr;
  }
  /// In training.
  const Coefficients& coefficients(const Pass& pass) const {
    if (fixed_) return inference_;
    return groups_[static_cast<std::size_t>(group_ == 0 ? 0 : pass.shard / group_)];
  }
  bool wants_gamma(const Pass& pass) const { return scale_ && pass.wants(gamma_); }
  bool wants_beta(const Pass& pass) const { return center_ && pass.wants(beta_); }

  NormKernels::Gradient gradient(const Pass& pass) const {
    const Coefficients& k = coefficients(pass);
    return {.dy = pass.dy[0],
            .dy2 = pass.dy2[0],
            .y = relu_ && residual_ ? ConstData(pass.outputs[0]) : ConstData(),
            .mask_from_x = relu_ && !residual_,
            .x = pass.inputs[0],
            .scale = k.scale,
            .shift = k.shift,
            .mean = k.mean,
            .mean_rest = k.mean_rest,
            .inverse_std = k.inverse_std};
  }
  /// Where backward_local() writes the masked sum of the gradient's contributions, or null: it is the
  /// residual's gradient if there is one, else dy if there are two contributions.
  Data masked_gradient(const Pass& pass) const {
    if (residual_ && pass.dx[1] != nullptr) return pass.dx[1];
    return pass.dy2[0] != nullptr ? pass.dy[0] : Data();
  }

  double momentum_, epsilon_;
  std::optional<double> kept_;
  int group_;
  bool center_, scale_, relu_ = false, residual_ = false;
  bool fixed_ = false;  ///< the statistics are frozen
  std::shared_ptr<const Initializer> gamma_initializer_;
  int channels_ = 0;
  std::int64_t positions_ = 0;
  VariableId gamma_ = VariableId::none, beta_ = VariableId::none, moving_mean_ = VariableId::none,
             moving_variance_ = VariableId::none;
  std::vector<Coefficients> groups_;
  Coefficients inference_;
};

}  // namespace

extern const LayerEntry kBatchNormLayer = {
    "batch_norm", "batch normalisation, synchronised over all ranks, exactly", kTable, make_layer<BatchNorm>};

}  // namespace lockstep
