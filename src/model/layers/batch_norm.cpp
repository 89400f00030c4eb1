// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Batch normalisation (Ioffe and Szegedy 2015), exact over all microshards of a group, wherever they are
// computed.
//
// Forward: every microshard gives (count, mean, M2) per channel; merged along the tree with Chan's formula
// (Chan, Golub, LeVeque 1979), whatever the counts. y = gamma (x - mean) / sqrt(M2 / count + epsilon) + beta,
// then the fused residual and relu. Backward: every microshard gives (sum g, sum g xhat); with N the group's
// count,
//   dx = gamma / std * (g - sum g / N - xhat * sum g xhat / N).
// The moving variance is the unbiased one of the whole batch (of all groups together).
#include <algorithm>
#include <cmath>

#include "model/layers/entries.h"

namespace lockstep {

namespace {

constexpr ParamSpec kTable[] = {
    {"momentum", ParamType::real, "0.99", "[0, 1)", "moving = momentum * moving + (1 - momentum) * batch"},
    {"epsilon", ParamType::real, "0.001", "> 0", "added to the variance"},
    {"group", ParamType::integer, "0", ">= 0",
     "microshards that are normalised together: 0 all of them on all ranks, 1 each by itself, n consecutive "
     "ones"},
    {"center", ParamType::boolean, "true", "", "learn beta"},
    {"scale", ParamType::boolean, "true", "", "learn gamma"},
    {"gamma_initializer", ParamType::node, "ones", "", "initial gamma"},
};

/// Numbers of a leaf: count, then C means, then C times M2.
void merge_moments(double* into, const double* right, int width) {
  const int channels = (width - 1) / 2;
  const double left_count = into[0], right_count = right[0];
  if (right_count == 0) return;
  if (left_count == 0) {
    std::copy_n(right, width, into);
    return;
  }
  const double count = left_count + right_count;
  const double mean_weight = right_count / count, m2_weight = left_count * right_count / count;
  for (int c = 0; c < channels; ++c) {
    const double delta = right[1 + c] - into[1 + c];
    into[1 + c] += delta * mean_weight;
    into[1 + channels + c] += right[1 + channels + c] + delta * delta * m2_weight;
  }
  into[0] = count;
}

void merge_sums(double* into, const double* right, int width) {
  for (int i = 0; i < width; ++i) into[i] += right[i];
}

class BatchNorm final : public CollectiveLayer {
 public:
  BatchNorm(std::string name, const Params& p)
      : CollectiveLayer(std::move(name)),
        momentum_(p.real("momentum")),
        epsilon_(p.real("epsilon")),
        group_(static_cast<int>(p.integer("group"))),
        center_(p.boolean("center")),
        scale_(p.boolean("scale")),
        gamma_initializer_(make_initializer(p.node("gamma_initializer"))) {}

  const char* kind() const override { return "batch_norm"; }

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
  }

  void prepare(const PrepareContext&) override { inference_ = Coefficients(channels_); }

  // The meeting
  // ---------------------------------------------------------------------------------------------------
  int group_size() const override { return group_; }
  int forward_width() const override { return 1 + 2 * channels_; }
  int backward_width() const override { return 2 * channels_; }
  Merge forward_merge() const override { return merge_moments; }
  Merge backward_merge() const override { return merge_sums; }

  void forward_local(const Pass& pass, double* leaf) override {
    leaf[0] = static_cast<double>(pass.n * positions_);
    if (pass.n == 0)
      std::fill_n(leaf + 1, 2 * channels_, 0.0);
    else
      pass.kernels.norm.statistics(pass.lane, pass.n * positions_, channels_, pass.inputs[0], leaf + 1,
                                   leaf + 1 + channels_);
  }

  void forward_met(std::span<const double* const> totals, VariableStore& variables) override {
    if (groups_.size() != totals.size()) {  // the first step
      groups_.assign(totals.size(), Coefficients(channels_));
      whole_.resize(static_cast<std::size_t>(forward_width()));
    }
    for (std::size_t g = 0; g < totals.size(); ++g) {
      const double* total = totals[g];
      const double count = std::max(total[0], 1.0);
      groups_[g].count = count;
      for (int c = 0; c < channels_; ++c)
        groups_[g].set(c, total[1 + c], total[1 + channels_ + c] / count, epsilon_, gamma_of(variables, c),
                       beta_of(variables, c));
      if (g == 0)
        std::copy_n(total, whole_.size(), whole_.begin());
      else
        merge_moments(whole_.data(), total, forward_width());
    }
    if (whole_[0] == 0) return;
    float* mean = variables.value(moving_mean_);
    float* variance = variables.value(moving_variance_);
    for (int c = 0; c < channels_; ++c) {
      const double unbiased =
          whole_[static_cast<std::size_t>(1 + channels_ + c)] / std::max(whole_[0] - 1.0, 1.0);
      mean[c] =
          static_cast<float>(momentum_ * mean[c] + (1 - momentum_) * whole_[static_cast<std::size_t>(1 + c)]);
      variance[c] = static_cast<float>(momentum_ * variance[c] + (1 - momentum_) * unbiased);
    }
  }

  void forward(const Pass& pass) override {
    const Coefficients& k = pass.training ? group_of(pass.shard) : inference_;
    pass.kernels.norm.normalize(pass.lane, pass.n * positions_, channels_, pass.inputs[0], k.scale.data(),
                                k.shift.data(), residual_ ? pass.inputs[1] : nullptr, relu_, pass.outputs[0]);
  }

  void refresh_weights(const KernelTable&, const Lane&, const VariableStore& variables) override {
    for (int c = 0; c < channels_; ++c)
      inference_.set(c, variables.value(moving_mean_)[c], variables.value(moving_variance_)[c], epsilon_,
                     gamma_of(variables, c), beta_of(variables, c));
  }

