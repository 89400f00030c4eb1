// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Momentum and Nesterov momentum (kernels/rules/momentum.h).
#include "kernels/rules.h"
#include "optim/element_rule.h"

namespace lockstep {

namespace {

class MomentumRule final : public ElementRule {
 public:
  explicit MomentumRule(const Params& p)
      : ElementRule(p, {{"momentum"}}, weight_decay(p), p.boolean("lazy")),
        momentum_(scheduled(p, "momentum", kShareRange)),
        nesterov_(p.boolean("nesterov")) {}
  const char* kind() const override { return "momentum"; }

 private:
  RuleStep at(std::int64_t step, double rate) override {
    const auto lr = static_cast<float>(rate), momentum = static_cast<float>(momentum_.at(step));
    if (nesterov_) return rule_step(Momentum<true>{lr, momentum, lr * momentum});
    return rule_step(Momentum<false>{lr, momentum, 0});
  }
  std::string rule_text() const override {
    return fmt::format("a = {0} a + g; w -= {1}", momentum_.text(),
                       nesterov_ ? fmt::format("lr g + lr {} a", momentum_.text()) : "lr a");
  }

  const ScheduledNumber& momentum_;
  bool nesterov_;
};

constexpr ParamSpec kOptions[] = {
    kRateOption,
    {"momentum", ParamType::node, "0.9", kShareRange, "what is kept of the accumulated gradient"},
    {"nesterov", ParamType::boolean, "false", "", "look ahead: w -= lr * (g + momentum * a)"},
    kWeightDecayOption,
    kDecoupledOption,
    kLazyOption,
};

}  // namespace

OptimizerEntry momentum_optimizer() {
  return {"momentum", "a = momentum * a + g; w -= lr * a", kOptions,
          [](const Params& p) -> std::unique_ptr<Optimizer> { return std::make_unique<MomentumRule>(p); }};
}

}  // namespace lockstep
