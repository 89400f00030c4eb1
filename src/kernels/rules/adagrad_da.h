// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Adagrad with dual averaging: Duchi et al. 2011, section 3. The value before the update is not used.
#pragma once

#include "kernels/rules/rule.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

/// Slots: the sum of gradients, the accumulated squares.
struct AdagradDa {
  static constexpr int kSlots = 2;
  float lr, threshold, constant;  ///< l1 t, l2 t lr
  LOCKSTEP_ELEMENT void apply(float& w, float g, float* slot) const {
    const float sum = slot[0] + g, squares = slot[1] + g * g;
    slot[0] = sum;
    slot[1] = squares;
    w = 0.0F - lr * shrunk(sum, threshold) / (constant + root(squares));
  }
};

/// Base: ElementRule (optim/element_rule.h).
template <class Base>
class AdagradDaRule : public Base {
 public:
  static constexpr const char *kName = "adagrad_da",
                              *kHelp = "Duchi et al. 2011: dual averaging; initial values are not used";
  static constexpr typename Base::Option kOptions[] = {
      Base::kRateOption,
      {"initial_accumulator", Base::real, "0.1", Base::above(0).up_to(1e6),
       "initial value of the accumulated squares"},
      {"l1", Base::real, "0", Base::between(0, 1e6), "L1 penalty"},
      {"l2", Base::real, "0", Base::between(0, 1e6), "L2 penalty"},
      Base::kLazyOption,
  };

  explicit AdagradDaRule(const typename Base::Params& p)
      : Base(p,
             {{"gradient_accumulator"},
              {"gradient_squared_accumulator", static_cast<float>(p.real("initial_accumulator"))}},
             {}, p.boolean("lazy")),
        l1_(p.real("l1")),
        l2_(p.real("l2")) {}

 private:
  RuleStep at(std::int64_t step, double rate) override {
    const auto t = static_cast<double>(step + 1);
    return rule_step(
        AdagradDa{static_cast<float>(rate), static_cast<float>(l1_ * t), static_cast<float>(l2_ * t * rate)});
  }
  typename Base::Text rule_text() const override {
    return Base::format("u += g; s += g^2; w = - sign(u) lr max(|u| - {} t, 0) / ({} t lr + sqrt(s))", l1_,
                        l2_);
  }

  double l1_, l2_;
};

}  // namespace
}  // namespace lockstep
