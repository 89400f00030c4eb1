// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Adadelta (kernels/rules/adadelta.h).
#include "kernels/rules.h"
#include "optim/element_rule.h"

namespace lockstep {

namespace {

class AdadeltaRule final : public ElementRule {
 public:
  explicit AdadeltaRule(const Params& p)
      : ElementRule(p, {{"accum"}, {"accum_update"}}, weight_decay(p), p.boolean("lazy")),
        rho_(mean_decay(p, "rho")),
        epsilon_(p.real("epsilon")) {}
  const char* kind() const override { return "adadelta"; }

 private:
  RuleStep at(std::int64_t step, double rate) override {
    const float rho = rho_.at(step);
    return rule_step(Adadelta{static_cast<float>(rate), rho, 1.0F - rho, static_cast<float>(epsilon_)});
  }
  std::string rule_text() const override {
    return fmt::format(
        "s = {0} s + (1 - {0}) g^2; d = g sqrt(u + {1}) / sqrt(s + {1}); w -= lr d; u = {0} u + (1 - {0}) "
        "d^2",
        rho_.text(), epsilon_);
  }

  MeanDecay rho_;
  double epsilon_;
};

constexpr ParamSpec kOptions[] = {
    rate_option("0.001"),
    {"rho", ParamType::node, "0.95", kShareRange, "decay of both mean squares"},
    {"epsilon", ParamType::real, "1e-8", "(0, 1e6]", "added within both roots"},
    kWeightDecayOption,
    kDecoupledOption,
    kLazyOption,
};

}  // namespace

OptimizerEntry adadelta_optimizer() {
  return {"adadelta", "Zeiler 2012; with learning_rate: 1 as in the paper", kOptions,
          [](const Params& p) -> std::unique_ptr<Optimizer> { return std::make_unique<AdadeltaRule>(p); }};
}

}  // namespace lockstep
