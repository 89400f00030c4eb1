// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Adam and AdamW (kernels/rules/adam.h). The rate with bias correction is computed from the betas in float32
// as the kernel uses them: 1 - 0.999 in float32 has a relative error of 1.3e-5.
//
// AdamW: Loshchilov and Hutter 2019, arXiv:1711.05101, algorithm 2, with the weight decay times the rate and
// epsilon beside the corrected root, as in PyTorch: w *= 1 - lr weight_decay;
// w -= lr m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon). The element function is that of Adam with
// epsilon sqrt(1 - beta2^t).
#include <cmath>

#include "kernels/rules.h"
#include "optim/element_rule.h"

namespace lockstep {

namespace {

class AdamRule final : public ElementRule {
 public:
  enum class Form { adam, adamw };
  AdamRule(Form form, const Params& p)
      : ElementRule(p, {{"m"}, {"v"}, {p.boolean("amsgrad") ? "v_max" : ""}},
                    form == Form::adamw ? WeightDecay::decoupled : weight_decay(p), p.boolean("lazy")),
        form_(form),
        beta1_(mean_decay(p, "beta1", BiasCorrection::by_product)),
        beta2_(mean_decay(p, "beta2", BiasCorrection::by_product)),
        epsilon_(p.real("epsilon")),
        amsgrad_(p.boolean("amsgrad")) {}
  const char* kind() const override { return form_ == Form::adamw ? "adamw" : "adam"; }

 private:
  RuleStep at(std::int64_t step, double rate) override {
    const double correction = std::sqrt(1 - beta2_.product(step));
    const auto alpha = static_cast<float>(rate * correction / (1 - beta1_.product(step)));
    const float gain1 = 1.0F - beta1_.at(step), gain2 = 1.0F - beta2_.at(step);
    const auto epsilon = static_cast<float>(form_ == Form::adamw ? epsilon_ * correction : epsilon_);
    if (amsgrad_) return rule_step(Adam<true>{alpha, gain1, gain2, epsilon});
    return rule_step(Adam<false>{alpha, gain1, gain2, epsilon});
  }
  std::string rule_text() const override {
    const char* const root = amsgrad_ ? "v_max" : "v";
    const std::string product1 = beta1_.product_text(), product2 = beta2_.product_text();
    const std::string moments =
        fmt::format("m += (1 - {}) (g - m); v += (1 - {}) (g^2 - v); {}", beta1_.text(), beta2_.text(),
                    amsgrad_ ? "v_max = max(v_max, v); " : "");
    if (form_ == Form::adamw)
      return fmt::format("{}w -= lr m / (1 - {}) / (sqrt({} / (1 - {})) + {})", moments, product1, root,
                         product2, epsilon_);
    return fmt::format("{0}w -= lr c m / (sqrt({1}) + {2}), c = sqrt(1 - {4}) / (1 - {3})", moments, root,
                       epsilon_, product1, product2);
  }

  Form form_;
  MeanDecay beta1_, beta2_;
  double epsilon_;
  bool amsgrad_;
};

constexpr ParamSpec kBeta1 = {"beta1", ParamType::node, "0.9", kShareRange, "decay of the first moment"};
constexpr ParamSpec kBeta2 = {"beta2", ParamType::node, "0.999", kShareRange, "decay of the second moment"};
constexpr ParamSpec kAmsgrad = {"amsgrad", ParamType::boolean, "false", "",
                                "divide by the root of the largest second moment so far (Reddi et al. 2018)"};
constexpr ParamSpec kAdam[] = {
    rate_option("0.001"),
    kBeta1,
    kBeta2,
    {"epsilon", ParamType::real, "1e-8", "(0, 1e6]",
     "added to the uncorrected root of the second moment, because the bias correction is part of the rate"},
    kAmsgrad,
    kWeightDecayOption,
    kDecoupledOption,
    kLazyOption,
};
constexpr ParamSpec kAdamW[] = {
    rate_option("0.001"),
    kBeta1,
    kBeta2,
    {"epsilon", ParamType::real, "1e-8", "(0, 1e6]", "added to the corrected root of the second moment"},
    kAmsgrad,
    {"weight_decay", ParamType::node, "0.01", kDecayRange,
     "variables are multiplied by 1 - learning rate * weight_decay before the update"},
    kLazyOption,
};

template <AdamRule::Form kForm>
std::unique_ptr<Optimizer> make(const Params& p) {
  return std::make_unique<AdamRule>(kForm, p);
}

}  // namespace

OptimizerEntry adam_optimizer() {
  return {"adam", "Kingma and Ba 2015, in the form whose rate has the bias correction", kAdam,
          make<AdamRule::Form::adam>};
}

OptimizerEntry adamw_optimizer() {
  return {"adamw", "Loshchilov and Hutter 2019, in the form of PyTorch: Adam with decoupled weight decay",
          kAdamW, make<AdamRule::Form::adamw>};
}

}  // namespace lockstep
