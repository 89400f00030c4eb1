// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// RMSProp (kernels/rules/rmsprop.h). The mean square starts at 1.
#include "kernels/rules.h"
#include "optim/element_rule.h"

namespace lockstep {

namespace {

class RmsPropRule final : public ElementRule {
 public:
  explicit RmsPropRule(const Params& p)
      : ElementRule(
            p, {{"rms", 1}, {p.real("momentum") > 0 ? "momentum" : ""}, {p.boolean("centered") ? "mg" : ""}},
            weight_decay(p), p.boolean("lazy")),
        decay_(share_below_one(p, "decay")),
        momentum_(static_cast<float>(p.real("momentum"))),
        epsilon_(p.real("epsilon")),
        centered_(p.boolean("centered")) {}
  const char* kind() const override { return "rmsprop"; }

 private:
  RuleStep at(std::int64_t /*step*/, double rate) override {
    const auto lr = static_cast<float>(rate), epsilon = static_cast<float>(epsilon_);
    const float gain = 1.0F - decay_;
    if (slot_names().size() == 1) return rule_step(RmsProp<false, false>{lr, gain, 0, epsilon});
    if (slot_names().size() == 3) return rule_step(RmsProp<true, true>{lr, gain, momentum_, epsilon});
    if (centered_) return rule_step(RmsProp<false, true>{lr, gain, 0, epsilon});
    return rule_step(RmsProp<true, false>{lr, gain, momentum_, epsilon});
  }
  std::string rule_text() const override {
    const std::string variance = centered_ ? "r - q^2" : "r";
    const std::string move = fmt::format("lr g / sqrt({} + {})", variance, epsilon_);
    return fmt::format(
        "r += (1 - {0}) (g^2 - r); {1}{2}", decay_,
        centered_ ? fmt::format("q += (1 - {}) (g - q); ", decay_) : "",
        momentum_ > 0 ? fmt::format("p = {} p + {}; w -= p", momentum_, move) : "w -= " + move);
  }

  float decay_, momentum_;
  double epsilon_;
  bool centered_;
};

constexpr ParamSpec kOptions[] = {
    kRateOption,
    {"decay", ParamType::real, "0.9", "[0, 1)", "what is kept of the mean square"},
    {"momentum", ParamType::real, "0", "[0, 1)", "what is kept of the previous moves"},
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
