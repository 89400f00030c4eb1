// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Adam and AdamW (kernels/rules/adam.h).
#include "optim/rules/family.h"

namespace lockstep {

namespace {

class AdamRule : public ElementRule {
 public:
  struct Options {
    RuleOptions common;
    CorrectedDecayNumber beta1, beta2;
    double epsilon = 0;
    bool amsgrad = false;
  };
  explicit AdamRule(Options o) : AdamRule(std::move(o), o.common.chosen_decay()) {}
  const char* kind() const override { return "adam"; }

 protected:
  AdamRule(Options&& o, WeightDecay decay)
      : ElementRule(std::move(o.common), {{"m"}, {"v"}, {o.amsgrad ? "v_max" : ""}}, decay),
        beta1_(corrected_mean(std::move(o.beta1))),
        beta2_(corrected_mean(std::move(o.beta2))),
        epsilon_(o.epsilon),
        amsgrad_(o.amsgrad) {}

  /// `epsilon`: what is added to the uncorrected root.
  RuleStep step_with(double epsilon, double correction, std::int64_t step, double rate,
                     const UpdateClass& of) const {
    const auto alpha = static_cast<float>(rate * correction / (1 - beta1_.product(of)));
    const float gain1 = 1.0F - beta1_.at(step), gain2 = 1.0F - beta2_.at(step);
    const auto added = static_cast<float>(epsilon);
    if (amsgrad_) return rule_step(Adam<true>{alpha, gain1, gain2, added});
    return rule_step(Adam<false>{alpha, gain1, gain2, added});
  }
  /// The root of the correction of the second moment.
  double correction(const UpdateClass& of) const { return std::sqrt(1 - beta2_.product(of)); }
  std::string moments_text() const {
    return fmt::format("m += (1 - {}) (g - m); v += (1 - {}) (g^2 - v); {}", beta1_.text(), beta2_.text(),
                       amsgrad_ ? "v_max = max(v_max, v); " : "");
  }
  const char* root_text() const { return amsgrad_ ? "v_max" : "v"; }

  MeanDecay beta1_, beta2_;
  double epsilon_;

 private:
  RuleStep at(std::int64_t step, double rate, const UpdateClass& of) override {
    return step_with(epsilon_, correction(of), step, rate, of);
  }
  std::string rule_text() const override {
    return fmt::format("{0}w -= lr c m / (sqrt({1}) + {2}), c = sqrt(1 - {4}) / (1 - {3})", moments_text(),
                       root_text(), epsilon_, beta1_.product_text(), beta2_.product_text());
  }

  bool amsgrad_;
};

class AdamWRule final : public AdamRule {
 public:
  explicit AdamWRule(Options o) : AdamRule(std::move(o), WeightDecay::decoupled) {}
  const char* kind() const override { return "adamw"; }
  std::string meaning_of_slots(const Variable&) const override { return "adam"; }

 private:
  RuleStep at(std::int64_t step, double rate, const UpdateClass& of) override {
    const double root = correction(of);
    return step_with(epsilon_ * root, root, step, rate, of);
  }
  std::string rule_text() const override {
    return fmt::format("{}w -= lr m / (1 - {}) / (sqrt({} / (1 - {})) + {})", moments_text(),
                       beta1_.product_text(), root_text(), beta2_.product_text(), epsilon_);
  }
};

using Options = AdamRule::Options;
constexpr ParamSpec kBeta1 =
    option<&Options::beta1>("beta1", "0.9", kShareRange, "decay of the first moment");
constexpr ParamSpec kBeta2 =
    option<&Options::beta2>("beta2", "0.999", kShareRange, "decay of the second moment");
constexpr ParamSpec epsilon_option(std::string_view help) {
  return option<&Options::epsilon>("epsilon", "1e-8", above(0).up_to(1e6), help);
}
constexpr ParamSpec kAmsgrad = option<&Options::amsgrad>(
    "amsgrad", "false", {}, "divide by the root of the largest second moment so far (Reddi et al. 2018)");
constexpr ParamSpec kAdam[] = {
    rate_option<&Options::common>("0.001"),
    kBeta1,
    kBeta2,
    epsilon_option("added to the uncorrected root of the second moment, because the bias correction is part "
                   "of the rate"),
    kAmsgrad,
    weight_decay_option<&Options::common>(),
    decoupled_option<&Options::common>(),
    lazy_option<&Options::common>(),
};
constexpr ParamSpec kAdamW[] = {
    rate_option<&Options::common>("0.001"),
    kBeta1,
    kBeta2,
    epsilon_option("added to the corrected root of the second moment"),
    kAmsgrad,
    weight_decay_option<&Options::common>("0.01", kDecoupledHelp),
    lazy_option<&Options::common>(),
};

}  // namespace

extern const OptimizerEntry kAdamOptimizer = {
    "adam", "Kingma and Ba 2015, in the form whose rate has the bias correction", kAdam, make_rule<AdamRule>};
extern const OptimizerEntry kAdamWOptimizer = {
    "adamw", "Loshchilov and Hutter 2019, in the form of PyTorch: Adam with decoupled weight decay", kAdamW,
    make_rule<AdamWRule>};

}  // namespace lockstep
