// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Adagrad: Duchi et al. 2011: s += g^2; w -= lr g / (sqrt(s) + epsilon).
#pragma once

#include "kernels/rules/rule.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

/// Slot: the accumulated squares s.
struct Adagrad {
  static constexpr int kSlots = 1;
  float lr, epsilon;
  LOCKSTEP_ELEMENT void apply(float& w, float g, float* slot) const {
    const float s = slot[0] + g * g;
    slot[0] = s;
    w -= lr * g / (root(s) + epsilon);
  }
};

/// Base: ElementRule (optim/element_rule.h).
template <class Base>
class AdagradRule : public Base {
 public:
  static constexpr const char *kName = "adagrad",
                              *kHelp = "Duchi et al. 2011: s += g^2; w -= lr * g / sqrt(s)";
  static constexpr typename Base::Option kOptions[] = {
      Base::kRateOption,
      {"initial_accumulator", Base::real, "0.1", Base::between(0, 1e6),
       "initial value of the accumulated squares"},
      {"epsilon", Base::real, "0", Base::between(0, 1e6), "added to the root"},
      Base::kWeightDecayOption,
      Base::kDecoupledOption,
      Base::kLazyOption,
  };

  explicit AdagradRule(const typename Base::Params& p)
      : Base(p, {{"accumulator", static_cast<float>(p.real("initial_accumulator"))}}, Base::weight_decay(p),
             p.boolean("lazy")),
        epsilon_(p.real("epsilon")) {
    if (static_cast<float>(p.real("initial_accumulator")) == 0 && static_cast<float>(epsilon_) == 0)
      throw p.error("initial_accumulator", "'initial_accumulator' and 'epsilon' are both 0",
                    "The root of the accumulated squares is a divisor: one of them must be above 0.");
  }

 private:
  RuleStep at(std::int64_t /*step*/, double rate) override {
    return rule_step(Adagrad{static_cast<float>(rate), static_cast<float>(epsilon_)});
  }
  typename Base::Text rule_text() const override {
    return Base::format("s += g^2; w -= lr g / {}",
                        epsilon_ == 0 ? "sqrt(s)" : Base::format("(sqrt(s) + {})", epsilon_));
  }
  bool zero_gradient_moves() const override { return false; }

  double epsilon_;
};

}  // namespace
}  // namespace lockstep
