// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradient descent (kernels/rules/gradient_descent.h).
#include "optim/rules/family.h"

namespace lockstep {

namespace {

class GradientDescentRule final : public ElementRule {
 public:
  using Options = RuleOptions;
  explicit GradientDescentRule(Options o) : ElementRule(std::move(o), {}, o.chosen_decay()) {}
  const char* kind() const override { return "gradient_descent"; }

 private:
  RuleStep at(std::int64_t /*step*/, double rate, const UpdateClass& /*of*/) override {
    return rule_step(GradientDescent{static_cast<float>(rate)});
  }
  std::string rule_text() const override { return "w -= lr g"; }
  bool zero_gradient_moves() const override { return false; }
};

constexpr ParamSpec kOptions[] = {rate_option(), weight_decay_option(), decoupled_option()};

}  // namespace

extern const OptimizerEntry kGradientDescentOptimizer = {"gradient_descent", "w -= lr * g", kOptions,
                                                         make_rule<GradientDescentRule>};

}  // namespace lockstep
