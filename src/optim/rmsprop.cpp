// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// RMSProp (kernels/rules/rmsprop.h). The mean square starts at 1.
#include "kernels/rules.h"
#include "optim/element_rule.h"

namespace lockstep {

namespace {

/// False for a plain 0, which needs no slot.
bool has_momentum(const Params& p) {
  return !ScheduledNumber(p.node("momentum"), "momentum", kShareRange, p.where("momentum"), p.subject())
              .is_zero();
}

class RmsPropRule final : public ElementRule {
 public:
  explicit RmsPropRule(const Params& p)
      : ElementRule(p, {{"rms", 1}, {has_momentum(p) ? "momentum" : ""}, {p.boolean("centered") ? "mg" : ""}},
                    weight_decay(p), p.boolean("lazy")),
        decay_(mean_decay(p, "decay")),
        momentum_(scheduled(p, "momentum", kShareRange)),
        epsilon_(p.real("epsilon")),
        centered_(p.boolean("centered")) {}
  const char* kind() const override { return "rmsprop"; }

 private:
  RuleStep at(std::int64_t step, double rate) override {
    const auto lr = static_cast<float>(rate), epsilon = static_cast<float>(epsilon_);
    const float gain = 1.0F - decay_.at(step), momentum = static_cast<float>(momentum_.at(step));
    if (slot_names().size() == 1) return rule_step(RmsProp<false, false>{lr, gain, 0, epsilon});
    if (slot_names().size() == 3) return rule_step(RmsProp<true, true>{lr, gain, momentum, epsilon});
    if (centered_) return rule_step(RmsProp<false, true>{lr, gain, 0, epsilon});
    return rule_step(RmsProp<true, false>{lr, gain, momentum, epsilon});
  }
  std::string rule_text() const override {
    const std::string variance = centered_ ? "r - q^2" : "r";
    const std::string move = fmt::format("lr g / sqrt({} + {})", variance, epsilon_);
    return fmt::format(
        "r += (1 - {0}) (g^2 - r); {1}{2}", decay_.text(),
        centered_ ? fmt::format("q += (1 - {}) (g - q); ", decay_.text()) : "",
        !momentum_.is_zero() ? fmt::format("p = {} p + {}; w -= p", momentum_.text(), move) : "w -= " + move);
  }

  MeanDecay decay_;
  const ScheduledNumber& momentum_;
  double epsilon_;
  bool centered_;
};

constexpr ParamSpec kOptions[] = {
    kRateOption,
    {"decay", ParamType::node, "0.9", kShareRange, "what is kept of the mean square"},
    {"momentum", ParamType::node, "0", kShareRange, "what is kept of the previous moves"},
    {"epsilon", ParamType::real, "1e-10", "(0, 1e6]", "added within the root"},
    {"centered", ParamType::boolean, "false", "",
     "divide by the standard deviation, not the root mean square"},
    kWeightDecayOption,
    kDecoupledOption,
    kLazyOption,
};

}  // namespace

OptimizerEntry rmsprop_optimizer() {
  return {"rmsprop", "Hinton 2012: divides by the root of a mean square", kOptions,
          [](const Params& p) -> std::unique_ptr<Optimizer> { return std::make_unique<RmsPropRule>(p); }};
}

}  // namespace lockstep
