// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Lion: Chen et al. 2023, arXiv:2302.06675, algorithm 2. The sign of 0 is 0.
#pragma once

#include "kernels/rules/rule.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

/// Slot: the mean of gradients.
struct Lion {
  static constexpr int kSlots = 1;
  float lr, beta1, gain1, beta2, gain2;
  LOCKSTEP_ELEMENT void apply(float& w, float g, float* slot) const {
    const float direction = beta1 * slot[0] + gain1 * g;
    slot[0] = beta2 * slot[0] + gain2 * g;
    const float step = with_sign_of(lr, direction);
    w -= magnitude(direction) > 0.0F ? step : direction;  // 0, or NaN
  }
};

/// Base: ElementRule (optim/element_rule.h).
template <class Base>
class LionRule : public Base {
 public:
  static constexpr const char *kName = "lion", *kHelp = "Chen et al. 2023: the sign of a mean of gradients";
  static constexpr typename Base::Option kOptions[] = {
      Base::rate_option("1e-4"),
      {"beta1", Base::node, "0.9", Base::kShareRange, "share of the mean in the direction"},
      {"beta2", Base::node, "0.99", Base::kShareRange, "decay of the mean"},
      {"weight_decay", Base::node, "0", Base::kDecayRange,
       "variables are multiplied by 1 - learning rate * weight_decay before the update"},
      Base::kLazyOption,
  };

  explicit LionRule(const typename Base::Params& p)
      : Base(p, {{"exp_avg"}}, Base::WeightDecay::decoupled, p.boolean("lazy")),
        beta1_(this->mean(p, "beta1")),
        beta2_(this->mean(p, "beta2")) {}

 private:
  RuleStep at(std::int64_t step, double rate) override {
    const float beta1 = beta1_.at(step), beta2 = beta2_.at(step);
    return rule_step(Lion{static_cast<float>(rate), beta1, 1.0F - beta1, beta2, 1.0F - beta2});
  }
  typename Base::Text rule_text() const override {
    return Base::format("w -= lr sign({0} m + (1 - {0}) g); m = {1} m + (1 - {1}) g", beta1_.text(),
                        beta2_.text());
  }

  typename Base::Mean beta1_, beta2_;
};

}  // namespace
}  // namespace lockstep
