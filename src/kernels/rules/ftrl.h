// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// FTRL-Proximal: McMahan et al. 2013, "Ad click prediction: a view from the trenches", algorithm 1, with the
// parameters of TensorFlow. The accumulator grows by g^2 without the shrinkage, as in TensorFlow 2.
#pragma once

#include "kernels/rules/rule.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

/// Slots: the accumulated squares, z. kRoot: the power of the rate is -1/2.
template <bool kRoot>
struct Ftrl {
  static constexpr int kSlots = 2;
  float per_lr;        ///< 1 / lr
  float l1, twice_l2;  ///< twice_l2: 2 l2 + beta / lr
  float shrinkage;     ///< 2 l2_shrinkage
  double power;        ///< - learning_rate_power
  LOCKSTEP_ELEMENT void apply(float& w, float g, float* slot) const {
    const float before = slot[0], after = before + g * g;
    float difference, last;
    if constexpr (kRoot) {
      last = root(after);
      difference = last - root(before);
    } else {
      const double end = power_of(after, power);
      last = static_cast<float>(end);
      difference = static_cast<float>(end - power_of(before, power));
    }
    const float z = slot[1] + (g + shrinkage * w - difference * per_lr * w);
    slot[0] = after;
    slot[1] = z;
    const float rest = magnitude(z) - l1;
    const float moved = rest / (last * per_lr + twice_l2);
    w = 0.0F - with_sign_of(rest <= 0.0F ? 0.0F : moved, z);
  }
};

/// Base: ElementRule (optim/element_rule.h).
template <class Base>
class FtrlRule : public Base {
 public:
  static constexpr const char *kName = "ftrl", *kHelp = "McMahan et al. 2013: FTRL-Proximal";
  static constexpr typename Base::Option kOptions[] = {
      Base::kRateOption,
      {"learning_rate_power", Base::real, "-0.5", Base::between(-10, 0),
       "how the rate falls with the accumulated squares"},
      {"initial_accumulator", Base::real, "0.1", Base::between(0, 1e6),
       "initial value of the accumulated squares"},
      {"l1", Base::real, "0", Base::between(0, 1e6), "L1 penalty"},
      {"l2", Base::real, "0", Base::between(0, 1e6), "L2 penalty"},
      {"l2_shrinkage", Base::real, "0", Base::between(0, 1e6),
       "adds 2 l2_shrinkage w to the gradient, but not to its square"},
      {"beta", Base::real, "0", Base::between(0, 1e6), "added to the root of the accumulated squares"},
      Base::kLazyOption,
  };

  explicit FtrlRule(const typename Base::Params& p)
      : Base(p, {{"accum", static_cast<float>(p.real("initial_accumulator"))}, {"linear"}}, {},
             p.boolean("lazy")),
        power_(-p.real("learning_rate_power")),
        l1_(p.real("l1")),
        l2_(p.real("l2")),
        shrinkage_(p.real("l2_shrinkage")),
        beta_(p.real("beta")) {}

 private:
  RuleStep at(std::int64_t /*step*/, double rate) override {
    const auto per_lr = static_cast<float>(1 / rate), l1 = static_cast<float>(l1_),
               twice_l2 = static_cast<float>(2 * l2_ + beta_ / rate),
               shrinkage = static_cast<float>(2 * shrinkage_);
    if (power_ == 0.5) return rule_step(Ftrl<true>{per_lr, l1, twice_l2, shrinkage, power_});
    return rule_step(Ftrl<false>{per_lr, l1, twice_l2, shrinkage, power_});
  }
  typename Base::Text rule_text() const override {
    return Base::format(
        "s' = s + g^2; z += g + {0} w - (s'^{1} - s^{1}) / lr w; "
        "w = (sign(z) {2} - z) / ((s'^{1} + {3}) / lr + {4}) if |z| > {2} else 0",
        2 * shrinkage_, power_, l1_, beta_, 2 * l2_);
  }

  double power_, l1_, l2_, shrinkage_, beta_;
};

}  // namespace
}  // namespace lockstep
