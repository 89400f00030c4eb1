// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Momentum (kernels/rules/momentum.h).
#include "optim/rules/family.h"

namespace lockstep {

namespace {

class MomentumRule final : public ElementRule {
 public:
  struct Options {
    RuleOptions common;
    ScheduledNumber momentum;
    bool nesterov = false;
  };
  explicit MomentumRule(Options o)
      : ElementRule(std::move(o.common), {{"momentum"}}, o.common.chosen_decay()),
        momentum_(scheduled(std::move(o.momentum))),
        nesterov_(o.nesterov) {}
  const char* kind() const override { return "momentum"; }

 private:
  RuleStep at(std::int64_t step, double rate, const UpdateClass& /*of*/) override {
    const auto lr = static_cast<float>(rate), momentum = static_cast<float>(momentum_.at(step));
    if (nesterov_) return rule_step(Momentum<true>{lr, momentum, lr * momentum});
    return rule_step(Momentum<false>{lr, momentum, 0});
  }
  std::string rule_text() const override {
    return fmt::format("a = {0} a + g; w -= {1}", momentum_.text(),
                       nesterov_ ? fmt::format("lr g + lr {} a", momentum_.text()) : "lr a");
  }

  const ScheduledNumber& momentum_;
  bool nesterov_;
};

using Options = MomentumRule::Options;
constexpr ParamSpec kOptions[] = {
    rate_option<&Options::common>(),
    option<&Options::momentum>("momentum", "0.9", kShareRange, "what is kept of the accumulated gradient"),
    option<&Options::nesterov>("nesterov", "false", {}, "look ahead: w -= lr * (g + momentum * a)"),
    weight_decay_option<&Options::common>(),
    decoupled_option<&Options::common>(),
    lazy_option<&Options::common>(),
};

}  // namespace

extern const OptimizerEntry kMomentumOptimizer = {"momentum", "a = momentum * a + g; w -= lr * a", kOptions,
                                                  make_rule<MomentumRule>};

}  // namespace lockstep
