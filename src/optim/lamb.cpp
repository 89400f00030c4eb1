// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// LAMB (kernels/rules/lamb.h). A variable whose norm or whose direction's norm is zero gets the plain rate,
// as in the authors' code.
#include <cmath>
#include <limits>

#include "kernels/rules.h"
#include "optim/trust_rule.h"

namespace lockstep {

namespace {

class LambRule final : public TrustRule {
 public:
  explicit LambRule(const Params& p)
      : TrustRule(p, {"m", "v"}),
        beta1_(share_below_one(p, "beta1")),
        beta2_(share_below_one(p, "beta2")),
        epsilon_(p.real("epsilon")) {
    if (!p.has("norm_limits")) return;
    const std::vector<double>& limits = p.reals("norm_limits");
    if (limits.size() != 2 || limits[0] > limits[1])
      throw p.error("norm_limits", "it is not [low, high]", "Give two numbers, such as [0, 10].");
    low_ = static_cast<float>(limits[0]);
    high_ = static_cast<float>(limits[1]);
  }
  const char* kind() const override { return "lamb"; }

 private:
  void begin(std::int64_t step, double rate) override {
    const auto t = static_cast<double>(step + 1);
    lr_ = static_cast<float>(rate);
    numbers_.c1 = static_cast<float>(1 / (1 - std::pow(static_cast<double>(beta1_), t)));
    numbers_.c2 = static_cast<float>(1 / std::sqrt(1 - std::pow(static_cast<double>(beta2_), t)));
    numbers_.epsilon = static_cast<float>(epsilon_);
  }
  LambNumbers with(double decay) const {
    return {numbers_.c1, numbers_.c2, numbers_.epsilon, static_cast<float>(decay)};
  }
  RuleStep move(Norms norms, double decay) const override {
    return rule_step(LambMove{norms.w2, norms.x2, with(decay), lr_, low_, high_});
  }
  std::optional<RuleStep> direction(double decay) const override {
    return rule_step(LambDirection{with(decay), 1.0F - beta1_, 1.0F - beta2_});
  }
  std::string rule_text(const std::string& decay) const override {
    const bool is_limited = low_ > 0 || high_ < std::numeric_limits<float>::infinity();
    return fmt::format(
        "m += (1 - {0}) (g - m); v += (1 - {1}) (g^2 - v); u = m / (1 - {0}^t) / (sqrt(v / (1 - {1}^t)) + "
        "{2}){3}; "
        "w -= lr {4} / |u| u",
        beta1_, beta2_, epsilon_, decay.empty() ? "" : fmt::format(" + {} w", decay),
        is_limited ? fmt::format("min(max(|w|, {}), {})", low_, high_) : "|w|");
  }

  float beta1_, beta2_;
  double epsilon_;
  float low_ = 0, high_ = std::numeric_limits<float>::infinity();
  float lr_ = 0;
  LambNumbers numbers_{};
};

constexpr ParamSpec kOptions[] = {
    rate_option("0.001"),
    {"beta1", ParamType::real, "0.9", "[0, 1)", "decay of the first moment"},
    {"beta2", ParamType::real, "0.999", "[0, 1)", "decay of the second moment"},
    {"epsilon", ParamType::real, "1e-6", "(0, 1e6]", "added to the corrected root of the second moment"},
    {"weight_decay", ParamType::node, "0.01", kDecayRange,
     "times the variable, is added to its direction, before the norm of the direction is measured"},
    {"norm_limits", ParamType::reals, "null", "[0, 1e30] or null",
     "[low, high]: the variable's norm is limited to this range (phi of the paper); null: it is not"},
    kAdaptVectors,
    kDecayVectors,
};

}  // namespace

OptimizerEntry lamb_optimizer() {
  return {"lamb", "You et al. 2020: Adam's direction with a rate per variable, in proportion to its norm",
          kOptions,
          [](const Params& p) -> std::unique_ptr<Optimizer> { return std::make_unique<LambRule>(p); }};
}

}  // namespace lockstep
