// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Adagrad with dual averaging (kernels/rules/adagrad_da.h).
#include "optim/rules/family.h"

namespace lockstep {

namespace {

class AdagradDaRule final : public ElementRule {
 public:
  struct Options {
    RuleOptions common;
    float initial_accumulator = 0;
    double l1 = 0, l2 = 0;
  };
  explicit AdagradDaRule(Options o)
      : ElementRule(std::move(o.common),
                    {{"gradient_accumulator"}, {"gradient_squared_accumulator", o.initial_accumulator}}),
        l1_(o.l1),
        l2_(o.l2) {}
  const char* kind() const override { return "adagrad_da"; }
  bool counts_updates() const override { return true; }

 private:
  RuleStep at(std::int64_t /*step*/, double rate, const UpdateClass& of) override {
    const auto t = static_cast<double>(of.updates);
    return rule_step(
        AdagradDa{static_cast<float>(rate), static_cast<float>(l1_ * t), static_cast<float>(l2_ * t * rate)});
  }
  std::string rule_text() const override {
    return fmt::format("u += g; s += g^2; w = - sign(u) lr max(|u| - {} t, 0) / ({} t lr + sqrt(s))", l1_,
                       l2_);
  }

  double l1_, l2_;
};

using Options = AdagradDaRule::Options;
constexpr ParamSpec kOptions[] = {
    rate_option<&Options::common>(),
    option<&Options::initial_accumulator>("initial_accumulator", "0.1", above(0).up_to(1e6),
                                          "initial value of the accumulated squares"),
    option<&Options::l1>("l1", "0", between(0, 1e6), "L1 penalty"),
    option<&Options::l2>("l2", "0", between(0, 1e6), "L2 penalty"),
    lazy_option<&Options::common>(),
};

}  // namespace

extern const OptimizerEntry kAdagradDaOptimizer = {
    "adagrad_da", "Duchi et al. 2011: dual averaging; initial values are not used", kOptions,
    make_rule<AdagradDaRule>};

}  // namespace lockstep
