// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Momentum: a = momentum a + g; w -= lr a. Nesterov: w -= lr g + lr momentum a, with the new a. Sutskever et
// al. 2013.
#pragma once

#include "kernels/rules/rule.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

/// Slot: the accumulated gradient a.
template <bool kNesterov>
struct Momentum {
  static constexpr int kSlots = 1;
  float lr, momentum, lr_momentum;
  LOCKSTEP_ELEMENT void apply(float& w, float g, float* slot) const {
    const float a = momentum * slot[0] + g;
    slot[0] = a;
    w -= kNesterov ? lr * g + lr_momentum * a : lr * a;
  }
};

/// Base: ElementRule (optim/element_rule.h).
template <class Base>
class MomentumRule : public Base {
 public:
  static constexpr const char *kName = "momentum", *kHelp = "a = momentum * a + g; w -= lr * a";
  static constexpr typename Base::Option kOptions[] = {
      Base::kRateOption,
      {"momentum", Base::node, "0.9", Base::kShareRange, "what is kept of the accumulated gradient"},
      {"nesterov", Base::boolean, "false", {}, "look ahead: w -= lr * (g + momentum * a)"},
      Base::kWeightDecayOption,
      Base::kDecoupledOption,
      Base::kLazyOption,
  };

  explicit MomentumRule(const typename Base::Params& p)
      : Base(p, {{"momentum"}}, Base::weight_decay(p), p.boolean("lazy")),
        momentum_(this->share(p, "momentum")),
        nesterov_(p.boolean("nesterov")) {}

 private:
  RuleStep at(std::int64_t step, double rate) override {
    const auto lr = static_cast<float>(rate), momentum = static_cast<float>(momentum_.at(step));
    if (nesterov_) return rule_step(Momentum<true>{lr, momentum, lr * momentum});
    return rule_step(Momentum<false>{lr, momentum, 0});
  }
  typename Base::Text rule_text() const override {
    return Base::format("a = {0} a + g; w -= {1}", momentum_.text(),
                        nesterov_ ? Base::format("lr g + lr {} a", momentum_.text()) : "lr a");
  }

  const typename Base::Number& momentum_;
  bool nesterov_;
};

}  // namespace
}  // namespace lockstep
