// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Proximal gradient descent (kernels/rules/proximal_gradient_descent.h).
#include "kernels/rules.h"
#include "optim/element_rule.h"

namespace lockstep {

namespace {

class ProximalGradientDescentRule final : public ElementRule {
 public:
  explicit ProximalGradientDescentRule(const Params& p)
      : ElementRule(p, {}, {}, p.boolean("lazy")), l1_(p.real("l1")), l2_(p.real("l2")) {}
  const char* kind() const override { return "proximal_gradient_descent"; }

 private:
  RuleStep at(std::int64_t /*step*/, double rate) override {
    return rule_step(ProximalGradientDescent{static_cast<float>(rate), static_cast<float>(rate * l1_),
                                             static_cast<float>(1 + rate * l2_)});
  }
  std::string rule_text() const override {
    return fmt::format("u = w - lr g; w = sign(u) max(|u| - lr {}, 0) / (1 + lr {})", l1_, l2_);
  }
  bool zero_gradient_moves() const override { return l1_ > 0 || l2_ > 0; }

  double l1_, l2_;
};

constexpr ParamSpec kOptions[] = {
    kRateOption,
    {"l1", ParamType::real, "0", "[0, 1e6]", "L1 penalty"},
    {"l2", ParamType::real, "0", "[0, 1e6]", "L2 penalty"},
    kLazyOption,
};

}  // namespace

OptimizerEntry proximal_gradient_descent_optimizer() {
  return {"proximal_gradient_descent", "Duchi and Singer 2009: FOBOS, with exact L1 and L2", kOptions,
          [](const Params& p) -> std::unique_ptr<Optimizer> {
            return std::make_unique<ProximalGradientDescentRule>(p);
          }};
}

}  // namespace lockstep
