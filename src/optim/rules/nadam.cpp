// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// NAdam (kernels/rules/nadam.h).
#include "optim/rules/family.h"

namespace lockstep {

namespace {

class NAdamRule final : public ElementRule {
 public:
  struct Options {
    RuleOptions common;
    CorrectedDecayNumber beta1, beta2;
    double epsilon = 0, momentum_decay = 0;
  };
  explicit NAdamRule(Options o)
      : ElementRule(std::move(o.common), {{"m"}, {"v"}}, o.common.chosen_decay()),
        beta1_(corrected_mean(std::move(o.beta1))),
        beta2_(corrected_mean(std::move(o.beta2))),
        epsilon_(o.epsilon),
        momentum_decay_(o.momentum_decay),
        product_(running_number(1)) {}
  const char* kind() const override { return "nadam"; }

 private:
  RuleStep at(std::int64_t step, double rate, const UpdateClass& of) override {
    const double now = momentum(step, of.updates), next = momentum(step + 1, of.updates + 1);
    const double correction = std::sqrt(1 - beta2_.product(of)), product = of.numbers[product_];
    return rule_step(NAdam{static_cast<float>(rate * correction * (1 - now) / (1 - product)),
                           static_cast<float>(rate * correction * next / (1 - product * next)),
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
  void count(std::int64_t step, UpdateClass& of) const override {
    of.numbers[product_] *= momentum(step, of.updates);
  }
  double momentum(std::int64_t step, std::int64_t t) const {
    return static_cast<double>(beta1_.at(step)) *
           (1 - 0.5 * std::pow(0.96, static_cast<double>(t) * momentum_decay_));
  }

  MeanDecay beta1_, beta2_;
  double epsilon_, momentum_decay_;
  std::size_t product_;  ///< the place of mu_1 ... mu_t in the running numbers
};

using Options = NAdamRule::Options;
constexpr ParamSpec kOptions[] = {
    rate_option<&Options::common>("0.002"),
    option<&Options::beta1>("beta1", "0.9", kShareRange, "decay of the first moment"),
    option<&Options::beta2>("beta2", "0.999", kShareRange, "decay of the second moment"),
    option<&Options::epsilon>("epsilon", "1e-8", above(0).up_to(1e6),
                              "added to the corrected root of the second moment"),
    option<&Options::momentum_decay>("momentum_decay", "0.004", between(0, 1e6),
                                     "how fast the momentum grows from beta1 / 2 to beta1"),
    weight_decay_option<&Options::common>(),
    decoupled_option<&Options::common>(),
    lazy_option<&Options::common>(),
};

}  // namespace

extern const OptimizerEntry kNAdamOptimizer = {"nadam", "Dozat 2016: Adam with Nesterov momentum", kOptions,
                                               make_rule<NAdamRule>};

}  // namespace lockstep
