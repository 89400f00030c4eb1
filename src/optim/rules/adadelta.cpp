// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Adadelta (kernels/rules/adadelta.h).
#include "optim/rules/family.h"

namespace lockstep {

namespace {

class AdadeltaRule final : public ElementRule {
 public:
  struct Options {
    RuleOptions common;
    DecayNumber rho;
    double epsilon = 0;
  };
  explicit AdadeltaRule(Options o)
      : ElementRule(std::move(o.common), {{"accum"}, {"accum_update"}}, o.common.chosen_decay()),
        rho_(mean(std::move(o.rho))),
        epsilon_(o.epsilon) {}
  const char* kind() const override { return "adadelta"; }

 private:
  RuleStep at(std::int64_t step, double rate, const UpdateClass& /*of*/) override {
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

using Options = AdadeltaRule::Options;
constexpr ParamSpec kOptions[] = {
    rate_option<&Options::common>("0.001"),
    option<&Options::rho>("rho", "0.95", kShareRange, "decay of both mean squares"),
    option<&Options::epsilon>("epsilon", "1e-8", above(0).up_to(1e6), "added within both roots"),
    weight_decay_option<&Options::common>(),
    decoupled_option<&Options::common>(),
    lazy_option<&Options::common>(),
};

}  // namespace

extern const OptimizerEntry kAdadeltaOptimizer = {
    "adadelta", "Zeiler 2012; with learning_rate: 1 as in the paper", kOptions, make_rule<AdadeltaRule>};

}  // namespace lockstep
