// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Proximal gradient descent (kernels/rules/proximal_gradient_descent.h).
#include "optim/rules/family.h"

namespace lockstep {

namespace {

class ProximalGradientDescentRule final : public ElementRule {
 public:
  struct Options {
    RuleOptions common;
    double l1 = 0, l2 = 0;
  };
  explicit ProximalGradientDescentRule(Options o)
      : ElementRule(std::move(o.common), {}), l1_(o.l1), l2_(o.l2) {}
  const char* kind() const override { return "proximal_gradient_descent"; }

 private:
  RuleStep at(std::int64_t /*step*/, double rate, const UpdateClass& /*of*/) override {
    return rule_step(ProximalGradientDescent{static_cast<float>(rate), static_cast<float>(rate * l1_),
                                             static_cast<float>(1 + rate * l2_)});
  }
  std::string rule_text() const override {
    return fmt::format("u = w - lr g; w = sign(u) max(|u| - lr {}, 0) / (1 + lr {})", l1_, l2_);
  }
  bool zero_gradient_moves() const override { return l1_ > 0 || l2_ > 0; }

  double l1_, l2_;
};

using Options = ProximalGradientDescentRule::Options;
constexpr ParamSpec kOptions[] = {
    rate_option<&Options::common>(),
    option<&Options::l1>("l1", "0", between(0, 1e6), "L1 penalty"),
    option<&Options::l2>("l2", "0", between(0, 1e6), "L2 penalty"),
    lazy_option<&Options::common>(),
};

}  // namespace

extern const OptimizerEntry kProximalGradientDescentOptimizer = {
    "proximal_gradient_descent", "Duchi and Singer 2009: FOBOS, with exact L1 and L2", kOptions,
    make_rule<ProximalGradientDescentRule>};

}  // namespace lockstep
