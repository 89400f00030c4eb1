// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Lion (kernels/rules/lion.h).
#include "optim/rules/family.h"

namespace lockstep {

namespace {

class LionRule final : public ElementRule {
 public:
  struct Options {
    RuleOptions common;
    DecayNumber beta1, beta2;
  };
  explicit LionRule(Options o)
      : ElementRule(std::move(o.common), {{"exp_avg"}}, WeightDecay::decoupled),
        beta1_(mean(std::move(o.beta1))),
        beta2_(mean(std::move(o.beta2))) {}
  const char* kind() const override { return "lion"; }

 private:
  RuleStep at(std::int64_t step, double rate, const UpdateClass& /*of*/) override {
    const float beta1 = beta1_.at(step), beta2 = beta2_.at(step);
    return rule_step(Lion{static_cast<float>(rate), beta1, 1.0F - beta1, beta2, 1.0F - beta2});
  }
  std::string rule_text() const override {
    return fmt::format("w -= lr sign({0} m + (1 - {0}) g); m = {1} m + (1 - {1}) g", beta1_.text(),
                       beta2_.text());
  }

  MeanDecay beta1_, beta2_;
};

using Options = LionRule::Options;
constexpr ParamSpec kOptions[] = {
    rate_option<&Options::common>("1e-4"),
    option<&Options::beta1>("beta1", "0.9", kShareRange, "share of the mean in the direction"),
    option<&Options::beta2>("beta2", "0.99", kShareRange, "decay of the mean"),
    weight_decay_option<&Options::common>("0", kDecoupledHelp),
    lazy_option<&Options::common>(),
};

}  // namespace

extern const OptimizerEntry kLionOptimizer = {"lion", "Chen et al. 2023: the sign of a mean of gradients",
                                              kOptions, make_rule<LionRule>};

}  // namespace lockstep
