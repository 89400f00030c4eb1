// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Adagrad (kernels/rules/adagrad.h).
#include "kernels/rules.h"
#include "optim/element_rule.h"

namespace lockstep {

namespace {

class AdagradRule final : public ElementRule {
 public:
  explicit AdagradRule(const Params& p)
      : ElementRule(p, {{"accumulator", static_cast<float>(p.real("initial_accumulator"))}}, weight_decay(p),
                    p.boolean("lazy")),
        epsilon_(p.real("epsilon")) {
    if (static_cast<float>(p.real("initial_accumulator")) == 0 && static_cast<float>(epsilon_) == 0)
      throw p.error("initial_accumulator", "'initial_accumulator' and 'epsilon' are both 0",
                    "The root of the accumulated squares is a divisor: one of them must be above 0.");
  }
  const char* kind() const override { return "adagrad"; }

 private:
  RuleStep at(std::int64_t /*step*/, double rate) override {
    return rule_step(Adagrad{static_cast<float>(rate), static_cast<float>(epsilon_)});
  }
  std::string rule_text() const override {
    return fmt::format("s += g^2; w -= lr g / {}",
                       epsilon_ == 0 ? "sqrt(s)" : fmt::format("(sqrt(s) + {})", epsilon_));
  }
  bool zero_gradient_moves() const override { return false; }

  double epsilon_;
};

constexpr ParamSpec kOptions[] = {
    kRateOption,
    {"initial_accumulator", ParamType::real, "0.1", "[0, 1e6]", "initial value of the accumulated squares"},
    {"epsilon", ParamType::real, "0", "[0, 1e6]", "added to the root"},
    kWeightDecayOption,
    kDecoupledOption,
    kLazyOption,
};

}  // namespace

OptimizerEntry adagrad_optimizer() {
  return {"adagrad", "Duchi et al. 2011: s += g^2; w -= lr * g / sqrt(s)", kOptions,
          [](const Params& p) -> std::unique_ptr<Optimizer> { return std::make_unique<AdagradRule>(p); }};
}

}  // namespace lockstep
