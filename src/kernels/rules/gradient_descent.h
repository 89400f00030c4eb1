// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradient descent: w -= lr g.
#pragma once

#include "kernels/rules/rule.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

struct GradientDescent {
  static constexpr int kSlots = 0;
  float lr;
  LOCKSTEP_ELEMENT void apply(float& w, float g, float*) const { w -= lr * g; }
};

/// Base: ElementRule (optim/element_rule.h).
template <class Base>
class GradientDescentRule : public Base {
 public:
  static constexpr const char *kName = "gradient_descent", *kHelp = "w -= lr * g";
  static constexpr typename Base::Option kOptions[] = {
      Base::kRateOption,
      Base::kWeightDecayOption,
      Base::kDecoupledOption,
  };

  explicit GradientDescentRule(const typename Base::Params& p) : Base(p, {}, Base::weight_decay(p)) {}

 private:
  RuleStep at(std::int64_t /*step*/, double rate) override {
    return rule_step(GradientDescent{static_cast<float>(rate)});
  }
  typename Base::Text rule_text() const override { return "w -= lr g"; }
  bool zero_gradient_moves() const override { return false; }
};

}  // namespace
}  // namespace lockstep
