// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// FTRL-Proximal (kernels/rules/ftrl.h).
#include "kernels/rules.h"
#include "optim/element_rule.h"

namespace lockstep {

namespace {

class FtrlRule final : public ElementRule {
 public:
  explicit FtrlRule(const Params& p)
      : ElementRule(p, {{"accum", static_cast<float>(p.real("initial_accumulator"))}, {"linear"}}, {},
                    p.boolean("lazy")),
        power_(-p.real("learning_rate_power")),
        l1_(p.real("l1")),
        l2_(p.real("l2")),
        shrinkage_(p.real("l2_shrinkage")),
        beta_(p.real("beta")) {}
  const char* kind() const override { return "ftrl"; }

 private:
  RuleStep at(std::int64_t /*step*/, double rate) override {
    const auto per_lr = static_cast<float>(1 / rate), l1 = static_cast<float>(l1_),
               twice_l2 = static_cast<float>(2 * l2_ + beta_ / rate),
               shrinkage = static_cast<float>(2 * shrinkage_);
    if (power_ == 0.5) return rule_step(Ftrl<true>{per_lr, l1, twice_l2, shrinkage, power_});
    return rule_step(Ftrl<false>{per_lr, l1, twice_l2, shrinkage, power_});
  }
  std::string rule_text() const override {
    return fmt::format(
        "s' = s + g^2; z += g + {0} w - (s'^{1} - s^{1}) / lr w; "
        "w = (sign(z) {2} - z) / ((s'^{1} + {3}) / lr + {4}) if |z| > {2} else 0",
        2 * shrinkage_, power_, l1_, beta_, 2 * l2_);
  }

  double power_, l1_, l2_, shrinkage_, beta_;
};

constexpr ParamSpec kOptions[] = {
    kRateOption,
    {"learning_rate_power", ParamType::real, "-0.5", "[-10, 0]",
     "how the rate falls with the accumulated squares"},
    {"initial_accumulator", ParamType::real, "0.1", "[0, 1e6]", "initial value of the accumulated squares"},
    {"l1", ParamType::real, "0", "[0, 1e6]", "L1 penalty"},
    {"l2", ParamType::real, "0", "[0, 1e6]", "L2 penalty"},
    {"l2_shrinkage", ParamType::real, "0", "[0, 1e6]",
     "adds 2 l2_shrinkage w to the gradient, but not to its square"},
    {"beta", ParamType::real, "0", "[0, 1e6]", "added to the root of the accumulated squares"},
    kLazyOption,
};

}  // namespace

OptimizerEntry ftrl_optimizer() {
  return {"ftrl", "McMahan et al. 2013: FTRL-Proximal", kOptions,
          [](const Params& p) -> std::unique_ptr<Optimizer> { return std::make_unique<FtrlRule>(p); }};
}

}  // namespace lockstep
