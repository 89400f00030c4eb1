// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// LAMB (kernels/rules/lamb.h). A variable whose norm or whose direction's norm is zero gets the plain rate,
// as in the authors' code.
#include <limits>
#include <optional>

#include "optim/rules/family.h"
#include "optim/trust_rule.h"

namespace lockstep {

namespace {

class LambRule final : public TrustRule {
 public:
  struct Options {
    RuleOptions common;
    TrustOptions trust;
    CorrectedDecayNumber beta1, beta2;
    double epsilon = 0;
    std::optional<std::vector<double>> norm_limits;

    void check(const Params& p) const {
      if (norm_limits && (norm_limits->size() != 2 || norm_limits->front() > norm_limits->back()))
        throw p.error(option_name<&Options::norm_limits>(p), "it is not [low, high]",
                      "Give two numbers, such as [0, 10].");
    }
  };
  explicit LambRule(Options o)
      : TrustRule(std::move(o.common), o.trust, {"m", "v"}),
        beta1_(corrected_mean(std::move(o.beta1))),
        beta2_(corrected_mean(std::move(o.beta2))),
        epsilon_(o.epsilon) {
    if (!o.norm_limits) return;
    low_ = static_cast<float>(o.norm_limits->front());
    high_ = static_cast<float>(o.norm_limits->back());
  }
  const char* kind() const override { return "lamb"; }

 private:
  void begin(std::int64_t step, double rate) override {
    lr_ = static_cast<float>(rate);
    numbers_.resize(counts().classes().size());
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      const UpdateClass& of = counts().classes()[i];
      numbers_[i].c1 = static_cast<float>(1 / (1 - beta1_.product(of)));
      numbers_[i].c2 = static_cast<float>(1 / std::sqrt(1 - beta2_.product(of)));
      numbers_[i].epsilon = static_cast<float>(epsilon_);
    }
    gain1_ = 1.0F - beta1_.at(step);
    gain2_ = 1.0F - beta2_.at(step);
  }
  LambNumbers with(double decay, std::size_t number) const {
    const LambNumbers& now = numbers_[number];
    return {now.c1, now.c2, now.epsilon, static_cast<float>(decay)};
  }
  RuleStep move(Norms norms, double decay, std::size_t number) const override {
    return rule_step(LambMove{norms.w2, norms.x2, with(decay, number), lr_, low_, high_});
  }
  RuleStep direction(double decay, std::size_t number) const override {
    return rule_step(LambDirection{with(decay, number), gain1_, gain2_});
  }
  bool has_direction() const override { return true; }
  std::string rule_text(const std::string& decay) const override {
    const bool is_limited = low_ > 0 || high_ < std::numeric_limits<float>::infinity();
    return fmt::format(
        "m += (1 - {0}) (g - m); v += (1 - {1}) (g^2 - v); u = m / (1 - {5}) / (sqrt(v / (1 - {6})) + "
        "{2}){3}; w -= lr {4} / |u| u",
        beta1_.text(), beta2_.text(), epsilon_, decay.empty() ? "" : fmt::format(" + {} w", decay),
        is_limited ? fmt::format("min(max(|w|, {}), {})", low_, high_) : "|w|", beta1_.product_text(),
        beta2_.product_text());
  }

  MeanDecay beta1_, beta2_;
  double epsilon_;
  float low_ = 0, high_ = std::numeric_limits<float>::infinity();
  float lr_ = 0, gain1_ = 0, gain2_ = 0;
  std::vector<LambNumbers> numbers_;  ///< of each class of variables
};

using Options = LambRule::Options;
constexpr ParamSpec kOptions[] = {
    rate_option<&Options::common>("0.001"),
    option<&Options::beta1>("beta1", "0.9", kShareRange, "decay of the first moment"),
    option<&Options::beta2>("beta2", "0.999", kShareRange, "decay of the second moment"),
    option<&Options::epsilon>("epsilon", "1e-6", above(0).up_to(1e6),
                              "added to the corrected root of the second moment"),
    weight_decay_option<&Options::common>(
        "0.01",
        "times the variable, is added to its direction, before the norm of the direction is measured"),
    option<&Options::norm_limits>(
        "norm_limits", "null", between(0, 1e30).or_null(),
        "[low, high]: the variable's norm is limited to this range (phi of the paper); null: it is not"),
    adapt_vectors_option<&Options::trust>(),
    decay_vectors_option<&Options::trust>(),
};

}  // namespace

extern const OptimizerEntry kLambOptimizer = {
    "lamb", "You et al. 2020: Adam's direction with a rate per variable, in proportion to its norm", kOptions,
    make_rule<LambRule>};

}  // namespace lockstep
