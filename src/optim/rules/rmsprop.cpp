// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// RMSProp (kernels/rules/rmsprop.h).
#include "optim/rules/family.h"

namespace lockstep {

namespace {

class RmsPropRule final : public ElementRule {
 public:
  struct Options {
    RuleOptions common;
    DecayNumber decay;
    ScheduledNumber momentum;
    double epsilon = 0;
    bool centered = false;
  };
  explicit RmsPropRule(Options o)
      : ElementRule(std::move(o.common),
                    {{"rms", 1}, {o.momentum.is_zero() ? "" : "momentum"}, {o.centered ? "mg" : ""}},
                    o.common.chosen_decay()),
        decay_(mean(std::move(o.decay))),
        momentum_(scheduled(std::move(o.momentum))),
        epsilon_(o.epsilon),
        centered_(o.centered) {}
  const char* kind() const override { return "rmsprop"; }

 private:
  RuleStep at(std::int64_t step, double rate, const UpdateClass& /*of*/) override {
    const auto lr = static_cast<float>(rate), epsilon = static_cast<float>(epsilon_);
    const float gain = 1.0F - decay_.at(step), momentum = static_cast<float>(momentum_.at(step));
    if (slot_names().size() == 1) return rule_step(RmsProp<false, false>{lr, gain, 0, epsilon});
    if (slot_names().size() == 3) return rule_step(RmsProp<true, true>{lr, gain, momentum, epsilon});
    if (centered_) return rule_step(RmsProp<false, true>{lr, gain, 0, epsilon});
    return rule_step(RmsProp<true, false>{lr, gain, momentum, epsilon});
  }
  std::string rule_text() const override {
    const std::string move = fmt::format("lr g / sqrt({} + {})", centered_ ? "r - q^2" : "r", epsilon_);
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

using Options = RmsPropRule::Options;
constexpr ParamSpec kOptions[] = {
    rate_option<&Options::common>(),
    option<&Options::decay>("decay", "0.9", kShareRange, "what is kept of the mean square"),
    option<&Options::momentum>("momentum", "0", kShareRange, "what is kept of the previous moves"),
    option<&Options::epsilon>("epsilon", "1e-10", above(0).up_to(1e6), "added within the root"),
    option<&Options::centered>("centered", "false", {},
                               "divide by the standard deviation, not the root mean square"),
    weight_decay_option<&Options::common>(),
    decoupled_option<&Options::common>(),
    lazy_option<&Options::common>(),
};

}  // namespace

extern const OptimizerEntry kRmsPropOptimizer = {
    "rmsprop", "Hinton 2012: divides by the root of a mean square", kOptions, make_rule<RmsPropRule>};

}  // namespace lockstep