  void backward_local(const Pass& pass, double* leaf) override {
    if (pass.n == 0) {
      std::fill_n(leaf, 2 * channels_, 0.0);
      return;
    }
    double* sum_g = leaf;
    double* sum_gx = leaf + channels_;
    pass.kernels.norm.backward_sums(pass.lane, pass.n * positions_, channels_, gradient(pass),
                                    masked_gradient(pass), sum_g, sum_gx);
    if (center_) std::copy_n(sum_g, channels_, pass.gradient(beta_));
    if (scale_) std::copy_n(sum_gx, channels_, pass.gradient(gamma_));
  }

  void backward_met(std::span<const double* const> totals, const VariableStore& variables) override {
    for (std::size_t g = 0; g < totals.size(); ++g) {
      Coefficients& k = groups_[g];
      const double* sum_g = totals[g];
      const double* sum_gx = totals[g] + channels_;
      for (int c = 0; c < channels_; ++c) {
        const auto i = static_cast<std::size_t>(c);
        const double factor = gamma_of(variables, c) * k.precise_inverse_std[i];
        k.a[i] = static_cast<float>(factor);
        k.b[i] = static_cast<float>(-factor * sum_gx[c] / k.count * k.precise_inverse_std[i]);
        k.d[i] = static_cast<float>(-factor * sum_g[c] / k.count);
      }
    }
  }

  void backward(const Pass& pass) override {
    const Coefficients& k = group_of(pass.shard);
    NormKernels::Gradient g = gradient(pass);
    if (float* masked = masked_gradient(pass)) {  // written by backward_local
      g.dy = masked;
      g.dy2 = nullptr;
      g.y = nullptr;
      g.mask_from_x = false;
    }
    if (pass.dx[0] != nullptr)
      pass.kernels.norm.backward_apply(pass.lane, pass.n * positions_, channels_, g, k.a.data(), k.b.data(),
                                       k.d.data(), pass.dx[0]);
  }

  bool backward_reads_output() const override { return relu_ && residual_; }
  bool takes_two_gradients() const override { return true; }
  bool fuse_relu() override {
    const bool fused = !relu_;
    relu_ = true;
    return fused;
  }
  bool fuse_residual() override {
    const bool fused = !relu_ && !residual_;
    if (fused) residual_ = true;
    return fused;
  }

 private:
  /// Per-channel numbers of one group: y = x * scale + shift; dx = a g + b (x - mean) + d.
  struct Coefficients {
    std::vector<float> mean, inverse_std, scale, shift, a, b, d;
    std::vector<double> precise_inverse_std;
    double count = 0;

    Coefficients() = default;
    explicit Coefficients(int channels) : precise_inverse_std(static_cast<std::size_t>(channels)) {
      for (std::vector<float>* values : {&mean, &inverse_std, &scale, &shift, &a, &b, &d})
        values->assign(static_cast<std::size_t>(channels), 0.0F);
    }
    void set(int c, double mean_value, double variance, double epsilon, double gamma, double beta) {
      const auto i = static_cast<std::size_t>(c);
      precise_inverse_std[i] = 1.0 / std::sqrt(variance + epsilon);
      mean[i] = static_cast<float>(mean_value);
      inverse_std[i] = static_cast<float>(precise_inverse_std[i]);
      scale[i] = static_cast<float>(gamma * precise_inverse_std[i]);
      shift[i] = static_cast<float>(beta - mean_value * gamma * precise_inverse_std[i]);
    }
  };

  double gamma_of(const VariableStore& variables, int c) const {
    return scale_ ? variables.value(gamma_)[c] : 1.0;
  }
  double beta_of(const VariableStore& variables, int c) const {
    return center_ ? variables.value(beta_)[c] : 0.0;
  }
  const Coefficients& group_of(int shard) const {
    return groups_[static_cast<std::size_t>(group_ == 0 ? 0 : shard / group_)];
  }

  NormKernels::Gradient gradient(const Pass& pass) const {
    const Coefficients& k = group_of(pass.shard);
    return {.dy = pass.dy[0],
            .dy2 = pass.dy2[0],
            .y = relu_ && residual_ ? pass.outputs[0] : nullptr,
            .mask_from_x = relu_ && !residual_,
            .x = pass.inputs[0],
            .scale = k.scale.data(),
            .shift = k.shift.data(),
            .mean = k.mean.data(),
            .inverse_std = k.inverse_std.data()};
  }
  /// Where the masked, summed gradient is written on the way, or null: the residual wants it anyway; two
  /// contributions are summed once.
  float* masked_gradient(const Pass& pass) const {
    if (residual_ && pass.dx[1] != nullptr) return pass.dx[1];
    return pass.dy2[0] != nullptr ? const_cast<float*>(pass.dy[0]) : nullptr;
  }

  double momentum_, epsilon_;
  int group_;
  bool center_, scale_, relu_ = false, residual_ = false;
  std::shared_ptr<const Initializer> gamma_initializer_;
  int channels_ = 0;
  std::int64_t positions_ = 0;
  VariableId gamma_ = VariableId::none, beta_ = VariableId::none, moving_mean_ = VariableId::none,
             moving_variance_ = VariableId::none;
  std::vector<Coefficients> groups_;
  Coefficients inference_;
  std::vector<double> whole_;
};

}  // namespace

const LayerEntry kBatchNormLayer = {"batch_norm", "batch normalisation, synchronised over all ranks, exactly",
                                    kTable, [](std::string name, const Params& p) -> std::unique_ptr<Layer> {
                                      return std::make_unique<BatchNorm>(std::move(name), p);
                                    }};

}  // namespace lockstep
