// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// RAdam (kernels/rules/radam.h).
#include "optim/rules/family.h"

namespace lockstep {

namespace {

class RAdamRule final : public ElementRule {
 public:
  struct Options {
    RuleOptions common;
    CorrectedDecayNumber beta1, beta2;
    double epsilon = 0;
  };
  explicit RAdamRule(Options o)
      : ElementRule(std::move(o.common), {{"m"}, {"v"}}, o.common.chosen_decay()),
        beta1_(corrected_mean(std::move(o.beta1))),
        beta2_(corrected_mean(std::move(o.beta2))),
        epsilon_(o.epsilon) {}
  const char* kind() const override { return "radam"; }

 private:
  /// The length of the moving average from which on its variance is tractable.
  static constexpr double kTractable = 5;

  RuleStep at(std::int64_t step, double rate, const UpdateClass& of) override {
    const double product = beta2_.product(of), correction = 1 - product;
    const float gain1 = 1.0F - beta1_.at(step), gain2 = 1.0F - beta2_.at(step);
    const double alpha = rate / (1 - beta1_.product(of));
    const double longest = 2 / (1 - static_cast<double>(beta2_.at(step))) - 1;
    const double length = longest - 2 * static_cast<double>(of.updates) * product / correction;
    if (!(length > kTractable)) return rule_step(RAdam{static_cast<float>(alpha), gain1, gain2, 0, 1});
    const double rectified =
        std::sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length));
    return rule_step(RAdam{static_cast<float>(alpha * rectified * std::sqrt(correction)), gain1, gain2, 1,
                           static_cast<float>(epsilon_)});
  }
  std::string rule_text() const override {
    return fmt::format(
        "m += (1 - {0}) (g - m); v += (1 - {1}) (g^2 - v); w -= lr m / (1 - {3}) r sqrt(1 - {4}) / (sqrt(v) "
        "+ {2}), and w -= lr m / (1 - {3}) while rho_t <= 5; rho = 2 / (1 - {1}) - 1, rho_t = rho - 2 t {4} "
        "/ (1 - {4}), r = sqrt((rho_t - 4) (rho_t - 2) rho / ((rho - 4) (rho - 2) rho_t))",
        beta1_.text(), beta2_.text(), epsilon_, beta1_.product_text(), beta2_.product_text());
  }

  MeanDecay beta1_, beta2_;
  double epsilon_;
};

using Options = RAdamRule::Options;
constexpr ParamSpec kOptions[] = {
    rate_option<&Options::common>("0.001"),
    option<&Options::beta1>("beta1", "0.9", kShareRange, "decay of the first moment"),
    option<&Options::beta2>("beta2", "0.999", kShareRange, "decay of the second moment"),
    option<&Options::epsilon>("epsilon", "1e-8", above(0).up_to(1e6),
                              "added to the uncorrected root of the second moment"),
    weight_decay_option<&Options::common>(),
    decoupled_option<&Options::common>(),
    lazy_option<&Options::common>(),
};

}  // namespace

extern const OptimizerEntry kRAdamOptimizer = {
    "radam", "Liu et al. 2020: Adam whose first steps are rectified, in place of a warm-up", kOptions,
    make_rule<RAdamRule>};

}  // namespace lockstep
