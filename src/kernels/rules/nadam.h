// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// NAdam: Dozat 2016, "Incorporating Nesterov momentum into Adam", with a momentum that grows with the step.
// The form is that of PyTorch: the momentum of step t is mu_t = beta1 (1 - 0.96^(t momentum_decay) / 2), and
// the bias correction of the mean is a product of these. The bias corrections are parts of the factors.
#pragma once

#include "kernels/rules/rule.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

/// Slots: m, v.
struct NAdam {
  static constexpr int kSlots = 2;
  float of_gradient, of_m, gain1, gain2, epsilon;
  LOCKSTEP_ELEMENT void apply(float& w, float g, float* slot) const {
    const float m = slot[0] + gain1 * (g - slot[0]);
    const float v = slot[1] + gain2 * (g * g - slot[1]);
    slot[0] = m;
    slot[1] = v;
    w -= (of_gradient * g + of_m * m) / (root(v) + epsilon);
  }
};

/// Base: ElementRule (optim/element_rule.h).
template <class Base>
class NAdamRule : public Base {
 public:
  static constexpr const char *kName = "nadam", *kHelp = "Dozat 2016: Adam with Nesterov momentum";
  static constexpr typename Base::Option kOptions[] = {
      Base::rate_option("0.002"),
      {"beta1", Base::node, "0.9", Base::kShareRange, "decay of the first moment"},
      {"beta2", Base::node, "0.999", Base::kShareRange, "decay of the second moment"},
      {"epsilon", Base::real, "1e-8", Base::above(0).up_to(1e6),
       "added to the corrected root of the second moment"},
      {"momentum_decay", Base::real, "0.004", Base::between(0, 1e6),
       "how fast the momentum grows from beta1 / 2 to beta1"},
      Base::kWeightDecayOption,
      Base::kDecoupledOption,
      Base::kLazyOption,
  };

  explicit NAdamRule(const typename Base::Params& p)
      : Base(p, {{"m"}, {"v"}}, Base::weight_decay(p), p.boolean("lazy")),
        beta1_(this->corrected_mean(p, "beta1")),
        beta2_(this->corrected_mean(p, "beta2")),
        epsilon_(p.real("epsilon")),
        momentum_decay_(p.real("momentum_decay")) {}

 private:
  RuleStep at(std::int64_t step, double rate) override {
    const std::int64_t t = step + 1;
    if (t < counted_) counted_ = 0, product_ = 1;
    while (counted_ < t) product_ *= momentum(++counted_);  // from the first step on: the bits are the same
    const double now = momentum(t), next = momentum(t + 1);
    const double correction = __builtin_sqrt(1 - beta2_.product(step));
    return rule_step(NAdam{static_cast<float>(rate * correction * (1 - now) / (1 - product_)),
                           static_cast<float>(rate * correction * next / (1 - product_ * next)),
                           1.0F - beta1_.at(step), 1.0F - beta2_.at(step),
                           static_cast<float>(epsilon_ * correction)});
  }
  typename Base::Text rule_text() const override {
    return Base::format(
        "m += (1 - {0}) (g - m); v += (1 - {1}) (g^2 - v); w -= lr ((1 - mu_t) g / (1 - mu_1 ... mu_t) + "
        "mu_t+1 m / (1 - mu_1 ... mu_t+1)) / (sqrt(v / (1 - {4})) + {2}), mu_t = {0} (1 - 0.96^({3} t) / "
        "2)",
        beta1_.text(), beta2_.text(), epsilon_, momentum_decay_, beta2_.product_text());
  }
  double momentum(std::int64_t t) const {
    return static_cast<double>(beta1_.at(t - 1)) *
           (1 - 0.5 * __builtin_pow(0.96, static_cast<double>(t) * momentum_decay_));
  }

  typename Base::Mean beta1_, beta2_;
  double epsilon_, momentum_decay_;
  double product_ = 1;  ///< of the momentums of steps 1 to counted_
  std::int64_t counted_ = 0;
};

}  // namespace
}  // namespace lockstep
