// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Proximal Adagrad: the rule of proximal_gradient_descent.h with the rate of Adagrad of each element. Duchi
// et al. 2011.
#pragma once

#include "kernels/rules/rule.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

/// Slot: the accumulated squares.
struct ProximalAdagrad {
  static constexpr int kSlots = 1;
  float lr, l1, l2;
  LOCKSTEP_ELEMENT void apply(float& w, float g, float* slot) const {
    const float s = slot[0] + g * g;
    slot[0] = s;
    const float rate = lr / root(s);
    w = shrunk(w - rate * g, rate * l1) / (1.0F + rate * l2);
  }
};

/// Base: ElementRule (optim/element_rule.h).
template <class Base>
class ProximalAdagradRule : public Base {
 public:
  static constexpr const char *kName = "proximal_adagrad",
                              *kHelp = "Duchi et al. 2011: Adagrad with exact L1 and L2";
  static constexpr typename Base::Option kOptions[] = {
      Base::kRateOption,
      {"initial_accumulator", Base::real, "0.1", Base::above(0).up_to(1e6),
       "initial value of the accumulated squares"},
      {"l1", Base::real, "0", Base::between(0, 1e6), "L1 penalty"},
      {"l2", Base::real, "0", Base::between(0, 1e6), "L2 penalty"},
      Base::kLazyOption,
  };

  explicit ProximalAdagradRule(const typename Base::Params& p)
      : Base(p, {{"accumulator", static_cast<float>(p.real("initial_accumulator"))}}, {}, p.boolean("lazy")),
        l1_(p.real("l1")),
        l2_(p.real("l2")) {}

 private:
  RuleStep at(std::int64_t /*step*/, double rate) override {
    return rule_step(
        ProximalAdagrad{static_cast<float>(rate), static_cast<float>(l1_), static_cast<float>(l2_)});
  }
  typename Base::Text rule_text() const override {
    return Base::format(
        "s += g^2; r = lr / sqrt(s); u = w - r g; w = sign(u) max(|u| - r {}, 0) / (1 + r {})", l1_, l2_);
  }
  bool zero_gradient_moves() const override { return l1_ > 0 || l2_ > 0; }

  double l1_, l2_;
};

}  // namespace
}  // namespace lockstep
