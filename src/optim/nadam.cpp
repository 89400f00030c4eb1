// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// NAdam (kernels/rules/nadam.h): Dozat 2016, algorithm 2, in the form of PyTorch. The momentum of step t is
// mu_t = beta1 (1 - 0.96^(t momentum_decay) / 2), and the bias correction of the mean is a product of these.
#include <cmath>

#include "kernels/rules.h"
#include "optim/element_rule.h"

namespace lockstep {

namespace {

class NAdamRule final : public ElementRule {
 public:
  explicit NAdamRule(const Params& p)
      : ElementRule(p, {{"m"}, {"v"}}, weight_decay(p), p.boolean("lazy")),
        beta1_(mean_decay(p, "beta1", BiasCorrection::by_product)),
        beta2_(mean_decay(p, "beta2", BiasCorrection::by_product)),
        epsilon_(p.real("epsilon")),
        momentum_decay_(p.real("momentum_decay")) {}
  const char* kind() const override { return "nadam"; }

 private:
  RuleStep at(std::int64_t step, double rate) override {
    const std::int64_t t = step + 1;
    if (t < counted_) counted_ = 0, product_ = 1;
    while (counted_ < t) product_ *= momentum(++counted_);  // from the first step on: the bits are the same
    const double now = momentum(t), next = momentum(t + 1);
    const double correction = std::sqrt(1 - beta2_.product(step));
    return rule_step(NAdam{static_cast<float>(rate * correction * (1 - now) / (1 - product_)),
                           static_cast<float>(rate * correction * next / (1 - product_ * next)),
                           1.0F - beta1_.at(step), 1.0F - beta2_.at(step),
                           static_cast<float>(epsilon_ * correction)});
  }
  std::string rule_text() const override {
    return fmt::format(
        "m += (1 - {0}) (g - m); v += (1 - {1}) (g^2 - v); w -= lr ((1 - mu_t) g / (1 - mu_1 ... mu_t) + "
        "mu_t+1 m / (1 - mu_1 ... mu_t+1)) / (sqrt(v / (1 - {4})) + {2}), mu_t = {0} (1 - 0.96^({3} t) / "
        "2)",
        beta1_.text(), beta2_.text(), epsilon_, momentum_decay_, beta2_.product_text());
  }
  double momentum(std::int64_t t) const {
    return static_cast<double>(beta1_.at(t - 1)) *
           (1 - 0.5 * std::pow(0.96, static_cast<double>(t) * momentum_decay_));
  }

  MeanDecay beta1_, beta2_;
  double epsilon_, momentum_decay_;
  double product_ = 1;  ///< of the momentums of steps 1 to counted_
  std::int64_t counted_ = 0;
};

constexpr ParamSpec kOptions[] = {
    rate_option("0.002"),
    {"beta1", ParamType::node, "0.9", kShareRange, "decay of the first moment"},
    {"beta2", ParamType::node, "0.999", kShareRange, "decay of the second moment"},
    {"epsilon", ParamType::real, "1e-8", "(0, 1e6]", "added to the corrected root of the second moment"},
    {"momentum_decay", ParamType::real, "0.004", "[0, 1e6]",
     "how fast the momentum grows from beta1 / 2 to beta1"},
    kWeightDecayOption,
    kDecoupledOption,
    kLazyOption,
};

}  // namespace

OptimizerEntry nadam_optimizer() {
  return {"nadam", "Dozat 2016: Adam with Nesterov momentum", kOptions,
          [](const Params& p) -> std::unique_ptr<Optimizer> { return std::make_unique<NAdamRule>(p); }};
}

}  // namespace lockstep
