// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// RMSProp: Hinton, lecture 6 of "Neural networks for machine learning"; centered: Graves 2013,
// arXiv:1308.0850, equations 38 to 45. Epsilon is within the root, and the rate within the momentum.
// The mean square starts at 1. Without momentum there is no slot for it.
#pragma once

#include "kernels/rules/rule.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

/// Slots: the mean square of gradients; with momentum the accumulated moves; centered the mean of gradients.
template <bool kMomentum, bool kCentered>
struct RmsProp {
  static constexpr int kSlots = 1 + kMomentum + kCentered;
  float lr, gain, momentum, epsilon;
  LOCKSTEP_ELEMENT void apply(float& w, float g, float* slot) const {
    const float square = slot[0] + gain * (g * g - slot[0]);
    slot[0] = square;
    float variance = square;
    if constexpr (kCentered) {
      const float mean = slot[kSlots - 1] + gain * (g - slot[kSlots - 1]);
      slot[kSlots - 1] = mean;
      variance = square - mean * mean;
      variance = variance < 0.0F ? 0.0F : variance;  // by rounding; NaN stays
    }
    float move = lr * g / root(variance + epsilon);
    if constexpr (kMomentum) slot[1] = move = momentum * slot[1] + move;
    w -= move;
  }
};

/// Base: ElementRule (optim/element_rule.h).
template <class Base>
class RmsPropRule : public Base {
 public:
  static constexpr const char *kName = "rmsprop",
                              *kHelp = "Hinton 2012: divides by the root of a mean square";
  static constexpr typename Base::Option kOptions[] = {
      Base::kRateOption,
      {"decay", Base::node, "0.9", Base::kShareRange, "what is kept of the mean square"},
      {"momentum", Base::node, "0", Base::kShareRange, "what is kept of the previous moves"},
      {"epsilon", Base::real, "1e-10", Base::above(0).up_to(1e6), "added within the root"},
      {"centered", Base::boolean, "false", {}, "divide by the standard deviation, not the root mean square"},
      Base::kWeightDecayOption,
      Base::kDecoupledOption,
      Base::kLazyOption,
  };

  explicit RmsPropRule(const typename Base::Params& p)
      : Base(p,
             {{"rms", 1},
              {Base::is_zero(p, "momentum") ? "" : "momentum"},
              {p.boolean("centered") ? "mg" : ""}},
             Base::weight_decay(p), p.boolean("lazy")),
        decay_(this->mean(p, "decay")),
        momentum_(this->share(p, "momentum")),
        epsilon_(p.real("epsilon")),
        centered_(p.boolean("centered")) {}

 private:
  RuleStep at(std::int64_t step, double rate) override {
    const auto lr = static_cast<float>(rate), epsilon = static_cast<float>(epsilon_);
    const float gain = 1.0F - decay_.at(step), momentum = static_cast<float>(momentum_.at(step));
    if (this->slot_names().size() == 1) return rule_step(RmsProp<false, false>{lr, gain, 0, epsilon});
    if (this->slot_names().size() == 3) return rule_step(RmsProp<true, true>{lr, gain, momentum, epsilon});
    if (centered_) return rule_step(RmsProp<false, true>{lr, gain, 0, epsilon});
    return rule_step(RmsProp<true, false>{lr, gain, momentum, epsilon});
  }
  typename Base::Text rule_text() const override {
    const typename Base::Text variance = centered_ ? "r - q^2" : "r";
    const typename Base::Text move = Base::format("lr g / sqrt({} + {})", variance, epsilon_);
    return Base::format("r += (1 - {0}) (g^2 - r); {1}{2}", decay_.text(),
                        centered_ ? Base::format("q += (1 - {}) (g - q); ", decay_.text()) : "",
                        !momentum_.is_zero() ? Base::format("p = {} p + {}; w -= p", momentum_.text(), move)
                                             : "w -= " + move);
  }

  typename Base::Mean decay_;
  const typename Base::Number& momentum_;
  double epsilon_;
  bool centered_;
};

}  // namespace
}  // namespace lockstep
