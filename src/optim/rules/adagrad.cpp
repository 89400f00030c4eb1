// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Adagrad (kernels/rules/adagrad.h).
#include "optim/rules/family.h"

namespace lockstep {

namespace {

class AdagradRule final : public ElementRule {
 public:
  struct Options {
    RuleOptions common;
    float initial_accumulator = 0;
    double epsilon = 0;

    void check(const Params& p) const {
      if (initial_accumulator == 0 && static_cast<float>(epsilon) == 0)
        throw p.error(option_name<&Options::initial_accumulator>(p),
                      "'initial_accumulator' and 'epsilon' are both 0",
                      "The root of the accumulated squares is a divisor: one of them must be above 0.");
    }
  };
  explicit AdagradRule(Options o)
      : ElementRule(std::move(o.common), {{"accumulator", o.initial_accumulator}}, o.common.chosen_decay()),
        epsilon_(o.epsilon) {}
  const char* kind() const override { return "adagrad"; }

 private:
  RuleStep at(std::int64_t /*step*/, double rate, const UpdateClass& /*of*/) override {
    return rule_step(Adagrad{static_cast<float>(rate), static_cast<float>(epsilon_)});
  }
  std::string rule_text() const override {
    return fmt::format("s += g^2; w -= lr g / {}",
                       epsilon_ == 0 ? "sqrt(s)" : fmt::format("(sqrt(s) + {})", epsilon_));
  }
  bool zero_gradient_moves() const override { return false; }

  double epsilon_;
};

using Options = AdagradRule::Options;
constexpr ParamSpec kOptions[] = {
    rate_option<&Options::common>(),
    option<&Options::initial_accumulator>("initial_accumulator", "0.1", between(0, 1e6),
                                          "initial value of the accumulated squares"),
    option<&Options::epsilon>("epsilon", "0", between(0, 1e6), "added to the root"),
    weight_decay_option<&Options::common>(),
    decoupled_option<&Options::common>(),
    lazy_option<&Options::common>(),
};

}  // namespace

extern const OptimizerEntry kAdagradOptimizer = {
    "adagrad", "Duchi et al. 2011: s += g^2; w -= lr * g / sqrt(s)", kOptions, make_rule<AdagradRule>};

}  // namespace lockstep
