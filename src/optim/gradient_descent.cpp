// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradient descent (kernels/rules/gradient_descent.h).
#include "kernels/rules.h"
#include "optim/element_rule.h"

namespace lockstep {

namespace {

class GradientDescentRule final : public ElementRule {
 public:
  explicit GradientDescentRule(const Params& p) : ElementRule(p, {}, weight_decay(p)) {}
  const char* kind() const override { return "gradient_descent"; }

 private:
  RuleStep at(std::int64_t /*step*/, double rate) override {
    return rule_step(GradientDescent{static_cast<float>(rate)});
  }
  std::string rule_text() const override { return "w -= lr g"; }
  bool zero_gradient_moves() const override { return false; }
};

constexpr ParamSpec kOptions[] = {
    kRateOption,
    kWeightDecayOption,
    kDecoupledOption,
};

}  // namespace

OptimizerEntry gradient_descent_optimizer() {
  return {"gradient_descent", "w -= lr * g", kOptions, [](const Params& p) -> std::unique_ptr<Optimizer> {
            return std::make_unique<GradientDescentRule>(p);
          }};
}

}  // namespace lockstep
