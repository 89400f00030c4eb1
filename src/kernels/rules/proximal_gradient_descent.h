// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Proximal gradient descent (FOBOS): Duchi and Singer 2009, section 5: u = w - lr g;
// w = sign(u) max(|u| - lr l1, 0) / (1 + lr l2).
#pragma once

#include "kernels/rules/rule.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

struct ProximalGradientDescent {
  static constexpr int kSlots = 0;
  float lr, threshold, divisor;  ///< lr l1, 1 + lr l2
  LOCKSTEP_ELEMENT void apply(float& w, float g, float*) const {
    w = shrunk(w - lr * g, threshold) / divisor;
  }
};

/// Base: ElementRule (optim/element_rule.h).
template <class Base>
class ProximalGradientDescentRule : public Base {
 public:
  static constexpr const char *kName = "proximal_gradient_descent",
                              *kHelp = "Duchi and Singer 2009: FOBOS, with exact L1 and L2";
  static constexpr typename Base::Option kOptions[] = {
      Base::kRateOption,
      {"l1", Base::real, "0", Base::between(0, 1e6), "L1 penalty"},
      {"l2", Base::real, "0", Base::between(0, 1e6), "L2 penalty"},
      Base::kLazyOption,
  };

  explicit ProximalGradientDescentRule(const typename Base::Params& p)
      : Base(p, {}, {}, p.boolean("lazy")), l1_(p.real("l1")), l2_(p.real("l2")) {}

 private:
  RuleStep at(std::int64_t /*step*/, double rate) override {
    return rule_step(ProximalGradientDescent{static_cast<float>(rate), static_cast<float>(rate * l1_),
                                             static_cast<float>(1 + rate * l2_)});
  }
  typename Base::Text rule_text() const override {
    return Base::format("u = w - lr g; w = sign(u) max(|u| - lr {}, 0) / (1 + lr {})", l1_, l2_);
  }
  bool zero_gradient_moves() const override { return l1_ > 0 || l2_ > 0; }

  double l1_, l2_;
};

}  // namespace
}  // namespace lockstep
