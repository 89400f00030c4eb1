// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Lion (kernels/rules/lion.h).
#include "kernels/rules.h"
#include "optim/element_rule.h"

namespace lockstep {

namespace {

class LionRule final : public ElementRule {
 public:
  explicit LionRule(const Params& p)
      : ElementRule(p, {{"exp_avg"}}, WeightDecay::decoupled, p.boolean("lazy")),
        beta1_(mean_decay(p, "beta1")),
        beta2_(mean_decay(p, "beta2")) {}
  const char* kind() const override { return "lion"; }

 private:
  RuleStep at(std::int64_t step, double rate) override {
    const float beta1 = beta1_.at(step), beta2 = beta2_.at(step);
    return rule_step(Lion{static_cast<float>(rate), beta1, 1.0F - beta1, beta2, 1.0F - beta2});
  }
  std::string rule_text() const override {
    return fmt::format("w -= lr sign({0} m + (1 - {0}) g); m = {1} m + (1 - {1}) g", beta1_.text(),
                       beta2_.text());
  }

  MeanDecay beta1_, beta2_;
};

constexpr ParamSpec kOptions[] = {
    rate_option("1e-4"),
    {"beta1", ParamType::node, "0.9", kShareRange, "share of the mean in the direction"},
    {"beta2", ParamType::node, "0.99", kShareRange, "decay of the mean"},
    {"weight_decay", ParamType::node, "0", kDecayRange,
     "variables are multiplied by 1 - learning rate * weight_decay before the update"},
    kLazyOption,
};

}  // namespace

OptimizerEntry lion_optimizer() {
  return {"lion", "Chen et al. 2023: the sign of a mean of gradients", kOptions,
          [](const Params& p) -> std::unique_ptr<Optimizer> { return std::make_unique<LionRule>(p); }};
}

}  // namespace lockstep
