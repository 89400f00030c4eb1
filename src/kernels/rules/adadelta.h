// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Adadelta: Zeiler 2012, arXiv:1212.5701, algorithm 1, with a rate.
#pragma once

#include "kernels/rules/rule.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

/// Slots: the mean square of gradients, the mean square of moves.
struct Adadelta {
  static constexpr int kSlots = 2;
  float lr, rho, gain, epsilon;
  LOCKSTEP_ELEMENT void apply(float& w, float g, float* slot) const {
    const float s = rho * slot[0] + gain * (g * g);
    const float move = g * root(slot[1] + epsilon) / root(s + epsilon);
    slot[0] = s;
    slot[1] = rho * slot[1] + gain * (move * move);
    w -= lr * move;
  }
};

/// Base: ElementRule (optim/element_rule.h).
template <class Base>
class AdadeltaRule : public Base {
 public:
  static constexpr const char *kName = "adadelta",
                              *kHelp = "Zeiler 2012; with learning_rate: 1 as in the paper";
  static constexpr typename Base::Option kOptions[] = {
      Base::rate_option("0.001"),
      {"rho", Base::node, "0.95", Base::kShareRange, "decay of both mean squares"},
      {"epsilon", Base::real, "1e-8", Base::above(0).up_to(1e6), "added within both roots"},
      Base::kWeightDecayOption,
      Base::kDecoupledOption,
      Base::kLazyOption,
  };

  explicit AdadeltaRule(const typename Base::Params& p)
      : Base(p, {{"accum"}, {"accum_update"}}, Base::weight_decay(p), p.boolean("lazy")),
        rho_(this->mean(p, "rho")),
        epsilon_(p.real("epsilon")) {}

 private:
  RuleStep at(std::int64_t step, double rate) override {
    const float rho = rho_.at(step);
    return rule_step(Adadelta{static_cast<float>(rate), rho, 1.0F - rho, static_cast<float>(epsilon_)});
  }
  typename Base::Text rule_text() const override {
    return Base::format(
        "s = {0} s + (1 - {0}) g^2; d = g sqrt(u + {1}) / sqrt(s + {1}); w -= lr d; u = {0} u + (1 - {0}) "
        "d^2",
        rho_.text(), epsilon_);
  }

  typename Base::Mean rho_;
  double epsilon_;
};

}  // namespace
}  // namespace lockstep
