// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// FTRL-Proximal (kernels/rules/ftrl.h).
#include "optim/rules/family.h"

namespace lockstep {

namespace {

class FtrlRule final : public ElementRule {
 public:
  struct Numbers {
    double learning_rate_power = 0, l1 = 0, l2 = 0, l2_shrinkage = 0, beta = 0;
  };
  struct Options {
    RuleOptions common;
    float initial_accumulator = 0;
    Numbers numbers;
  };
  explicit FtrlRule(Options o)
      : ElementRule(std::move(o.common), {{"accum", o.initial_accumulator}, {"linear"}}), o_(o.numbers) {}
  const char* kind() const override { return "ftrl"; }

 private:
  RuleStep at(std::int64_t /*step*/, double rate, const UpdateClass& /*of*/) override {
    const auto per_lr = static_cast<float>(1 / rate), l1 = static_cast<float>(o_.l1),
               twice_l2 = static_cast<float>(2 * o_.l2 + o_.beta / rate),
               shrinkage = static_cast<float>(2 * o_.l2_shrinkage);
    if (power() == 0.5) return rule_step(Ftrl<true>{per_lr, l1, twice_l2, shrinkage, power()});
    return rule_step(Ftrl<false>{per_lr, l1, twice_l2, shrinkage, power()});
  }
  std::string rule_text() const override {
    return fmt::format(
        "s' = s + g^2; z += g + {0} w - (s'^{1} - s^{1}) / lr w; "
        "w = (sign(z) {2} - z) / ((s'^{1} + {3}) / lr + {4}) if |z| > {2} else 0",
        2 * o_.l2_shrinkage, power(), o_.l1, o_.beta, 2 * o_.l2);
  }
  double power() const { return -o_.learning_rate_power; }

  Numbers o_;
};

using Options = FtrlRule::Options;
using Numbers = FtrlRule::Numbers;
constexpr ParamSpec kOptions[] = {
    rate_option<&Options::common>(),
    option<&Options::numbers, &Numbers::learning_rate_power>(
        "learning_rate_power", "-0.5", between(-10, 0), "how the rate falls with the accumulated squares"),
    option<&Options::initial_accumulator>("initial_accumulator", "0.1", between(0, 1e6),
                                          "initial value of the accumulated squares"),
    option<&Options::numbers, &Numbers::l1>("l1", "0", between(0, 1e6), "L1 penalty"),
    option<&Options::numbers, &Numbers::l2>("l2", "0", between(0, 1e6), "L2 penalty"),
    option<&Options::numbers, &Numbers::l2_shrinkage>(
        "l2_shrinkage", "0", between(0, 1e6), "adds 2 l2_shrinkage w to the gradient, but not to its square"),
    option<&Options::numbers, &Numbers::beta>("beta", "0", between(0, 1e6),
                                              "added to the root of the accumulated squares"),
    lazy_option<&Options::common>(),
};

}  // namespace

extern const OptimizerEntry kFtrlOptimizer = {"ftrl", "McMahan et al. 2013: FTRL-Proximal", kOptions,
                                              make_rule<FtrlRule>};

}  // namespace lockstep
