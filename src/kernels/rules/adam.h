// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Adam: Kingma and Ba 2015, arXiv:1412.6980, section 2, last paragraph: the bias correction is part of the
// rate alpha. AMSGrad: Reddi et al. 2018, arXiv:1904.09237, with the largest uncorrected second moment so
// far. The rate with bias correction is computed from the betas in float32 as the element function uses them:
// 1 - 0.999 in float32 has a relative error of 1.3e-5.
//
// AdamW: Loshchilov and Hutter 2019, arXiv:1711.05101, algorithm 2, with the weight decay times the rate and
// epsilon added to the corrected root, as in PyTorch: w *= 1 - lr weight_decay;
// w -= lr m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon). The element function is that of Adam with
// epsilon sqrt(1 - beta2^t).
#pragma once

#include "kernels/rules/rule.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

/// Slots: m, v, and with AMSGrad the largest v.
template <bool kAmsgrad>
struct Adam {
  static constexpr int kSlots = kAmsgrad ? 3 : 2;
  float alpha, gain1, gain2, epsilon;
  LOCKSTEP_ELEMENT void apply(float& w, float g, float* slot) const {
    const float m = slot[0] + gain1 * (g - slot[0]);
    const float v = slot[1] + gain2 * (g * g - slot[1]);
    slot[0] = m;
    slot[1] = v;
    float largest = v;
    if constexpr (kAmsgrad) slot[2] = largest = slot[2] > v ? slot[2] : v;
    w -= alpha * m / (root(largest) + epsilon);
  }
};

/// Base: ElementRule (optim/element_rule.h).
template <class Base>
class AdamRule : public Base {
 public:
  static constexpr const char *kName = "adam",
                              *kHelp = "Kingma and Ba 2015, in the form whose rate has the bias correction";
  static constexpr typename Base::Option kBeta1 = {"beta1", Base::node, "0.9", Base::kShareRange,
                                                   "decay of the first moment"};
  static constexpr typename Base::Option kBeta2 = {"beta2", Base::node, "0.999", Base::kShareRange,
                                                   "decay of the second moment"};
  static constexpr typename Base::Option kAmsgrad = {
      "amsgrad",
      Base::boolean,
      "false",
      {},
      "divide by the root of the largest second moment so far (Reddi et al. 2018)"};
  static constexpr typename Base::Option kOptions[] = {
      Base::rate_option("0.001"),
      kBeta1,
      kBeta2,
      {"epsilon", Base::real, "1e-8", Base::above(0).up_to(1e6),
       "added to the uncorrected root of the second moment, because the bias correction is part of the rate"},
      kAmsgrad,
      Base::kWeightDecayOption,
      Base::kDecoupledOption,
      Base::kLazyOption,
  };
  enum class Form { adam, adamw };
  explicit AdamRule(const typename Base::Params& p, Form form = Form::adam)
      : Base(p, {{"m"}, {"v"}, {p.boolean("amsgrad") ? "v_max" : ""}},
             form == Form::adamw ? Base::WeightDecay::decoupled : Base::weight_decay(p), p.boolean("lazy")),
        form_(form),
        beta1_(this->corrected_mean(p, "beta1")),
        beta2_(this->corrected_mean(p, "beta2")),
        epsilon_(p.real("epsilon")),
        amsgrad_(p.boolean("amsgrad")) {}

 private:
  RuleStep at(std::int64_t step, double rate) override {
    const double correction = __builtin_sqrt(1 - beta2_.product(step));
    const auto alpha = static_cast<float>(rate * correction / (1 - beta1_.product(step)));
    const float gain1 = 1.0F - beta1_.at(step), gain2 = 1.0F - beta2_.at(step);
    const auto epsilon = static_cast<float>(form_ == Form::adamw ? epsilon_ * correction : epsilon_);
    if (amsgrad_) return rule_step(Adam<true>{alpha, gain1, gain2, epsilon});
    return rule_step(Adam<false>{alpha, gain1, gain2, epsilon});
  }
  typename Base::Text rule_text() const override {
    const char* const root = amsgrad_ ? "v_max" : "v";
    const typename Base::Text product1 = beta1_.product_text(), product2 = beta2_.product_text();
    const typename Base::Text moments =
        Base::format("m += (1 - {}) (g - m); v += (1 - {}) (g^2 - v); {}", beta1_.text(), beta2_.text(),
                     amsgrad_ ? "v_max = max(v_max, v); " : "");
    if (form_ == Form::adamw)
      return Base::format("{}w -= lr m / (1 - {}) / (sqrt({} / (1 - {})) + {})", moments, product1, root,
                          product2, epsilon_);
    return Base::format("{0}w -= lr c m / (sqrt({1}) + {2}), c = sqrt(1 - {4}) / (1 - {3})", moments, root,
                        epsilon_, product1, product2);
  }

  Form form_;
  typename Base::Mean beta1_, beta2_;
  double epsilon_;
  bool amsgrad_;
};

template <class Base>
class AdamWRule : public AdamRule<Base> {
 public:
  static constexpr const char
      *kName = "adamw",
      *kHelp = "Loshchilov and Hutter 2019, in the form of PyTorch: Adam with decoupled weight decay";
  static constexpr typename Base::Option kOptions[] = {
      Base::rate_option("0.001"),
      AdamRule<Base>::kBeta1,
      AdamRule<Base>::kBeta2,
      {"epsilon", Base::real, "1e-8", Base::above(0).up_to(1e6),
       "added to the corrected root of the second moment"},
      AdamRule<Base>::kAmsgrad,
      {"weight_decay", Base::node, "0.01", Base::kDecayRange,
       "variables are multiplied by 1 - learning rate * weight_decay before the update"},
      Base::kLazyOption,
  };

  explicit AdamWRule(const typename Base::Params& p) : AdamRule<Base>(p, AdamRule<Base>::Form::adamw) {}
};

}  // namespace
}  // namespace lockstep
