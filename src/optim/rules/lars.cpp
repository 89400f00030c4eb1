// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// LARS (kernels/rules/lars.h). As in the paper the rate is within the momentum; a variable whose norm or
// whose gradient's norm is zero gets the plain rate, as in TensorFlow's LARSOptimizer.
#include "optim/rules/family.h"
#include "optim/trust_rule.h"

namespace lockstep {

namespace {

class LarsRule final : public TrustRule {
 public:
  struct Options {
    RuleOptions common;
    TrustOptions trust;
    ScheduledNumber momentum;
    double trust_coefficient = 0, epsilon = 0;
    bool nesterov = false;
  };
  explicit LarsRule(Options o)
      : TrustRule(std::move(o.common), o.trust, {"momentum"}),
        momentum_(scheduled(std::move(o.momentum))),
        coefficient_(o.trust_coefficient),
        epsilon_(o.epsilon),
        nesterov_(o.nesterov) {}
  const char* kind() const override { return "lars"; }

 private:
  void begin(std::int64_t step, double rate) override {
    lr_ = static_cast<float>(rate);
    momentum_now_ = static_cast<float>(momentum_.at(step));
  }
  RuleStep move(Norms norms, double decay, std::size_t /*number*/) const override {
    const auto step_of = [&](auto rule) {
      rule.w2 = norms.w2;
      rule.x2 = norms.x2;
      rule.decay = decay;
      rule.lr = lr_;
      rule.coefficient = static_cast<float>(coefficient_);
      rule.epsilon = static_cast<float>(epsilon_);
      rule.momentum = momentum_now_;
      RuleStep step = rule_step(rule);
      step.coupled = static_cast<float>(decay);
      return step;
    };
    return nesterov_ ? step_of(Lars<true>{}) : step_of(Lars<false>{});
  }
  std::string rule_text(const std::string& decay) const override {
    const std::string direction = decay.empty() ? "g" : fmt::format("(g + {} w)", decay);
    const std::string norm = decay.empty() ? "|g|" : fmt::format("(|g| + {} |w|)", decay);
    const std::string rate = fmt::format(
        "lr {} |w| / {}", coefficient_,
        epsilon_ == 0
            ? norm
            : fmt::format("({} + {})", decay.empty() ? norm : norm.substr(1, norm.size() - 2), epsilon_));
    return fmt::format("a = {0} a + r {1}, r = {2}; w -= {3}", momentum_.text(), direction, rate,
                       nesterov_ ? fmt::format("{} a + r {}", momentum_.text(), direction) : "a");
  }

  const ScheduledNumber& momentum_;
  double coefficient_, epsilon_;
  bool nesterov_;
  float lr_ = 0, momentum_now_ = 0;
};

using Options = LarsRule::Options;
constexpr ParamSpec kOptions[] = {
    rate_option<&Options::common>(),
    option<&Options::momentum>("momentum", "0.9", kShareRange, "what is kept of the accumulated moves"),
    option<&Options::trust_coefficient>(
        "trust_coefficient", "0.001", above(0).up_to(1e6),
        "eta of the paper: a move, without momentum, is this times learning_rate of the variable's norm"),
    option<&Options::epsilon>("epsilon", "0", between(0, 1e6), "added to the norm that divides"),
    option<&Options::nesterov>("nesterov", "false", {}, "look ahead: w -= momentum * a + the move"),
    weight_decay_option<&Options::common>(
        "0", "times the variable, is added to its gradient; its norm to the norm that divides"),
    adapt_vectors_option<&Options::trust>(),
    decay_vectors_option<&Options::trust>(),
};

}  // namespace

extern const OptimizerEntry kLarsOptimizer = {
    "lars", "You et al. 2017: momentum with a rate per variable, in proportion to its norm", kOptions,
    make_rule<LarsRule>};

}  // namespace lockstep
