// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Proximal Adagrad (kernels/rules/proximal_adagrad.h).
#include "optim/rules/family.h"

namespace lockstep {

namespace {

class ProximalAdagradRule final : public ElementRule {
 public:
  struct Options {
    RuleOptions common;
    float initial_accumulator = 0;
    double l1 = 0, l2 = 0;
  };
  explicit ProximalAdagradRule(Options o)
      : ElementRule(std::move(o.common), {{"accumulator", o.initial_accumulator}}), l1_(o.l1), l2_(o.l2) {}
  const char* kind() const override { return "proximal_adagrad"; }

 private:
  RuleStep at(std::int64_t /*step*/, double rate, const UpdateClass& /*of*/) override {
    return rule_step(
        ProximalAdagrad{static_cast<float>(rate), static_cast<float>(l1_), static_cast<float>(l2_)});
  }
  std::string rule_text() const override {
    return fmt::format("s += g^2; r = lr / sqrt(s); u = w - r g; w = sign(u) max(|u| - r {}, 0) / (1 + r {})",
                       l1_, l2_);
  }
  bool zero_gradient_moves() const override { return l1_ > 0 || l2_ > 0; }

  double l1_, l2_;
};

using Options = ProximalAdagradRule::Options;
constexpr ParamSpec kOptions[] = {
    rate_option<&Options::common>(),
    option<&Options::initial_accumulator>("initial_accumulator", "0.1", above(0).up_to(1e6),
                                          "initial value of the accumulated squares"),
    option<&Options::l1>("l1", "0", between(0, 1e6), "L1 penalty"),
    option<&Options::l2>("l2", "0", between(0, 1e6), "L2 penalty"),
    lazy_option<&Options::common>(),
};

}  // namespace

extern const OptimizerEntry kProximalAdagradOptimizer = {"proximal_adagrad",
                                                         "Duchi et al. 2011: Adagrad with exact L1 and L2",
                                                         kOptions, make_rule<ProximalAdagradRule>};

}  // namespace lockstep
