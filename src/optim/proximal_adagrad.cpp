// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Proximal Adagrad (kernels/rules/proximal_adagrad.h).
#include "kernels/rules.h"
#include "optim/element_rule.h"

namespace lockstep {

namespace {

class ProximalAdagradRule final : public ElementRule {
 public:
  explicit ProximalAdagradRule(const Params& p)
      : ElementRule(p, {{"accumulator", static_cast<float>(p.real("initial_accumulator"))}}, {},
                    p.boolean("lazy")),
        l1_(p.real("l1")),
        l2_(p.real("l2")) {}
  const char* kind() const override { return "proximal_adagrad"; }

 private:
  RuleStep at(std::int64_t /*step*/, double rate) override {
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

constexpr ParamSpec kOptions[] = {
    kRateOption,
    {"initial_accumulator", ParamType::real, "0.1", "(0, 1e6]", "initial value of the accumulated squares"},
    {"l1", ParamType::real, "0", "[0, 1e6]", "L1 penalty"},
    {"l2", ParamType::real, "0", "[0, 1e6]", "L2 penalty"},
    kLazyOption,
};

}  // namespace

OptimizerEntry proximal_adagrad_optimizer() {
  return {
      "proximal_adagrad", "Duchi et al. 2011: Adagrad with exact L1 and L2", kOptions,
      [](const Params& p) -> std::unique_ptr<Optimizer> { return std::make_unique<ProximalAdagradRule>(p); }};
}

}  // namespace lockstep
