// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Adagrad with dual averaging (kernels/rules/adagrad_da.h).
#include "kernels/rules.h"
#include "optim/element_rule.h"

namespace lockstep {

namespace {

class AdagradDaRule final : public ElementRule {
 public:
  explicit AdagradDaRule(const Params& p)
      : ElementRule(p,
                    {{"gradient_accumulator"},
                     {"gradient_squared_accumulator", static_cast<float>(p.real("initial_accumulator"))}},
                    {}, p.boolean("lazy")),
        l1_(p.real("l1")),
        l2_(p.real("l2")) {}
  const char* kind() const override { return "adagrad_da"; }

 private:
  RuleStep at(std::int64_t step, double rate) override {
    const auto t = static_cast<double>(step + 1);
    return rule_step(
        AdagradDa{static_cast<float>(rate), static_cast<float>(l1_ * t), static_cast<float>(l2_ * t * rate)});
  }
  std::string rule_text() const override {
    return fmt::format("u += g; s += g^2; w = - sign(u) lr max(|u| - {} t, 0) / ({} t lr + sqrt(s))", l1_,
                       l2_);
  }

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

OptimizerEntry adagrad_da_optimizer() {
  return {"adagrad_da", "Duchi et al. 2011: dual averaging; initial values are not used", kOptions,
          [](const Params& p) -> std::unique_ptr<Optimizer> { return std::make_unique<AdagradDaRule>(p); }};
}

}  // namespace lockstep
